//! Fitting the cost model's constants to measurements of every legal kernel.
use std::collections::BTreeMap;

use lacuna::spmm::{Constant, CostModel};
use rayon::prelude::*;

use super::evolution::minimize;
use super::samples::Sample;

/// Generations of each of two searches, and how far the first and the second step at first.
const GENERATIONS: i32 = 300;
const STEPS: [f64; 2] = [0.2, 0.1];
/// Costs that differ by this part count as nearly alike.
const BLUR: f64 = 0.02;
/// What a cost costs that is e times the time, against a choice that is e times slower than the best. It gives constants a
/// meaning where choices alone say little.
const TIMES: f64 = 0.004;
/// Cycles of a microsecond: the clock of an H200.
const CYCLES: f64 = 1980.0;
/// How the weight of a suite's problem falls with their number: large suites do not drown small ones.
const CROWD: f64 = 0.3;
/// The weight of a problem at another precision than the default.
const OTHER_PRECISION: f64 = 0.6;

/// The constants of a kind (`f32` or `16-bit`) with which the choices on `samples` are fastest, as far as was found. The search
/// begins in the middle of each constant's bounds: so it knows nothing of the shipped ones. The same samples give the same
/// constants.
///
/// The loss is smooth: of a problem all kernels count, by how near their cost is to the least. A choice that is right by a
/// hair on these samples would be wrong on others; so it counts as half wrong.
pub fn fit(samples: &[&Sample], model: &CostModel, kind: &str) -> CostModel {
    let constants: Vec<Constant> = model.file().fitted_to(kind).cloned().collect();
    let weights = weights(samples);
    let model_at = |point: &[f64]| {
        let values: Vec<f64> = constants.iter().zip(point).map(|(of, &u)| value(of, u)).collect();
        CostModel::new(model.file().clone().with_values(kind, &values))
    };
    let loss_at = |point: &[f64]| weighted_loss(samples, &weights, &model_at(point));
    let mut found = vec![0.5; constants.len()];
    for (seed, step) in STEPS.into_iter().enumerate() {
        found = minimize(&loss_at, found, step, GENERATIONS, seed as u64 + 1).0;
    }
    model_at(&found)
}

/// The mean of the problems' losses.
pub fn loss(samples: &[&Sample], model: &CostModel) -> f64 {
    weighted_loss(samples, &weights(samples), model)
}

/// The weight of each sample.
fn weights(samples: &[&Sample]) -> Vec<f64> {
    let mut counts = BTreeMap::new();
    for sample in samples {
        *counts.entry(sample.suite.as_str()).or_insert(0.0) += 1.0;
    }
    let of = |sample: &&Sample| {
        let other = if sample.suite.ends_with("fma") { OTHER_PRECISION } else { 1.0 };
        other / f64::powf(counts[sample.suite.as_str()], CROWD)
    };
    samples.iter().map(of).collect()
}

fn weighted_loss(samples: &[&Sample], weights: &[f64], model: &CostModel) -> f64 {
    // Summed in order, so that it does not depend on how many threads there are.
    let losses: Vec<f64> = samples.par_iter().map(|sample| loss_of(sample, model)).collect();
    losses.iter().zip(weights).map(|(loss, weight)| loss * weight).sum::<f64>() / weights.iter().sum::<f64>()
}

/// The mean of a problem's kernels' logarithms of time over the best, each weighed by how near its cost is to the least; and
/// how far costs are from times.
fn loss_of(sample: &Sample, model: &CostModel) -> f64 {
    let best = sample.best();
    let cost = |(choice, _): &(lacuna::spmm::Choice, f64)| model.cost(&sample.problem, choice.entry);
    let costs: Vec<f64> = sample.times.iter().map(cost).collect();
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    let (mut weights, mut losses, mut distance) = (0.0, 0.0, 0.0);
    for (cost, &(_, us)) in costs.iter().zip(&sample.times) {
        let weight = (least / cost).powf(1.0 / BLUR);
        weights += weight;
        losses += weight * (us / best).ln();
        distance += (best / us).powi(2) * (cost / CYCLES / us).ln().abs().min(2.0).powi(2);
    }
    losses / weights + TIMES * distance / costs.len() as f64
}

/// The value at a place between a constant's bounds, 0 to 1: of a part evenly, of others by their logarithm. It has three
/// digits: more would claim what measurements do not tell.
fn value(constant: &Constant, place: f64) -> f64 {
    let ([low, high], place) = (constant.bounds, place.clamp(0.0, 1.0));
    let value = if low > 0.0 { low * (high / low).powf(place) } else { low + place * (high - low) };
    format!("{value:.2e}").parse::<f64>().unwrap_or(value).clamp(low, high)
}
