//! The check that nearly all cases share.
use std::borrow::Cow;
use std::fmt;

use anyhow::{Context as _, Result, ensure};
use half::{bf16, f16};
use lacuna::{CsrMatrix, Index, Precision, Spmm, spmm};
use lacuna_reference::SpmmReference;

use super::arithmetic::{cheapest_tiles, is_for_packs, is_tiles, precision_at};
use super::guarded::{Guarded, Placement};
use super::problem::Problem;
use crate::expect::same_bits;
use crate::{Context, Number};

/// Products up to which every legal algorithm for `f32` is tried, on the simulator and on a GPU.
const ALL_ALGORITHMS_UP_TO: [usize; 2] = [1 << 16, 1 << 24];

/// Products up to which 16-bit values are tried too, by every legal algorithm.
const ALL_VALUES_UP_TO: [usize; 2] = [1 << 16, 1 << 24];

/// Products up to which each type of values is tried with each type of indices.
const ALL_PAIRS_UP_TO: [usize; 2] = [1 << 13, 1 << 24];

/// Columns of A up to which the simulator tries every algorithm on tensor cores. These go along all of K, however few
/// the nonzeros: of larger K it tries the cheapest of each kind alone.
const SIMULATED_TILES_UP_TO: usize = 2304;

/// Bytes of B or C from which on they are tried as whole buffers only.
const HUGE_BYTES: usize = 1 << 28;

/// Checks C = A·B against the oracle; gives the largest error over its bound.
///
/// The library's choice runs twice on whole buffers, which must give the same bits, and once at each of `placements`.
/// Where the problem is small every legal algorithm runs on whole buffers and, with the same bits, on slices of the
/// least alignment that it takes, and those that take TF32, too. Small problems are then rounded to `bf16`, and to
/// `f16` with 16-bit indices where K allows; the smallest are tried with all other pairs of types. C is poisoned
/// before each run, and what lies around slices is guarded.
///
/// # Errors
/// What is wrong, with the algorithm and the placement.
pub fn conform(cx: &Context<'_>, problem: &Problem, placements: &[Placement]) -> Result<f64> {
    let reference = lacuna_reference::spmm(&problem.a, &problem.b, problem.n)?;
    let worst = conform_to(cx, problem, &reference, placements)?;
    let fits = |limits| problem.products() <= limit(cx, limits);
    if !fits(ALL_VALUES_UP_TO) {
        return Ok(worst);
    }
    let worst = worst.max(conform_as::<bf16, u32>(cx, problem, placements)?);
    if problem.a.cols() > u16::MAX.into() {
        return Ok(worst.max(conform_as::<f16, u32>(cx, problem, placements)?));
    }
    let worst = worst.max(conform_as::<f16, u16>(cx, problem, placements)?);
    if !fits(ALL_PAIRS_UP_TO) {
        return Ok(worst);
    }
    let rest = [
        conform_as::<f32, u16>(cx, problem, placements),
        conform_as::<f16, u32>(cx, problem, placements),
        conform_as::<bf16, u16>(cx, problem, placements),
    ];
    rest.into_iter().try_fold(worst, |worst, error| Ok(worst.max(error?)))
}

/// As [`conform`], in `f32` alone, with a reference that may have some of the rows only.
pub(super) fn conform_to(
    cx: &Context<'_>,
    problem: &Problem,
    reference: &SpmmReference,
    placements: &[Placement],
) -> Result<f64> {
    let subject = Subject::<f32, u32>::new(cx, problem, reference)?;
    let worst = subject.automatic(placements)?;
    if problem.products() > limit(cx, ALL_ALGORITHMS_UP_TO) {
        return Ok(worst);
    }
    let worst = worst.max(subject.every(Precision::Single, |_| true)?);
    Ok(worst.max(subject.every(Precision::Tf32, is_tiles)?))
}

/// As [`conform`], with values rounded to `T`, and by every legal algorithm.
fn conform_as<T: Number, I: Index>(
    cx: &Context<'_>,
    problem: &Problem,
    placements: &[Placement],
) -> Result<f64> {
    let check = || -> Result<f64> {
        let problem = problem.rounded::<T>()?;
        let reference = lacuna_reference::spmm(&problem.a, &problem.b, problem.n)?;
        let subject = Subject::<T, I>::new(cx, &problem, &reference)?;
        Ok(subject.automatic(placements)?.max(subject.every(Precision::Single, |_| true)?))
    };
    check().with_context(|| format!("{} and {}", T::TYPE, I::TYPE))
}

/// As [`conform`], with values rounded to `T`: by the library's choice, on tensor cores where aligned or not, and by every
/// algorithm on tensor cores, whose number it gives too. A is prepacked.
pub(super) fn conform_on_tiles<T: Number, I: Index>(
    cx: &Context<'_>,
    problem: &Problem,
    precision: Precision,
) -> Result<(f64, usize)> {
    let problem = problem.rounded::<T>()?;
    let reference = lacuna_reference::spmm(&problem.a, &problem.b, problem.n)?;
    let subject = Subject::<T, I>::prepacked(cx, &problem, &reference)?;
    let tiles = legal(&subject.a, problem.n, precision).into_iter().filter(is_tiles).count();
    let worst = subject.every(precision, is_tiles)?;
    Ok((worst.max(subject.chosen(precision, &[Placement::slices(1, 3)])?), tiles))
}

/// As [`conform`], with values rounded to `T` and prepacked, by every algorithm for prepacked weights, whose number it gives too.
pub(super) fn conform_prepacked<T: Number, I: Index>(
    cx: &Context<'_>,
    problem: &Problem,
    precision: Precision,
) -> Result<(f64, usize)> {
    let problem = problem.rounded::<T>()?;
    let reference = lacuna_reference::spmm(&problem.a, &problem.b, problem.n)?;
    let subject = Subject::<T, I>::prepacked(cx, &problem, &reference)?;
    let choices = legal(&subject.a, problem.n, precision);
    let packed = choices.iter().filter(|choice| is_for_packs(choice));
    packed.clone().try_fold((0.0, packed.clone().count()), |(worst, count): (f64, usize), choice| {
        Ok((worst.max(subject.explicit(precision, choice)?), count))
    })
}

/// As [`conform`], by one algorithm alone, on whole buffers and on slices of the least alignment that it takes.
pub(super) fn conform_by(cx: &Context<'_>, problem: &Problem, choice: &spmm::Choice) -> Result<f64> {
    let reference = lacuna_reference::spmm(&problem.a, &problem.b, problem.n)?;
    Subject::<f32, u32>::new(cx, problem, &reference)?.explicit(Precision::Single, choice)
}

/// As [`conform`], by the cheapest algorithm of each kind on tensor cores alone, with a reference that may have some of the rows only.
pub(super) fn conform_on_cheapest_tiles<T: Number>(
    cx: &Context<'_>,
    problem: &Problem<T>,
    reference: &SpmmReference<T>,
    precision: Precision,
) -> Result<f64> {
    let subject = Subject::<T, u32>::new(cx, problem, reference)?;
    let choices = legal(&subject.a, problem.n, precision);
    ensure!(choices.iter().any(is_tiles), "no algorithm on tensor cores is legal");
    cheapest_tiles(&choices)
        .try_fold(0.0, |worst: f64, choice| Ok(worst.max(subject.explicit(precision, choice)?)))
}

/// Every algorithm that is legal for aligned operands with `n` columns, the cheapest first.
pub(super) fn legal<T: Number, I: Index>(
    a: &CsrMatrix<T, I>,
    n: usize,
    precision: Precision,
) -> Vec<spmm::Choice> {
    spmm::choose(&lacuna::spmm::Problem { precision, ..lacuna::spmm::Problem::of(a, n, 8) })
}

/// The limit for the device.
fn limit(cx: &Context<'_>, [simulator, gpu]: [usize; 2]) -> usize {
    if cx.device.is_simulator() { simulator } else { gpu }
}

/// A problem on a device, with its reference.
struct Subject<'a, T: Number, I: Index> {
    cx: &'a Context<'a>,
    problem: &'a Problem<T>,
    reference: &'a SpmmReference<T>,
    a: CsrMatrix<T, I>,
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

impl<'a, T: Number, I: Index> Subject<'a, T, I> {
    fn new(cx: &'a Context<'a>, problem: &'a Problem<T>, reference: &'a SpmmReference<T>) -> Result<Self> {
        Ok(Self { cx, problem, reference, a: CsrMatrix::with_index(cx.device, &problem.a)? })
    }

    fn prepacked(
        cx: &'a Context<'a>,
        problem: &'a Problem<T>,
        reference: &'a SpmmReference<T>,
    ) -> Result<Self> {
        Ok(Self { cx, problem, reference, a: CsrMatrix::prepacked(cx.device, &problem.a)? })
    }

    /// By the library's choice with default options.
    fn automatic(&self, placements: &[Placement]) -> Result<f64> {
        self.chosen(Precision::default(), placements)
    }

    fn chosen(&self, precision: Precision, placements: &[Placement]) -> Result<f64> {
        let plan = self.plan(spmm::Options::default().precision(precision))?;
        let name = format!("automatic choice ({} where aligned)", plan.choice().entry.name);
        let whole = Way { kernel: &name, at: Placement::WHOLE };
        let (mut worst, first) = self.check(&plan, &whole)?;
        let second = self.run(&plan, whole.at).with_context(|| whole.to_string())?;
        same_bits("two runs of one plan", &first, &second, self.problem.n)
            .with_context(|| whole.to_string())?;
        let elements = self.problem.b.len().max(plan.output_len());
        if elements * size_of::<T>() < HUGE_BYTES {
            for &at in placements {
                let (error, _) = self.check(&plan, &Way { kernel: &name, at })?;
                worst = worst.max(error);
            }
        }
        Ok(worst)
    }

    /// By every legal algorithm that is `wanted`.
    fn every(&self, precision: Precision, wanted: impl Fn(&spmm::Choice) -> bool) -> Result<f64> {
        let choices = legal(&self.a, self.problem.n, precision);
        let long = self.cx.device.is_simulator() && self.a.cols() > SIMULATED_TILES_UP_TO;
        let is_tried = |choice: &spmm::Choice| {
            !(long && is_tiles(choice)) || cheapest_tiles(&choices).any(|cheapest| cheapest == choice)
        };
        choices
            .iter()
            .filter(|choice| wanted(choice) && is_tried(choice))
            .try_fold(0.0, |worst: f64, choice| Ok(worst.max(self.explicit(precision, choice)?)))
    }

    fn explicit(&self, precision: Precision, choice: &spmm::Choice) -> Result<f64> {
        let algorithm = choice.algorithm;
        let plan = self.plan(spmm::Options::default().precision(precision).algorithm(algorithm))?;
        let planned = plan.choice().entry.name;
        ensure!(
            planned == choice.entry.name,
            "asked for {algorithm:?}, {}, but {planned} was planned",
            choice.entry.name
        );
        let (worst, whole) = self.check(&plan, &Way { kernel: choice.entry.name, at: Placement::WHOLE })?;
        let offset = choice.entry.tile.vector as usize;
        let way = Way { kernel: choice.entry.name, at: Placement::slices(offset, 3 * offset) };
        let slices = self.run(&plan, way.at).with_context(|| way.to_string())?;
        same_bits("whole buffers, then slices", &whole, &slices, self.problem.n)
            .with_context(|| way.to_string())?;
        Ok(worst)
    }

    fn plan(&self, options: spmm::Options) -> Result<Spmm<T, I>> {
        Ok(Spmm::plan_with(&self.a, self.problem.n, options)?)
    }

    /// Runs, and compares with the oracle: the largest error over its bound, and C.
    fn check(&self, plan: &Spmm<T, I>, way: &Way<'_>) -> Result<(f64, Vec<T>)> {
        let c = self.run(plan, way.at).with_context(|| way.to_string())?;
        let reference = self.reference(precision_at::<T>(plan.choice(), way.at))?;
        let report = reference.check(&c).with_context(|| way.to_string())?;
        Ok((report.worst_over_bound, c))
    }

    /// The reference for this arithmetic.
    fn reference(&self, precision: lacuna_reference::Precision) -> Result<Cow<'_, SpmmReference<T>>> {
        if precision == lacuna_reference::Precision::Fp32 {
            return Ok(Cow::Borrowed(self.reference));
        }
        Ok(Cow::Owned(self.reference.clone().precision(precision)?))
    }

    /// Runs; gives C.
    fn run(&self, plan: &Spmm<T, I>, at: Placement) -> Result<Vec<T>> {
        let Context { device, stream, .. } = *self.cx;
        let b = Guarded::new(device, &self.problem.b, at.b)?;
        let mut c = Guarded::new(device, &vec![T::POISON; plan.output_len()], at.c)?;
        plan.run(stream, &self.a, b.slice()?, c.slice_mut()?)?;
        let c = c.read("C", stream)?;
        let unwritten = c.iter().position(|value| value.bits() == T::POISON.bits());
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
