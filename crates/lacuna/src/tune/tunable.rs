//! What a plan must tell, so that it can be tuned; and tuning, for all plans.
use lacuna_kernels::entries;

use super::format::Measured;
use super::kernels::{best_of_alignments, worth_measuring};
use super::rank::rank;
use super::{Autotuner, key, stopwatch};
use crate::{Device, Result, Stream};

/// A kernel, or kernels that go together, that may do a plan's problem.
#[derive(Clone, Debug, PartialEq)]
#[doc(hidden)]
pub struct Candidate {
    pub name: String,
    /// What the cost model thinks of it.
    pub cost: f64,
}

/// A plan that an [`Autotuner`] can tune: plans of this library are.
pub trait Tunable: Sized {
    /// What the plan was made for, and runs with: a matrix, bags; nothing where all operands are dense.
    type Subject;
    /// The dense operands to measure with.
    #[doc(hidden)]
    type Scratch;

    /// The operation's name in keys, with which the names of its entry points begin.
    #[doc(hidden)]
    const NAME: &'static str;

    #[doc(hidden)]
    fn device(&self) -> &Device;
    /// All that a choice may depend on, as text; none where there is nothing to choose or nothing to do.
    #[doc(hidden)]
    fn describe(&self, subject: &Self::Subject) -> Option<String>;
    /// The candidates for each alignment of the operands, the best alignment first, each list cheapest first.
    #[doc(hidden)]
    fn candidates(&self) -> Vec<Vec<Candidate>>;
    /// A plan for the same that runs this candidate of the first list, for measuring.
    #[doc(hidden)]
    fn with_candidate(&self, subject: &Self::Subject, name: &str) -> Result<Self>;
    /// This plan with, for each alignment, the first of these candidates that is legal there. Where none is, the choice stays.
    #[doc(hidden)]
    fn preferring(self, names: &[&str]) -> Result<Self>;
    #[doc(hidden)]
    fn scratch(&self, subject: &Self::Subject) -> Result<Self::Scratch>;
    #[doc(hidden)]
    fn run_on(&self, stream: &Stream, subject: &Self::Subject, scratch: &mut Self::Scratch) -> Result<()>;
}

impl Autotuner {
    /// This plan, with the kernel that was measured to be the fastest. `subject` is what the plan was made for: the matrix of
    /// [`Spmm`](crate::Spmm), [`Sddmm`](crate::Sddmm), [`SparseSoftmax`](crate::SparseSoftmax), the mask of
    /// [`SparseAttention`](crate::SparseAttention), the blocks of [`BlockAttention`](crate::BlockAttention), the bags of [`NHot`](crate::NHot), `&()` for
    /// [`TopN`](crate::TopN), [`BiasAct`](crate::BiasAct), [`LayerNorm`](crate::LayerNorm) and
    /// [`DenseTranspose`](crate::DenseTranspose).
    ///
    /// For a problem without a known choice it times, on `stream` and with dense operands of its own (as large as the plan's,
    /// with their strides and batch), each kernel that is legal for whole buffers and whose modelled cost is at most four times
    /// the lowest: some tens of milliseconds, and longer where the driver has to compile kernels first. One measurement
    /// serves all alignments: where an operand's address does not allow the fastest kernel, the fastest of those that it
    /// allows runs, or else the cost model's choice. What is measured is the plain operation: of SpMM without an epilogue, of
    /// SDDMM without a scale, of a softmax forward. The choice serves the others, too.
    ///
    /// The cost model alone chooses on the simulator, which has no time; for plans without work; and where the device has no
    /// room for the operands ([`TuneWarning::NoRoom`](crate::TuneWarning::NoRoom)). Then nothing is kept. An algorithm that the
    /// plan's options ask for stays, without measuring.
    ///
    /// The call waits for the stream when it measures, and must not be made while the stream is recorded.
    ///
    /// ```
    /// # use lacuna::matrix::Csr;
    /// # use lacuna::{Autotuner, CsrMatrix, Device, Spmm};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = Device::best()?;
    /// # let stream = device.stream()?;
    /// # let a = CsrMatrix::new(&device, &Csr::new(1, 300, vec![0, 2], vec![7, 299], vec![1.0, 2.0])?)?;
    /// let tuner = Autotuner::in_memory();
    /// let plan = tuner.tune(&stream, Spmm::plan(&a, 32)?, &a)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::OtherDevice`](crate::Error::OtherDevice) for a stream of another device; what planning for a kernel, or running
    /// it, fails with.
    pub fn tune<P: Tunable>(&self, stream: &Stream, plan: P, subject: &P::Subject) -> Result<P> {
        plan.device().expect_same("tuning", "the stream", stream.device())?;
        if plan.device().is_simulator() {
            return Ok(plan);
        }
        let mut operands = None;
        self.tune_by(plan, subject, |plan| {
            let scratch = match &mut operands {
                Some(scratch) => scratch,
                none => none.insert(plan.scratch(subject)?),
            };
            stopwatch::time(stream, |stream| plan.run_on(stream, subject, scratch))
        })
    }

    /// The same, with `time` to tell the microseconds that a plan takes.
    pub(crate) fn tune_by<P: Tunable>(
        &self,
        plan: P,
        subject: &P::Subject,
        mut time: impl FnMut(&P) -> Result<f64>,
    ) -> Result<P> {
        let Some(described) = plan.describe(subject) else { return Ok(plan) };
        let legal = plan.candidates();
        let Some(candidates) = legal.first().filter(|candidates| candidates.len() >= 2) else {
            return Ok(plan);
        };
        let names: Vec<Vec<&str>> = legal
            .iter()
            .map(|legal| legal.iter().map(|candidate| candidate.name.as_str()).collect())
            .collect();
        let measure = || {
            let worth: Vec<_> = worth_measuring(candidates, |candidate| candidate.cost).collect();
            let ranking = rank(&worth, |candidate| time(&plan.with_candidate(subject, &candidate.name)?))?;
            let measured = |(index, us): (usize, f64)| Measured::new(&*worth[index].name, us);
            Ok(best_of_alignments(&ranking.into_iter().map(measured).collect::<Vec<_>>(), &names))
        };
        let ranking = self.ranking(&key_of(&plan, &described, &names[0]), &names[0], measure)?;
        let Some(ranking) = ranking else { return Ok(plan) };
        let names: Vec<&str> = ranking.iter().map(|Measured { entry, .. }| entry.as_str()).collect();
        plan.preferring(&names)
    }
}

/// What a choice among these candidates belongs to. The candidates say by which rules they are legal: problems that may choose
/// from others have choices of their own.
fn key_of<P: Tunable>(plan: &P, described: &str, candidates: &[&str]) -> String {
    let is_its_own = |name: &&str| name.strip_prefix(P::NAME).is_some_and(|rest| rest.starts_with('_'));
    let kernels = entries::all().map(|entry| entry.name).filter(is_its_own);
    let surroundings = key::surroundings(plan.device().info(), kernels);
    let candidates = key::set(candidates.iter().copied());
    format!("{surroundings}; {} {described}; of {candidates}", P::NAME)
}

#[cfg(test)]
mod tests;
