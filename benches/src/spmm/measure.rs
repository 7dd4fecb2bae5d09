//! One product on one device: its kernels.
use anyhow::Result;
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Device, Index, Spmm, Stream, spmm};
use lacuna_cases::{Number, Problem};

use super::operands::{Operands, unwritten_c};
use super::peers;
use crate::arithmetic;
use crate::measure::{Work, record, with_peers};
use crate::operation::Task;
use crate::record::Record;
use crate::session::Session;

/// Puts A on a device in some way, and plans the product in some way.
pub type Prepare = fn(&Device, &Csr<f32>, usize) -> lacuna::Result<(CsrMatrix, Spmm)>;

/// Columns that the addresses of whole buffers allow to load at once.
const WIDEST: u32 = 8;

/// Measures a problem.
pub(super) fn measure<T: Number, I: Index>(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    let problem = task.problem;
    let stream = session.device.stream()?;
    let mut operands = Operands::<T>::new(&session.device, problem)?;
    let a = if session.prepacked {
        CsrMatrix::<T, I>::prepacked(&session.device, &operands.a)?
    } else {
        CsrMatrix::with_index(&session.device, &operands.a)?
    };
    let precision = session.types.precision();
    let algorithms = if session.all_algorithms {
        let legal = spmm::choose(&lacuna::spmm::Problem {
            precision,
            ..lacuna::spmm::Problem::of(&a, problem.width, WIDEST)
        });
        legal.iter().map(|choice| choice.algorithm).collect()
    } else {
        vec![spmm::Algorithm::Auto]
    };
    let mut records = Vec::new();
    for algorithm in algorithms {
        let options = spmm::Options::default().precision(precision).algorithm(algorithm);
        let plan = Spmm::plan_with(&a, problem.width, options)?;
        let mut work = Planned { problem, operands: &mut operands, a: &a, plan: &plan };
        records.push(record(session, task, &stream, &mut work)?);
    }
    Ok(with_peers(session, task, &stream, records, |peers, context| {
        peers::measure(peers, context, &operands)
    }))
}

/// Measures a problem in several ways, each with the name of its suite, on the same B: a record each, without peers.
///
/// # Errors
/// What the library or the reference says. A result out of its bound is no error: the record tells it.
pub fn measure_variants(
    session: &Session,
    task: &Task<'_>,
    variants: &[(String, Prepare)],
) -> Result<Vec<Record>> {
    let stream = session.device.stream()?;
    let problem = task.problem;
    let mut operands = Operands::<f32>::new(&session.device, problem)?;
    let measure = |(suite, prepare): &(String, Prepare)| {
        let (a, plan) = prepare(&session.device, problem.sparse()?, problem.width)?;
        let mut work = Planned { problem, operands: &mut operands, a: &a, plan: &plan };
        record(session, &Task { suite, ..*task }, &stream, &mut work)
    };
    variants.iter().map(measure).collect()
}

/// A plan with its operands.
struct Planned<'a, T: Number, I: Index> {
    problem: &'a Problem,
    operands: &'a mut Operands<T>,
    a: &'a CsrMatrix<T, I>,
    plan: &'a Spmm<T, I>,
}

impl<T: Number, I: Index> Work for Planned<'_, T, I> {
    fn algorithm(&self) -> String {
        self.plan.choice().entry.name.into()
    }

    fn clear(&mut self) -> Result<()> {
        Ok(self.operands.c.upload(&unwritten_c::<T>(self.problem)?)?)
    }

    fn run(&mut self, stream: &Stream) -> lacuna::Result<()> {
        let Operands { b, c, .. } = &mut *self.operands;
        self.plan.run(stream, self.a, b.as_slice(), c.as_slice_mut())
    }

    fn check(&self, stream: &Stream) -> Result<Result<f64, String>> {
        let got = self.operands.c.download(stream)?;
        let checked = self.operands.check(arithmetic::of_kernel(self.plan.choice()), &got)?;
        Ok(checked.map(|report| report.worst_over_bound).map_err(|mismatch| mismatch.to_string()))
    }
}
