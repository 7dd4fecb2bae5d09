//! Plans by measurement.
use anyhow::Result;
use lacuna::{Autotuner, Bags, NHot, Stream};
use lacuna_reference::nhot;

use super::Problem;
use crate::{Case, Context, tuned};

pub(super) fn cases() -> Vec<Case> {
    vec![Case::new("nhot/tuned/file", "a measured plan is right, and found again in its file", file)]
}

fn file(cx: &Context<'_>) -> Result<f64> {
    let problem = Problem::of_lengths(&[3, 0, 40, 7], 50, 36, cx.seed);
    let Problem { table_rows, columns, .. } = problem;
    let indices: Vec<u32> = problem.indices.iter().map(|&index| index as u32).collect();
    let bags = Bags::new(cx.device, table_rows, &problem.offsets, &indices)?;
    let table = lacuna::matrix::generate::random_values(table_rows * columns, cx.seed);
    let on_device = cx.device.upload(&table)?;
    let tune = |tuner: &Autotuner, stream: &Stream| tuner.tune(stream, NHot::plan(&bags, columns)?, &bags);
    let run = |plan: &NHot| {
        let mut out = cx.device.upload(&vec![f32::NAN; plan.output_len()])?;
        plan.run(cx.stream, &bags, on_device.as_slice(), out.as_slice_mut())?;
        Ok(out.download(cx.stream)?)
    };
    let (_, out) = tuned::same(cx, tune, |plan| *plan.choice(), run, columns)?;
    Ok(nhot(&problem.reference(), &table, columns)?.check(&out)?.worst_over_bound)
}
