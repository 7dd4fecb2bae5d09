//! One product on one device: its kernels.
use anyhow::Result;
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Device, Index, Spmm, spmm};
use lacuna_cases::{Number, Problem};

use super::operands::{Operands, unwritten_c};
use super::peers;
use crate::arithmetic;
use crate::measure::{Work, judged};
use crate::operation::Task;
use crate::record::Record;
use crate::session::{Session, others};

/// Puts A on a device in some way, and plans the product in some way.
pub type Prepare = fn(&Device, &Csr<f32>, usize) -> lacuna::Result<(CsrMatrix, Spmm)>;

/// Measures a problem.
pub(super) fn measure<T: Number, I: Index>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let mut operands = Operands::<T>::reduced(&session.device, problem, session.reduce)?;
    let a = if session.prepacked {
        CsrMatrix::<T, I>::prepacked(&session.device, &operands.a)?
    } else {
        CsrMatrix::with_index(&session.device, &operands.a)?
    };
    let options = spmm::Options::default().precision(session.types.precision());
    let options = options.reduce(session.reduce.of_library());
    let options = session.longest_piece.map_or(options, |length| options.longest_piece(length));
    let plan = |algorithm| Spmm::plan_with(&a, problem.width, options.algorithm(algorithm));
    let plans = session.plans(plan, |chosen| others(chosen.choice(), &chosen.legal()[0]))?;
    work_of(problem, &plans, &a, &mut operands, |work| work.measure(session, task, peers::measure))
}

/// Measures a problem in several ways, each with the name of its suite, on the same B: a record each, without peers.
///
/// # Errors
/// What the library or the reference says. A result out of its bound is no error: the record tells it.
pub fn measure_variants(
    session: &Session,
    task: &Task<'_>,
    variants: &[(&str, Prepare)],
) -> Result<Vec<Record>> {
    let stream = session.device.stream()?;
    let problem = task.problem;
    let mut operands = Operands::<f32>::new(&session.device, problem)?;
    let mut records = Vec::new();
    for (suite, prepare) in variants {
        let (a, plan) = prepare(&session.device, problem.sparse()?, problem.width)?;
        records.extend(work_of(problem, &[plan], &a, &mut operands, |mut work| {
            work.records(session, &Task { suite, ..*task }, &stream)
        })?);
    }
    Ok(records)
}

/// Has the work of plans measured.
fn work_of<T: Number, I: Index>(
    problem: &Problem,
    plans: &[Spmm<T, I>],
    a: &CsrMatrix<T, I>,
    operands: &mut Operands<T>,
    measure: impl FnOnce(Work<'_, Spmm<T, I>, Operands<T>>) -> Result<Vec<Record>>,
) -> Result<Vec<Record>> {
    measure(Work {
        plans,
        algorithm: &|plan| plan.choice().entry.name.into(),
        operands,
        clear: &|operands| Ok(operands.c.upload(&unwritten_c::<T>(problem)?)?),
        run: &|plan, Operands { b, c, .. }, stream| plan.run(stream, a, b.as_slice(), c.as_slice_mut()),
        check: &|plan, operands, stream| {
            let got = operands.c.download(stream)?;
            Ok(judged(operands.check_reduced(arithmetic::of_kernel(plan.choice()), &got)?))
        },
    })
}
