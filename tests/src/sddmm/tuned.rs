//! Plans by measurement.
use anyhow::{Result, ensure};
use lacuna::matrix::generate;
use lacuna::{CsrMatrix, Sddmm};

use super::Problem;
use super::conform::precision_at;
use crate::expect::same_bits;
use crate::spmm::Placement;
use crate::{Case, Context, tuned};

pub(super) fn cases() -> Vec<Case> {
    vec![Case::new("sddmm/tuned/file", "a measured plan is right, and found again in its file", file)]
}

fn file(cx: &Context<'_>) -> Result<f64> {
    let problem = Problem::draw(generate::uniform(61, 83, 0.7, cx.seed)?, 24, cx.seed)?;
    let c = CsrMatrix::new(cx.device, &problem.c)?;
    let [first, second] =
        tuned::twice(cx, |tuner, stream| tuner.tune(stream, Sddmm::plan(&c, problem.k)?, &c))?;
    ensure!(first.choice() == second.choice(), "{:?}, then {:?}", first.choice(), second.choice());
    let (a, b) = (cx.device.upload(&problem.a)?, cx.device.upload(&problem.b)?);
    let mut d = c.with_values(&vec![f32::NAN; problem.c.nnz()])?;
    let mut results = Vec::new();
    for plan in [&first, &second] {
        plan.run(cx.stream, a.as_slice(), b.as_slice(), &mut d)?;
        results.push(d.values()?.download(cx.stream)?);
    }
    same_bits("measured, then found", &results[0], &results[1], 0)?;
    let reference = lacuna_reference::sddmm(problem.c.pattern(), &problem.a, &problem.b, problem.k)?;
    let precision = precision_at::<f32>(first.choice(), Placement::WHOLE);
    Ok(reference.precision(precision)?.check(&results[0])?.worst_over_bound)
}
