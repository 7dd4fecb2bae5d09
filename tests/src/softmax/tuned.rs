//! Plans by measurement.
use anyhow::Result;
use lacuna::{Autotuner, CsrMatrix, SparseSoftmax, Stream};

use super::with_lengths;
use crate::{Case, Context, tuned};

pub(super) fn cases() -> Vec<Case> {
    vec![Case::new("softmax/tuned/file", "a measured plan is right, and found again in its file", file)]
}

fn file(cx: &Context<'_>) -> Result<f64> {
    let lengths: Vec<u32> = (0..60).map(|row| row % 7).chain([900, 0, 300]).collect();
    let host = with_lengths(&lengths, cx.seed)?;
    let x = CsrMatrix::new(cx.device, &host)?;
    let tune = |tuner: &Autotuner, stream: &Stream| tuner.tune(stream, SparseSoftmax::plan(&x)?, &x);
    let kernels = |plan: &SparseSoftmax| -> Vec<(&str, u32)> {
        plan.parts().iter().map(|part| (part.forward.name, part.rows)).collect()
    };
    let run = |plan: &SparseSoftmax| {
        let mut y = x.with_values(&vec![f32::NAN; host.nnz()])?;
        plan.run(cx.stream, &x, &mut y)?;
        Ok(y.values()?.download(cx.stream)?)
    };
    let (_, y) = tuned::same(cx, tune, kernels, run, 0)?;
    Ok(lacuna_reference::softmax(&host, 1.0)?.check(&y)?.worst_over_bound)
}
