//! The check that most cases share.
use std::borrow::Cow;

use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::{CsrMatrix, Index, Precision, Sddmm, sddmm, spmm};
use lacuna_reference::SddmmReference;

use super::problem::{Problem, transposed};
use crate::expect::same_bits;
use crate::spmm::Placement;
use crate::spmm::arithmetic::precision_on;
use crate::spmm::guarded::Guarded;
use crate::{Context, Number};

/// Products up to which every legal algorithm is tried, on the simulator and on a GPU.
const ALL_ALGORITHMS_UP_TO: [usize; 2] = [1 << 18, 1 << 28];
/// Products up to which 16-bit values are tried too.
const ALL_VALUES_UP_TO: [usize; 2] = [1 << 16, 1 << 28];
/// Products up to which each type of values is tried with each type of indices.
const ALL_PAIRS_UP_TO: [usize; 2] = [1 << 12, 1 << 28];

/// Checks D = (A·Bᵀ) ⊙ I\[C\] against the oracle; gives the largest error over its bound.
///
/// The library's choice runs twice on whole buffers, with tiles in either order, and with B given the other way, which must
/// give the same bits; on slices of every alignment; and scaled by C. Where the problem is small every legal algorithm runs
/// on whole buffers and, with the same bits, on slices of the least alignment that it takes; those that take TF32, too; and so
/// with values rounded to 16 bits. D is poisoned before each run, and what lies around slices is guarded.
///
/// # Errors
/// What is wrong, with the algorithm and the placement.
pub fn conform(cx: &Context<'_>, problem: &Problem) -> Result<f64> {
    let fits = |[simulated, on_gpu]: [usize; 2]| {
        problem.products() <= if cx.device.is_simulator() { simulated } else { on_gpu }
    };
    let every = fits(ALL_ALGORITHMS_UP_TO);
    let mut worst = conform_as::<f32, u32>(cx, problem, every)?;
    if !fits(ALL_VALUES_UP_TO) {
        return Ok(worst);
    }
    worst = worst.max(conform_as::<bf16, u32>(cx, problem, every)?);
    if problem.c.cols() > u16::MAX.into() {
        return Ok(worst.max(conform_as::<f16, u32>(cx, problem, every)?));
    }
    worst = worst.max(conform_as::<f16, u16>(cx, problem, every)?);
    if fits(ALL_PAIRS_UP_TO) {
        worst = worst.max(conform_as::<f32, u16>(cx, problem, every)?);
        worst = worst.max(conform_as::<f16, u32>(cx, problem, every)?);
        worst = worst.max(conform_as::<bf16, u16>(cx, problem, every)?);
    }
    Ok(worst)
}

fn conform_as<T: Number, I: Index>(cx: &Context<'_>, problem: &Problem, every: bool) -> Result<f64> {
    let check = || -> Result<f64> {
        let problem = &problem.rounded::<T>()?;
        let reference = &lacuna_reference::sddmm(problem.c.pattern(), &problem.a, &problem.b, problem.k)?;
        let c = CsrMatrix::<T, I>::with_index(cx.device, &problem.c)?;
        let subject = Subject { cx, problem, reference, c };
        let worst = subject.automatic()?;
        if !every {
            return Ok(worst);
        }
        let worst = worst.max(subject.every(sddmm::Options::default(), |_| true)?);
        let in_tf32 = sddmm::Options::default().precision(Precision::Tf32);
        Ok(worst.max(subject.every(in_tf32, |choice| {
            choice.entry.tile.scheme.arithmetic() == Some(spmm::Arithmetic::Tf32)
        })?))
    };
    check().with_context(|| format!("{} and {}", T::TYPE, I::TYPE))
}

/// Checks every legal algorithm with K in so many splits against the oracle; gives the largest error over its bound.
///
/// # Errors
/// What is wrong, with the algorithm and the placement.
pub(super) fn conform_in_splits<T: Number>(
    cx: &Context<'_>,
    problem: &Problem,
    splits: usize,
) -> Result<f64> {
    let problem = &problem.rounded::<T>()?;
    let reference = &lacuna_reference::sddmm(problem.c.pattern(), &problem.a, &problem.b, problem.k)?;
    let c = CsrMatrix::<T, u32>::with_index(cx.device, &problem.c)?;
    let subject = Subject { cx, problem, reference, c };
    subject.every(sddmm::Options::default().splits(splits), |_| true).with_context(|| T::TYPE.to_string())
}

/// The oracle's arithmetic of a plan whose choice for aligned operands is `choice`, for operands at a placement: tensor
/// cores take A and B at multiples of 16 bytes only, and plans fall back to `f32` elsewhere.
pub(super) fn precision_at<T: Number>(choice: &sddmm::Choice, at: Placement) -> lacuna_reference::Precision {
    if at.is_aligned(size_of::<T>()) {
        precision_on(choice.entry.tile.scheme.arithmetic())
    } else {
        lacuna_reference::Precision::Fp32
    }
}

/// A problem on a device, and what it must give.
struct Subject<'s, T: Number, I: Index> {
    cx: &'s Context<'s>,
    problem: &'s Problem<T>,
    reference: &'s SddmmReference<T>,
    c: CsrMatrix<T, I>,
}

impl<T: Number, I: Index> Subject<'_, T, I> {
    /// By the library's choice.
    fn automatic(&self) -> Result<f64> {
        let plan = Sddmm::plan(&self.c, self.problem.k)?;
        let (mut worst, first) = self.check(&plan, Placement::WHOLE)?;
        let (_, second) = self.check(&plan, Placement::WHOLE)?;
        self.same("two runs of one plan", &first, &second)?;
        for at in Placement::USUAL {
            worst = worst.max(self.check(&plan, at)?.0);
        }
        let scaled = self.run(&plan, Placement::WHOLE, &self.problem.b, true).context("scaled")?;
        let reference = self.reference_of(&plan, Placement::WHOLE)?;
        let report = reference.check_scaled(self.problem.c.values(), &scaled).context("scaled")?;
        worst = worst.max(report.worst_over_bound);

        for schedule in [sddmm::Schedule::Unsorted, sddmm::Schedule::ByColumn] {
            let plan =
                Sddmm::plan_with(&self.c, self.problem.k, sddmm::Options::default().schedule(schedule))?;
            let (_, ordered) = self.check(&plan, Placement::WHOLE)?;
            self.same("tiles in one order, then another", &first, &ordered)?;
        }

        let options = sddmm::Options::default().b_transposed();
        let plan = Sddmm::plan_with(&self.c, self.problem.k, options)?;
        let b = transposed(&self.problem.b, self.problem.k);
        for at in [Placement::WHOLE, Placement::slices(3, 0)] {
            let third = self.run(&plan, at, &b, false).context("B as K×N")?;
            self.same("B as N×K, then as K×N", &first, &third)?;
        }
        Ok(worst)
    }

    /// By every legal algorithm that is `wanted`.
    fn every(&self, options: sddmm::Options, wanted: impl Fn(&sddmm::Choice) -> bool) -> Result<f64> {
        let automatic = Sddmm::plan_with(&self.c, self.problem.k, options)?;
        let [choices, ..] = automatic.legal();
        let mut worst = 0.0_f64;
        for choice in choices.into_iter().filter(wanted) {
            let options = options.algorithm(choice.algorithm);
            let plan = Sddmm::plan_with(&self.c, self.problem.k, options)?;
            let planned = plan.choice().entry.name;
            ensure!(
                planned == choice.entry.name,
                "asked for {}, but {planned} was planned",
                choice.entry.name
            );
            let (error, whole) = self.check(&plan, Placement::WHOLE)?;
            let (vector, at) = (choice.entry.tile.vector as usize, Placement::slices);
            let (_, slices) = self.check(&plan, at(vector, 3 * vector))?;
            self.same("whole buffers, then slices", &whole, &slices).with_context(|| choice.entry.name)?;
            worst = worst.max(error);
        }
        Ok(worst)
    }

    fn same(&self, what: &str, first: &[T], second: &[T]) -> Result<()> {
        same_bits(what, first, second, first.len())
    }

    /// Runs, and compares with the oracle: the largest error over its bound, and D.
    fn check(&self, plan: &Sddmm<T, I>, at: Placement) -> Result<(f64, Vec<T>)> {
        let check = || -> Result<(f64, Vec<T>)> {
            let d = self.run(plan, at, &self.problem.b, false)?;
            Ok((self.reference_of(plan, at)?.check(&d)?.worst_over_bound, d))
        };
        check().with_context(|| format!("{}, {at:?}", plan.choice().entry.name))
    }

    /// The reference for the arithmetic of a plan.
    fn reference_of(&self, plan: &Sddmm<T, I>, at: Placement) -> Result<Cow<'_, SddmmReference<T>>> {
        let precision = precision_at::<T>(plan.choice(), at);
        if precision == lacuna_reference::Precision::Fp32 {
            return Ok(Cow::Borrowed(self.reference));
        }
        Ok(Cow::Owned(self.reference.clone().precision(precision)?))
    }

    /// Runs; gives the values of D. A placement's C is where A lies.
    fn run(&self, plan: &Sddmm<T, I>, at: Placement, b: &[T], scaled: bool) -> Result<Vec<T>> {
        let Context { device, stream, .. } = *self.cx;
        let a = Guarded::new(device, &self.problem.a, at.c)?;
        let b_on_device = Guarded::new(device, b, at.b)?;
        let mut d = self.c.with_values(&vec![T::POISON; self.c.nnz()])?;
        if scaled {
            plan.run_scaled(stream, a.slice()?, b_on_device.slice()?, &self.c, &mut d)?;
        } else {
            plan.run(stream, a.slice()?, b_on_device.slice()?, &mut d)?;
        }
        let values = d.values()?.download(stream)?;
        let unwritten = values.iter().position(|value| value.bits() == T::POISON.bits());
        ensure!(unwritten.is_none(), "D: nonzero {} was never written", unwritten.unwrap_or_default());
        if at != Placement::WHOLE {
            self.same("A before and after", &self.problem.a, &a.read("A", stream)?)?;
            self.same("B before and after", b, &b_on_device.read("B", stream)?)?;
        }
        Ok(values)
    }
}
