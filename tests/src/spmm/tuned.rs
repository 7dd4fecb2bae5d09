//! Plans by measurement, and the file that keeps them.
use std::fs;

use anyhow::{Context as _, Result, ensure};
use lacuna::matrix::generate;
use lacuna::{Autotuner, CsrMatrix, Error, Spmm, Stream};

use super::problem::Problem;
use crate::expect::refused;
use crate::{Case, Context, tuned};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("spmm/tuned/file", "a measured plan is right, and found again in its file", file),
        Case::new("spmm/tuned/damage", "a file of any bytes is a warning, and no more", damage),
        Case::new("spmm/tuned/alignment", "a measured plan runs at every alignment", alignment),
        Case::new("spmm/tuned/refusals", "too many columns", refusals),
    ]
}

fn problem(seed: u64) -> Result<Problem> {
    Problem::generated(generate::uniform(61, 83, 0.7, seed), 24, seed)
}

/// C by a plan, at an offset into larger buffers: the largest error over its bound, and C.
fn checked(
    cx: &Context<'_>,
    plan: &Spmm,
    a: &CsrMatrix,
    problem: &Problem,
    offset: usize,
) -> Result<(f64, Vec<f32>)> {
    let b = cx.device.upload(&[vec![f32::NAN; offset], problem.b.clone()].concat())?;
    let mut c = cx.device.uninitialized(offset + plan.output_len())?;
    plan.run(cx.stream, a, b.slice(offset..)?, c.slice_mut(offset..)?)?;
    let c = c.slice(offset..)?.download(cx.stream)?;
    let report = lacuna_reference::spmm(&problem.a, &problem.b, problem.n)?.check(&c)?;
    Ok((report.worst_over_bound, c))
}

fn file(cx: &Context<'_>) -> Result<f64> {
    let problem = problem(cx.seed)?;
    let a = CsrMatrix::new(cx.device, &problem.a)?;
    let tune = |tuner: &Autotuner, stream: &Stream| tuner.tune(stream, Spmm::plan(&a, problem.n)?, &a);
    let mut worst = 0.0;
    let run = |plan: &Spmm| {
        let (error, c) = checked(cx, plan, &a, &problem, 0)?;
        worst = error;
        Ok(c)
    };
    tuned::same(cx, tune, |plan| *plan.choice(), run, problem.n)?;
    Ok(worst)
}

fn damage(cx: &Context<'_>) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("tune.json");
    let problem = problem(cx.seed)?;
    let a = CsrMatrix::new(cx.device, &problem.a)?;
    let mut worst: f64 = 0.0;
    let contents: [&[u8]; 4] = [b"", b"\xff\0", br#"{"format": 1, "rankings": {"#, br#"{"format": 99}"#];
    for (index, bytes) in contents.into_iter().enumerate() {
        fs::write(&path, bytes)?;
        let tuner = Autotuner::open(&path);
        ensure!(tuner.warnings().len() == 1, "{bytes:?}: {:?}", tuner.warnings());
        let plan = tuner.tune(cx.stream, Spmm::plan(&a, problem.n)?, &a)?;
        let (error, _) = checked(cx, &plan, &a, &problem, 0).with_context(|| format!("{bytes:?}"))?;
        worst = worst.max(error);
        // What is not ours stays; on a GPU the choice replaces what is damaged.
        let stays = index % 2 == 1 || cx.device.is_simulator();
        ensure!((fs::read(&path)? == bytes) == stays, "{bytes:?}: the file was replaced, or was not");
    }
    Ok(worst)
}

fn alignment(cx: &Context<'_>) -> Result<f64> {
    let problem = problem(cx.seed)?;
    let a = CsrMatrix::new(cx.device, &problem.a)?;
    let plan = Autotuner::in_memory().tune(cx.stream, Spmm::plan(&a, problem.n)?, &a)?;
    let errors: Result<Vec<f64>> =
        (0..4).map(|offset| Ok(checked(cx, &plan, &a, &problem, offset)?.0)).collect();
    Ok(errors?.into_iter().fold(0.0, f64::max))
}

fn refusals(cx: &Context<'_>) -> Result<f64> {
    let a = CsrMatrix::new(cx.device, &problem(cx.seed)?.a)?;
    let tune = |plan| Autotuner::in_memory().tune(cx.stream, plan, &a);
    let result = Spmm::plan(&a, usize::MAX).and_then(tune);
    let is_large = |error: &Error| matches!(error, Error::TooLarge { .. });
    refused("too many columns", result, is_large, &[&usize::MAX.to_string()])?;
    Ok(0.0)
}
