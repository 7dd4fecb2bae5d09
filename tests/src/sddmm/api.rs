//! How the parts of the library go together.
use anyhow::{Result, ensure};
use lacuna::matrix::generate;
use lacuna::{CsrMatrix, Sddmm, Spmm};

use super::problem::Problem;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("sddmm/api/once", "one product, with a device found for it", once),
        Case::new(
            "sddmm/api/transposed",
            "the pattern of a matrix that was transposed on the device",
            transposed,
        ),
        Case::new("sddmm/api/chain", "a result goes into a product, as in attention", chain),
        Case::new("sddmm/api/threads", "several threads plan for one pattern first", threads),
    ]
}

const M: usize = 19;
const N: usize = 27;
const K: usize = 12;

fn problem(seed: u64) -> Result<Problem> {
    Problem::draw(generate::uniform(M, N, 0.7, seed)?, K, seed)
}

/// Runs a plan, and checks it against the oracle of this problem: the largest error over its bound.
fn checked(cx: &Context<'_>, d: &mut CsrMatrix, plan: &Sddmm, problem: &Problem) -> Result<f64> {
    let Problem { c, a, b, k } = problem;
    let (on_device, b_on_device) = (cx.device.upload(a)?, cx.device.upload(b)?);
    plan.run(cx.stream, on_device.as_slice(), b_on_device.as_slice(), d)?;
    let got = d.values()?.download(cx.stream)?;
    Ok(lacuna_reference::sddmm(c.pattern(), a, b, *k)?.check(&got)?.worst_over_bound)
}

fn once(cx: &Context<'_>) -> Result<f64> {
    let Problem { c, a, b, k } = problem(cx.seed)?;
    let got = lacuna::sddmm(&c, &a, &b, k)?;
    Ok(lacuna_reference::sddmm(c.pattern(), &a, &b, k)?.check(&got)?.worst_over_bound)
}

fn transposed(cx: &Context<'_>) -> Result<f64> {
    let Problem { c, a, b, k } = problem(cx.seed)?;
    let mut t = CsrMatrix::new(cx.device, &c)?.transposed(cx.stream)?;
    let plan = Sddmm::plan(&t, k)?;
    checked(cx, &mut t, &plan, &Problem { c: c.transpose(), a: b, b: a, k })
}

/// SDDMM, then SpMM with what it wrote: a plan for the one matrix serves the other, and the stream orders them.
fn chain(cx: &Context<'_>) -> Result<f64> {
    let problem = problem(cx.seed)?;
    let mut scores = CsrMatrix::new(cx.device, &problem.c)?;
    let multiply = Spmm::plan(&scores, K)?;
    let sample = Sddmm::plan(&scores, K)?;
    let worst = checked(cx, &mut scores, &sample, &problem)?;
    let values = cx.device.upload(&problem.b)?;
    let mut out = cx.device.uninitialized(multiply.output_len())?;
    multiply.run(cx.stream, &scores, values.as_slice(), out.as_slice_mut())?;

    let mut host = problem.c.clone();
    host.values_mut().copy_from_slice(&scores.values()?.download(cx.stream)?);
    let report = lacuna_reference::spmm(&host, &problem.b, K)?.check(&out.download(cx.stream)?)?;
    Ok(worst.max(report.worst_over_bound))
}

fn threads(cx: &Context<'_>) -> Result<f64> {
    let problem = problem(cx.seed)?;
    let c = CsrMatrix::new(cx.device, &problem.c)?;
    let plans: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| Sddmm::plan(&c, K))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread returns its errors")).collect()
    });
    ensure!(plans.len() == 4, "a thread gave no plan");
    let mut worst = 0.0_f64;
    for plan in plans {
        let mut d = c.with_values(&vec![0.0; c.nnz()])?;
        worst = worst.max(checked(cx, &mut d, &plan?, &problem)?);
    }
    Ok(worst)
}
