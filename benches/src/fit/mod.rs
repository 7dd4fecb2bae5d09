//! Fitting the constants of cost models to measurements: the loss of a problem, the search, and how well a model chooses.
mod evolution;

use lacuna::ValueType;
use lacuna::spmm::{Constant, ModelFile};

use self::evolution::minimize;
use crate::record::geometric_mean;

/// The searches, one after the other: how far each steps at first, and its generations.
const SEARCHES: [(f64, i32); 2] = [(0.04, 300), (0.02, 300)];
/// Costs that differ by this part count as nearly alike.
const BLUR: f64 = 0.02;
/// Cycles of a microsecond: the clock of an H200, and of an H100.
const CYCLES: f64 = 1980.0;
/// By how much a check moves each constant.
const NUDGES: [f64; 2] = [0.98, 1.02];
/// How much the loss may fall by that.
const MOST_GAIN: f64 = 5e-4;
/// Committed records of kernels with their splits have what is at most so many times as slow as the fastest. What is not there counts as
/// just so slow.
pub(crate) const LEFT_OUT: f64 = 1.6;

/// Whether the fit must not see a problem of these sizes (rows and columns of the sparse matrix, columns of the dense operands): a third of all,
/// by a hash of its shape. Other draws of one shape go with it, and the shape in other types, because they are nearly the same problem.
pub(crate) fn is_held_out([rows, cols, width]: [usize; 3], nnz: usize) -> bool {
    let percent = (100.0 * nnz as f64 / (rows as f64 * cols as f64).max(1.0)).round() as usize;
    let numbers = [rows, cols, width, percent];
    let bytes = numbers.iter().flat_map(|&number| (number as u64).to_le_bytes());
    // 64-bit FNV-1a, whose high bits depend on all of the input.
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    (bytes.fold(0xcbf2_9ce4_8422_2325, fnv) >> 32).is_multiple_of(3)
}

/// The constants of a kind with which `loss` is least, as far as was found. The search begins at the constants' `start`, and
/// knows nothing of their values. The same loss gives the same constants.
pub(crate) fn search(file: &ModelFile, kind: &str, loss: &(impl Fn(ModelFile) -> f64 + Sync)) -> ModelFile {
    let constants: Vec<Constant> = file.fitted_to(kind).cloned().collect();
    let file_at = |point: &[f64]| {
        let values: Vec<f64> = constants.iter().zip(point).map(|(of, &u)| value(of, u)).collect();
        file.clone().with_values(kind, &values)
    };
    let loss_at = |point: &[f64]| loss(file_at(point));
    let mut found: Vec<f64> = constants.iter().map(|of| place(of, of.start)).collect();
    for (seed, (step, generations)) in (1..).zip(SEARCHES) {
        found = minimize(&loss_at, found, step, generations, seed).0;
    }
    file_at(&found)
}

/// The constants of a kind of which a little more or less would choose much better, in words.
pub(crate) fn nudged(file: &ModelFile, kind: &str, loss: impl Fn(ModelFile) -> f64) -> Vec<String> {
    let before = loss(file.clone());
    let values: Vec<f64> = file.fitted_to(kind).map(|constant| constant.value).collect();
    let mut found = Vec::new();
    for (at, constant) in file.fitted_to(kind).enumerate() {
        for factor in NUDGES {
            let mut values = values.clone();
            values[at] = (values[at] * factor).clamp(constant.bounds[0], constant.bounds[1]);
            let after = loss(file.clone().with_values(kind, &values));
            if after < before - MOST_GAIN {
                let (name, [from, to]) = (&constant.name, [constant.value, values[at]]);
                found.push(format!("{kind}: {name} {from} to {to}: loss {before:.5} to {after:.5}"));
            }
        }
    }
    found
}

/// The type of values of this name.
pub(crate) fn value_named(name: &str) -> Option<ValueType> {
    [ValueType::F32, ValueType::F16, ValueType::Bf16].into_iter().find(|value| value.name() == name)
}

/// What a kernel costs, and what it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    /// The model's cycles.
    pub(crate) cost: f64,
    /// Microseconds.
    pub(crate) us: f64,
    /// Whether it took at least so long, and how long is not known.
    pub(crate) is_least: bool,
}

impl Timed {
    /// How far the cost is from the time: the square of the logarithm of one over the other, at most 4.
    pub(crate) fn distance(&self) -> f64 {
        let far = (self.cost / CYCLES / self.us).ln();
        let far = if self.is_least { far.min(0.0) } else { far };
        far.abs().min(2.0).powi(2)
    }
}

/// The loss of a problem: the mean of the logarithms of its kernels' times over the best, each weighed by how near its cost is to the least;
/// and, with weight `times`, how far costs are from times, which gives constants a meaning where choices alone say little.
///
/// It is smooth: of a problem all kernels count, by how near their cost is to the least. A choice that is right by a hair on
/// these samples would be wrong on others; so it counts as half wrong.
pub(crate) fn loss_of(kernels: &[Timed], times: f64) -> f64 {
    let least = |of: fn(&Timed) -> f64| kernels.iter().map(of).fold(f64::INFINITY, f64::min);
    let (least_cost, best) = (least(|kernel| kernel.cost), least(|kernel| kernel.us));
    let (mut weights, mut losses, mut distance) = (0.0, 0.0, 0.0);
    for kernel in kernels {
        let weight = (least_cost / kernel.cost).powf(1.0 / BLUR);
        weights += weight;
        losses += weight * (kernel.us / best).ln();
        distance += (best / kernel.us).powi(2) * kernel.distance();
    }
    losses / weights + times * distance / kernels.len() as f64
}

/// How well a model chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The speed of its choice over that of the best kernel, in geometric mean.
    pub mean: f64,
    /// The same on the problem where it is least.
    pub worst: f64,
    /// That problem's name.
    pub worst_name: String,
}

impl Score {
    /// Of the speed on each problem, with its name; none without problems.
    pub(crate) fn of<'s>(speeds: impl IntoIterator<Item = (f64, &'s str)>) -> Option<Self> {
        let speeds: Vec<(f64, &str)> = speeds.into_iter().collect();
        let mean = geometric_mean(speeds.iter().map(|&(speed, _)| speed))?;
        let &(worst, name) = speeds.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Self { mean, worst, worst_name: name.into() })
    }
}

/// The value at a place between a constant's bounds, 0 to 1: of a part evenly, of others by their logarithm. It has three
/// digits: more would claim what measurements do not tell.
fn value(constant: &Constant, place: f64) -> f64 {
    let ([low, high], place) = (constant.bounds, place.clamp(0.0, 1.0));
    let value = if low > 0.0 { low * (high / low).powf(place) } else { low + place * (high - low) };
    format!("{value:.2e}").parse::<f64>().unwrap_or(value).clamp(low, high)
}

/// The place of a value: [`value`]'s inverse.
fn place(constant: &Constant, value: f64) -> f64 {
    let [low, high] = constant.bounds;
    if low > 0.0 { (value / low).ln() / (high / low).ln() } else { (value - low) / (high - low) }
}

#[cfg(test)]
mod tests {
    use lacuna::{conv, sddmm, spmm};

    use super::*;

    #[test]
    fn a_choice_by_a_hair_counts_as_half_wrong() {
        let timed = |(cost, us)| Timed { cost, us, is_least: false };
        let wrong = |kernels: [(f64, f64); 2]| loss_of(&kernels.map(timed), 0.0);
        let e = std::f64::consts::E;
        assert!((wrong([(1000.0, 1.0), (1000.0, e)]) - 0.5).abs() < 1e-9);
        assert!(wrong([(1000.0, 1.0), (2000.0, e)]) < 1e-6, "right, by far");
        assert!(wrong([(1000.0, e), (2000.0, 1.0)]) > 1.0 - 1e-6, "wrong, by far");
    }

    #[test]
    fn costs_that_are_times_lose_nothing_and_times_that_are_not_known_have_no_end() {
        let of = |factor: f64, is_least| {
            let best = Timed { cost: CYCLES, us: 1.0, is_least: false };
            loss_of(&[best, Timed { cost: 5.0 * factor * CYCLES, us: 5.0, is_least }], 1.0)
        };
        assert!(of(1.0, false) < 1e-9 && of(2.0, true) < 1e-9);
        assert!(of(2.0, false) > 1e-3 && of(0.5, true) > 1e-3);
    }

    #[test]
    fn places_and_values_go_together_and_keep_to_bounds() {
        let (spmm, sddmm) = (spmm::CostModel::hopper(), sddmm::CostModel::hopper());
        for file in [spmm.file(), sddmm.file(), conv::CostModel::hopper().file()] {
            for constant in file.sections.iter().flat_map(|section| &section.constants) {
                let name = &constant.name;
                assert_eq!(value(constant, place(constant, constant.value)), constant.value, "{name}");
                let [low, high] = constant.bounds;
                assert_eq!([-1.0, 2.0].map(|place| value(constant, place)), [low, high], "{name}");
            }
        }
    }

    #[test]
    fn a_score_names_the_worst() {
        let score = Score::of([(1.0, "a"), (0.25, "b")]).unwrap();
        assert_eq!(score, Score { mean: 0.5, worst: 0.25, worst_name: "b".into() });
        assert_eq!(Score::of([]), None);
    }
}
