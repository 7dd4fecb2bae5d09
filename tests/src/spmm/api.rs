//! What the library promises beside the product itself.
use anyhow::{Context as _, Result, ensure};
use lacuna::matrix::{Csr, generate};
use lacuna::{CsrMatrix, Device, Spmm};

use super::{Problem, product};
use crate::expect::same_bits;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("spmm/api/values_mut", "values are replaced, and the plan stays good", values_mut),
        Case::new(
            "spmm/api/with_values",
            "a matrix of the same pattern runs with the same plan",
            with_values,
        ),
        Case::new("spmm/api/one_shot", "`spmm` gives what a plan gives", one_shot),
        Case::new("spmm/api/record", "the simulator tells of each launch, a GPU of none", record),
        Case::new("spmm/api/events", "events pass in order", events),
        Case::new("spmm/api/threads", "plans and matrices are used from several threads", threads),
    ]
}

fn problem(seed: u64) -> Result<Problem> {
    Problem::generated(generate::uniform(31, 45, 0.7, seed), 24, seed)
}

/// C of a matrix on a device, checked: the largest error over its bound, and C.
fn checked(cx: &Context<'_>, plan: &Spmm, on_device: &CsrMatrix, of: &Problem) -> Result<(f64, Vec<f32>)> {
    product(cx, plan, on_device, &of.a, &of.b, of.n)
}

/// The same problem with other values.
fn revalued(problem: &Problem, seed: u64) -> Result<Problem> {
    let values = generate::random_values(problem.a.nnz(), seed);
    let a = Csr::with_values(problem.a.pattern().clone(), values)?;
    Ok(Problem { a, ..problem.clone() })
}

fn values_mut(cx: &Context<'_>) -> Result<f64> {
    let problem = problem(cx.seed)?;
    let mut a = CsrMatrix::new(cx.device, &problem.a)?;
    let plan = Spmm::plan(&a, problem.n)?;
    let (before, _) = checked(cx, &plan, &a, &problem)?;
    let other = revalued(&problem, cx.seed ^ 77)?;
    a.values_mut()?.upload(other.a.values())?;
    let (after, _) = checked(cx, &plan, &a, &other).context("after the values were replaced")?;
    Ok(before.max(after))
}

fn with_values(cx: &Context<'_>) -> Result<f64> {
    let problem = problem(cx.seed)?;
    let a = CsrMatrix::new(cx.device, &problem.a)?;
    let plan = Spmm::plan(&a, problem.n)?;
    let other = revalued(&problem, cx.seed ^ 77)?;
    let sibling = a.with_values(other.a.values())?;
    ensure!(
        (sibling.rows(), sibling.cols(), sibling.nnz()) == (a.rows(), a.cols(), a.nnz()),
        "another shape"
    );
    let (theirs, _) = checked(cx, &plan, &sibling, &other)?;
    let (ours, _) = checked(cx, &plan, &a, &problem).context("the first matrix, after that")?;
    drop(a);
    let (alone, _) = checked(cx, &plan, &sibling, &other).context("after the first matrix was dropped")?;
    Ok(theirs.max(ours).max(alone))
}

fn one_shot(cx: &Context<'_>) -> Result<f64> {
    let problem = problem(cx.seed)?;
    let c = lacuna::spmm(&problem.a, &problem.b, problem.n)?;
    let report = lacuna_reference::spmm(&problem.a, &problem.b, problem.n)?.check(&c)?;
    // It runs on the best device, which need not be the one under test.
    if Device::best()?.info() == cx.device.info() {
        let a = CsrMatrix::new(cx.device, &problem.a)?;
        let (_, planned) = checked(cx, &Spmm::plan(&a, problem.n)?, &a, &problem)?;
        same_bits("one-shot, then planned", &c, &planned, problem.n)?;
    }
    Ok(report.worst_over_bound)
}

fn record(cx: &Context<'_>) -> Result<f64> {
    let problem = problem(cx.seed)?;
    let a = CsrMatrix::new(cx.device, &problem.a)?;
    let plan = Spmm::plan(&a, problem.n)?;
    let b = cx.device.upload(&problem.b)?;
    let mut c = cx.device.zeros(plan.output_len())?;
    let mut run = || plan.run(cx.stream, &a, b.as_slice(), c.as_slice_mut());
    let ((), launches) = cx.device.record(|| run().and_then(|()| run()))?;
    if !cx.device.is_simulator() {
        ensure!(launches.is_empty(), "a GPU recorded {} launches", launches.len());
        return Ok(0.0);
    }
    ensure!(launches.len() == 2, "two runs gave {} launches", launches.len());
    ensure!(launches[0].report == launches[1].report, "two equal launches were counted differently");
    for launch in &launches {
        let (entry, fmas) = (launch.entry, launch.report.fmas());
        ensure!(entry == plan.choice().entry.name, "launched {entry}, planned {}", plan.choice().entry.name);
        ensure!(fmas >= problem.products() as u64, "{} products took {fmas} FMAs", problem.products());
    }
    run()?;
    let ((), launches) = cx.device.record(|| Ok(()))?;
    ensure!(launches.is_empty(), "a launch before the recording was recorded");
    Ok(0.0)
}

fn events(cx: &Context<'_>) -> Result<f64> {
    let start = cx.stream.event()?;
    let problem = problem(cx.seed)?;
    let a = CsrMatrix::new(cx.device, &problem.a)?;
    let (error, _) = checked(cx, &Spmm::plan(&a, problem.n)?, &a, &problem)?;
    let end = cx.stream.event()?;
    end.synchronize()?;
    let microseconds = end.microseconds_since(&start)?;
    ensure!(microseconds > 0.0 && microseconds.is_finite(), "the work took {microseconds} µs");
    Ok(error)
}

fn threads(cx: &Context<'_>) -> Result<f64> {
    let problem = problem(cx.seed)?;
    let a = CsrMatrix::new(cx.device, &problem.a)?;
    let plan = Spmm::plan(&a, problem.n)?;
    let run = || {
        let stream = cx.device.stream()?;
        checked(&Context { stream: &stream, ..*cx }, &plan, &a, &problem)
    };
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread returns its errors")).collect()
    });
    let results: Vec<(f64, Vec<f32>)> = Result::<_>::from_iter::<Vec<Result<_>>>(results)?;
    for (_, c) in &results {
        same_bits("two threads", &results[0].1, c, problem.n)?;
    }
    Ok(results[0].0)
}
