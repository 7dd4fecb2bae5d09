//! Plans by measurement.
use anyhow::Result;
use lacuna::matrix::generate;
use lacuna::{Autotuner, CsrMatrix, Sddmm, Stream};

use super::Problem;
use super::conform::precision_at;
use crate::spmm::Placement;
use crate::{Case, Context, tuned};

pub(super) fn cases() -> Vec<Case> {
    vec![Case::new("sddmm/tuned/file", "a measured plan is right, and found again in its file", file)]
}

fn file(cx: &Context<'_>) -> Result<f64> {
    let problem = Problem::draw(generate::uniform(61, 83, 0.7, cx.seed)?, 24, cx.seed)?;
    let c = CsrMatrix::new(cx.device, &problem.c)?;
    let tune = |tuner: &Autotuner, stream: &Stream| tuner.tune(stream, Sddmm::plan(&c, problem.k)?, &c);
    let (a, b) = (cx.device.upload(&problem.a)?, cx.device.upload(&problem.b)?);
    let mut d = c.with_values(&vec![f32::NAN; problem.c.nnz()])?;
    let run = |plan: &Sddmm| {
        plan.run(cx.stream, a.as_slice(), b.as_slice(), &mut d)?;
        Ok(d.values()?.download(cx.stream)?)
    };
    let (plan, got) = tuned::same(cx, tune, |plan| *plan.choice(), run, 0)?;
    let reference = lacuna_reference::sddmm(problem.c.pattern(), &problem.a, &problem.b, problem.k)?;
    let precision = precision_at::<f32>(plan.choice(), Placement::WHOLE);
    Ok(reference.precision(precision)?.check(&got)?.worst_over_bound)
}
