//! Plans by measurement.
use anyhow::Result;
use lacuna::{Autotuner, Stream, TopN};
use lacuna_reference::{TopNForm, topn};

use super::Problem;
use crate::{Case, Context, tuned};

pub(super) fn cases() -> Vec<Case> {
    vec![Case::new("topn/tuned/file", "a measured plan is right, and found again in its file", file)]
}

fn file(cx: &Context<'_>) -> Result<f64> {
    let Problem { columns, n, logits } = Problem::drawn(3, 5000, 10, cx.seed);
    let on_device = cx.device.upload(&logits)?;
    let mut places = cx.device.zeros::<u32>(3 * n)?;
    let tune =
        |tuner: &Autotuner, stream: &Stream| tuner.tune(stream, TopN::plan(cx.device, 3, columns, n)?, &());
    let run = |plan: &TopN| {
        let mut values = cx.device.upload(&vec![f32::NAN; plan.output_len()])?;
        plan.run(cx.stream, on_device.as_slice(), values.as_slice_mut(), places.as_slice_mut())?;
        Ok(values.download(cx.stream)?)
    };
    let (_, values) = tuned::same(cx, tune, |plan| *plan.choice(), run, n)?;
    let reference = topn(&logits, columns, n, 1.0, TopNForm::Probability)?;
    Ok(reference.check(&values, &places.download(cx.stream)?)?.worst_over_bound)
}
