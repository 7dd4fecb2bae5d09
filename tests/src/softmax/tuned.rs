//! Plans by measurement.
use anyhow::{Result, ensure};
use lacuna::{CsrMatrix, SparseSoftmax};

use super::with_lengths;
use crate::expect::same_bits;
use crate::{Case, Context, tuned};

pub(super) fn cases() -> Vec<Case> {
    vec![Case::new("softmax/tuned/file", "a measured plan is right, and found again in its file", file)]
}

fn file(cx: &Context<'_>) -> Result<f64> {
    let lengths: Vec<u32> = (0..60).map(|row| row % 7).chain([900, 0, 300]).collect();
    let host = with_lengths(&lengths, cx.seed)?;
    let x = CsrMatrix::new(cx.device, &host)?;
    let [first, second] = tuned::twice(cx, |tuner, stream| tuner.tune(stream, SparseSoftmax::plan(&x)?, &x))?;
    let [kept, found] = [&first, &second]
        .map(|plan| plan.parts().iter().map(|part| (part.forward.name, part.rows)).collect::<Vec<_>>());
    ensure!(kept == found, "{kept:?}, then {found:?}");
    let mut results = Vec::new();
    for plan in [&first, &second] {
        let mut y = x.with_values(&vec![f32::NAN; host.nnz()])?;
        plan.run(cx.stream, &x, &mut y)?;
        results.push(y.values()?.download(cx.stream)?);
    }
    same_bits("measured, then found", &results[0], &results[1], 0)?;
    Ok(lacuna_reference::softmax(&host, 1.0)?.check(&results[0])?.worst_over_bound)
}
