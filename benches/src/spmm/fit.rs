//! Fitting the cost model's constants to measurements of every legal kernel.
use std::collections::BTreeMap;

use lacuna::spmm::{Constant, CostModel};
use rayon::prelude::*;

use super::evolution::minimize;
use super::samples::Sample;

/// The searches, one after the other: how far each steps at first, and its generations.
const SEARCHES: [(f64, i32); 2] = [(0.04, 300), (0.02, 300)];
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
/// Suites that count more: those that lost where a fit gained elsewhere.
const WEIGHTS: [(&str, f64); 8] = [
    ("dlmc f32", 3.0),
    ("imbalance f32 fma", 6.0),
    ("shapes f32", 4.0),
    ("shapes f32 fma", 3.0),
    ("table f32", 4.0),
    ("graphs f32", 3.0),
    ("rnn f32", 2.0),
    ("mobilenet f32", 2.0),
];

/// The constants of a kind (`f32` or `16-bit`) with which the choices on `samples` are fastest, as far as was found. The search
/// begins at the constants' `start`, and knows nothing of their values. The same samples give the same constants.
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
    let mut found: Vec<f64> = constants.iter().map(|of| place(of, of.start)).collect();
    for (seed, (step, generations)) in (1..).zip(SEARCHES) {
        found = minimize(&loss_at, found, step, generations, seed).0;
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
        let more = WEIGHTS.iter().find(|(suite, _)| *suite == sample.suite).map_or(1.0, |&(_, more)| more);
        other * more / f64::powf(counts[sample.suite.as_str()], CROWD)
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

/// The place of a value: [`value`]'s inverse.
fn place(constant: &Constant, value: f64) -> f64 {
    let [low, high] = constant.bounds;
    if low > 0.0 { (value / low).ln() / (high / low).ln() } else { (value - low) / (high - low) }
}

#[cfg(test)]
mod tests {
    use super::super::samples::tests::synthetic;
    use super::*;

    #[test]
    fn a_choice_by_a_hair_counts_as_half_wrong() {
        let model = CostModel::hopper();
        let problem = lacuna::spmm::Problem::new(1024, 1024, 1024 * 64, 128);
        let choices = lacuna::spmm::choose(&problem);
        let (cheap, dear) = (choices[0], choices[choices.len() - 1]);
        let distance = |sample: &Sample| {
            let part = |&(choice, us): &(lacuna::spmm::Choice, f64)| {
                let far = (model.cost(&problem, choice.entry) / CYCLES / us).ln().abs().min(2.0);
                (sample.best() / us).powi(2) * far.powi(2)
            };
            TIMES * sample.times.iter().map(part).sum::<f64>() / 2.0
        };
        let wrong = |kernels: [(lacuna::spmm::Choice, f64); 2]| {
            let sample = Sample { suite: String::new(), name: String::new(), problem, times: kernels.into() };
            loss_of(&sample, model) - distance(&sample)
        };
        let e = std::f64::consts::E;
        assert!((wrong([(cheap, 1.0), (cheap, e)]) - 0.5).abs() < 1e-9);
        assert!(wrong([(cheap, 1.0), (dear, e)]) < 1e-6, "right, by far");
        assert!(wrong([(cheap, e), (dear, 1.0)]) > 1.0 - 1e-6, "wrong, by far");
    }

    #[test]
    fn the_truth_has_the_least_loss() {
        let truth = CostModel::hopper();
        let samples = synthetic(truth);
        let samples: Vec<&Sample> = samples.iter().collect();
        let file = truth.file();
        let mut values: Vec<f64> = file.fitted_to("f32").map(|constant| constant.value).collect();
        values[1] /= 10.0;
        let wrong = CostModel::new(file.clone().with_values("f32", &values));
        assert!(loss(&samples, truth) < 0.9 * loss(&samples, &wrong));
    }

    #[test]
    fn places_and_values_go_together_and_keep_to_bounds() {
        for constant in CostModel::hopper().file().fitted_to("f32") {
            assert_eq!(value(constant, place(constant, constant.value)), constant.value, "{}", constant.name);
            let [low, high] = constant.bounds;
            assert_eq!([-1.0, 2.0].map(|place| value(constant, place)), [low, high], "{}", constant.name);
        }
    }
}
