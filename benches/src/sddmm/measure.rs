//! One sampled product on one device: its operands, and its kernels.
use anyhow::Result;
use lacuna::matrix::Csr;
use lacuna::{Buffer, CsrMatrix, Device, Index, Sddmm, Stream, sddmm};
use lacuna_reference::{Precision, SddmmReference, sddmm as reference_of};

use super::peers;
use crate::checked::Checked;
use crate::measure::{Measured, Operation, Work, of_one_problem, record};
use crate::peers::{Context, Peered};
use crate::problem::Problem;
use crate::record::Record;
use crate::session::Session;

/// SDDMM, as it is measured.
pub(crate) struct Measurement;

impl Operation for Measurement {
    fn measure<T: Measured, I: Index>(
        session: &mut Session,
        suite: &str,
        problem: &Problem,
    ) -> Result<Vec<Record>> {
        let stream = session.device.stream()?;
        let operands = Operands::<T>::new(&session.device, problem)?;
        let unwritten = Csr::with_values(problem.a.pattern().clone(), unwritten_d::<T>(problem)?)?;
        let mut d = CsrMatrix::<T, I>::with_index(&session.device, &unwritten)?;
        let plan = Sddmm::plan(&d, problem.width)?;
        let [legal, ..] = plan.legal();
        let algorithms: Vec<sddmm::Algorithm> = if session.all_algorithms {
            legal.iter().map(|choice| choice.algorithm).collect()
        } else {
            vec![sddmm::Algorithm::Auto]
        };
        let mut records = Vec::new();
        for algorithm in algorithms {
            let options = sddmm::Options::default().algorithm(algorithm);
            let plan = Sddmm::plan_with(&d, problem.width, options)?;
            let mut work = Planned { problem, operands: &operands, plan: &plan, d: &mut d };
            records.push(record(session, suite, problem, &stream, &mut work)?);
        }
        let peered = match &mut session.peers {
            Some(peers) => {
                let context =
                    Context { device: &session.device, stream: &stream, problem, samples: session.samples };
                peers::measure(peers, &context, &operands)
            }
            None => Peered::default(),
        };
        Ok(of_one_problem(records, &peered))
    }
}

/// A problem on a device, but for D.
pub(super) struct Operands<T: Measured> {
    pub(super) a: Buffer<T>,
    pub(super) b: Buffer<T>,
    pub(super) checked: Checked,
    reference: SddmmReference<T>,
}

impl<T: Measured> Operands<T> {
    fn new(device: &Device, problem: &Problem) -> Result<Self> {
        let k = problem.width;
        let a = problem.dense_as::<T>("A", problem.a.rows(), 0xc)?;
        let b = problem.dense_as::<T>("B", problem.a.cols(), 0xb)?;
        let checked = Checked::of(problem)?;
        let reference = reference_of(&checked.pattern, &checked.dense(&a, k), &b, k)?;
        Ok(Self { a: device.upload(&a)?, b: device.upload(&b)?, checked, reference })
    }

    /// The largest error of D's values in the checked rows over the bound of this arithmetic; none where it is out of it.
    pub(super) fn error_over_bound(&self, arithmetic: Precision, values: &[T]) -> Result<Option<f64>> {
        let reference = self.reference.clone().precision(arithmetic)?;
        Ok(reference.check(values).ok().map(|report| report.worst_over_bound))
    }
}

/// What D's values are before a product.
fn unwritten_d<T: Measured>(problem: &Problem) -> Result<Vec<T>> {
    problem.unwritten("D", problem.a.nnz())
}

/// A plan with its operands.
struct Planned<'a, T: Measured, I: Index> {
    problem: &'a Problem,
    operands: &'a Operands<T>,
    plan: &'a Sddmm<T, I>,
    d: &'a mut CsrMatrix<T, I>,
}

impl<T: Measured, I: Index> Work for Planned<'_, T, I> {
    fn algorithm(&self) -> String {
        self.plan.choice().entry.name.into()
    }

    fn clear(&mut self) -> Result<()> {
        Ok(self.d.values_mut()?.upload(&unwritten_d::<T>(self.problem)?)?)
    }

    fn run(&mut self, stream: &Stream) -> lacuna::Result<()> {
        self.plan.run(stream, self.operands.a.as_slice(), self.operands.b.as_slice(), self.d)
    }

    fn check(&self, stream: &Stream) -> Result<Result<f64, String>> {
        let got = self.operands.checked.values(&self.d.values()?.download(stream)?);
        let checked = self.operands.reference.check(&got);
        Ok(checked.map(|report| report.worst_over_bound).map_err(|mismatch| mismatch.to_string()))
    }
}
