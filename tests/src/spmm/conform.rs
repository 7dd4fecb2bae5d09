//! The check that nearly all cases share.
use std::fmt;

use anyhow::{Context as _, Result, ensure};
use lacuna::{Choice, CsrMatrix, Spmm, SpmmAlgorithm, SpmmOptions, choose};
use lacuna_reference::SpmmReference;

use super::guarded::{Guarded, Placement};
use super::problem::Problem;
use crate::Context;
use crate::expect::same_bits;

/// What C holds before a run: a NaN with bits of its own, so that an element that is not written shows.
const POISON: u32 = 0x7fc0_dead;

/// Products up to which every legal algorithm is tried, on the simulator and on a GPU.
const ALL_ALGORITHMS_UP_TO: [usize; 2] = [1 << 16, 1 << 24];

/// Bytes of B or C from which on they are tried as whole buffers only.
const HUGE_BYTES: usize = 1 << 28;

/// Checks C = A·B against the oracle; gives the largest error over its bound.
///
/// The library's choice runs twice on whole buffers, which must give the same bits, and once at each of `placements`.
/// Where the problem is small every other legal algorithm runs on whole buffers and, with the same bits, on slices of
/// the least alignment that it takes. C is poisoned before each run, and what lies around slices is guarded.
///
/// # Errors
/// What is wrong, with the algorithm and the placement.
pub fn conform(cx: &Context<'_>, problem: &Problem, placements: &[Placement]) -> Result<f64> {
    let reference = lacuna_reference::spmm(&problem.a, &problem.b, problem.n)?;
    conform_to(cx, problem, &reference, placements)
}

/// As [`conform`], with a reference that may have some of the rows only.
pub(super) fn conform_to(
    cx: &Context<'_>,
    problem: &Problem,
    reference: &SpmmReference,
    placements: &[Placement],
) -> Result<f64> {
    let subject = Subject { cx, problem, reference, a: CsrMatrix::new(cx.device, &problem.a)? };
    let worst = subject.automatic(placements)?;
    let [simulator, gpu] = ALL_ALGORITHMS_UP_TO;
    if problem.products() > if cx.device.is_simulator() { simulator } else { gpu } {
        return Ok(worst);
    }
    legal(cx, problem).iter().try_fold(worst, |worst, choice| Ok(worst.max(subject.explicit(choice)?)))
}

/// As [`conform`], by one algorithm alone, on whole buffers and on slices of the least alignment that it takes.
pub(super) fn conform_by(cx: &Context<'_>, problem: &Problem, choice: &Choice) -> Result<f64> {
    let reference = &lacuna_reference::spmm(&problem.a, &problem.b, problem.n)?;
    Subject { cx, problem, reference, a: CsrMatrix::new(cx.device, &problem.a)? }.explicit(choice)
}

/// Every algorithm that the problem's N allows, the cheapest first.
pub(super) fn legal(cx: &Context<'_>, problem: &Problem) -> Vec<Choice> {
    choose(&lacuna::Problem {
        rows: problem.a.rows(),
        cols: problem.a.cols(),
        nnz: problem.a.nnz(),
        longest_row: problem.a.row_lengths().max().unwrap_or(0) as usize,
        n: problem.n,
        vector: 4,
        batch: 1,
        value: lacuna::ValueType::F32,
        index: lacuna::IndexType::U32,
        precision: lacuna::Precision::Single,
        multiprocessors: cx.device.info().multiprocessors,
        block_shared_bytes: cx.device.info().block_shared_bytes,
        sm: cx.device.info().sm,
    })
}

struct Subject<'a> {
    cx: &'a Context<'a>,
    problem: &'a Problem,
    reference: &'a SpmmReference,
    a: CsrMatrix,
}

/// One way to run the problem, for messages.
struct Way<'a> {
    kernel: &'a str,
    at: Placement,
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, B at {:?}, C at {:?}", self.kernel, self.at.b, self.at.c)
    }
}

impl Subject<'_> {
    fn automatic(&self, placements: &[Placement]) -> Result<f64> {
        let plan = Spmm::plan(&self.a, self.problem.n)?;
        let name = format!("automatic choice ({} where aligned)", plan.choice().entry);
        let whole = Way { kernel: &name, at: Placement::WHOLE };
        let (mut worst, first) = self.check(&plan, &whole)?;
        let second = self.run(&plan, whole.at).with_context(|| whole.to_string())?;
        same_bits("two runs of one plan", &first, &second, self.problem.n)
            .with_context(|| whole.to_string())?;
        let elements = self.problem.b.len().max(plan.output_len());
        if elements * size_of::<f32>() < HUGE_BYTES {
            for &at in placements {
                let (error, _) = self.check(&plan, &Way { kernel: &name, at })?;
                worst = worst.max(error);
            }
        }
        Ok(worst)
    }

    fn explicit(&self, choice: &Choice) -> Result<f64> {
        let plan = self.plan(choice.algorithm)?;
        let (worst, whole) = self.check(&plan, &Way { kernel: choice.entry, at: Placement::WHOLE })?;
        let offset = choice.tile.vector as usize;
        let way = Way { kernel: choice.entry, at: Placement::slices(offset, 3 * offset) };
        let slices = self.run(&plan, way.at).with_context(|| way.to_string())?;
        same_bits("whole buffers, then slices", &whole, &slices, self.problem.n)
            .with_context(|| way.to_string())?;
        Ok(worst)
    }

    fn plan(&self, algorithm: SpmmAlgorithm) -> Result<Spmm> {
        let options = SpmmOptions::default().algorithm(algorithm);
        let plan = Spmm::plan_with(&self.a, self.problem.n, options)?;
        let planned = plan.choice().algorithm;
        ensure!(planned == algorithm, "asked for {algorithm:?}, but {planned:?} was planned");
        Ok(plan)
    }

    /// Runs, and compares with the oracle: the largest error over its bound, and C.
    fn check(&self, plan: &Spmm, way: &Way<'_>) -> Result<(f64, Vec<f32>)> {
        let c = self.run(plan, way.at).with_context(|| way.to_string())?;
        let report = self.reference.check(&c).with_context(|| way.to_string())?;
        Ok((report.worst_over_bound, c))
    }

    /// Runs; gives C.
    fn run(&self, plan: &Spmm, at: Placement) -> Result<Vec<f32>> {
        let Context { device, stream, .. } = *self.cx;
        let b = Guarded::new(device, &self.problem.b, at.b)?;
        let mut c = Guarded::new(device, &vec![f32::from_bits(POISON); plan.output_len()], at.c)?;
        plan.run(stream, &self.a, b.slice()?, c.slice_mut()?)?;
        let c = c.read("C", stream)?;
        let unwritten = c.iter().position(|value| value.to_bits() == POISON);
        if let Some(at) = unwritten {
            let (row, column) = (at / self.problem.n, at % self.problem.n);
            anyhow::bail!("C: row {row}, column {column} was never written");
        }
        if at != Placement::WHOLE {
            let after = b.read("B", stream)?;
            same_bits("B before and after", &self.problem.b, &after, self.problem.n)?;
        }
        Ok(c)
    }
}
