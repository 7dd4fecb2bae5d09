//! Fitting the cost model's constants to measurements of every legal kernel.
use std::collections::BTreeMap;

use lacuna::spmm::{Choice, CostModel};
use rayon::prelude::*;

use super::samples::Sample;
use crate::fit::{self, Timed, search};

/// What a cost costs that is e times the time, against a choice that is e times slower than the best.
const TIMES: f64 = 0.004;
/// How the weight of a suite's problem falls with their number: large suites do not drown small ones.
const CROWD: f64 = 0.3;
/// The weight of a problem at another precision than the default.
const OTHER_PRECISION: f64 = 0.6;
/// Suites that count more: those that lost where a fit gained elsewhere.
const WEIGHTS: [(&str, f64); 9] = [
    ("dlmc f32", 3.0),
    ("imbalance f32 fma", 6.0),
    ("shapes f32", 4.0),
    ("shapes f32 fma", 3.0),
    ("table f32", 4.0),
    ("graphs f32", 3.0),
    ("rnn f32", 2.0),
    ("mobilenet f32", 2.0),
    ("dlmc f16 prepacked", 1.5),
];

/// The constants of a kind with which the choices on `samples` are fastest, as far as was found.
pub fn fit(samples: &[&Sample], model: &CostModel, kind: &str) -> CostModel {
    let weights = weights(samples);
    let loss = |file| weighted_loss(samples, &weights, &CostModel::new(file));
    CostModel::new(search(model.file(), kind, &loss))
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

fn loss_of(sample: &Sample, model: &CostModel) -> f64 {
    let timed = |&(choice, us): &(Choice, f64)| {
        let cost = model.cost(&sample.problem, choice.entry);
        Timed { cost, us, is_least: false }
    };
    fit::loss_of(&sample.times.iter().map(timed).collect::<Vec<_>>(), TIMES)
}

#[cfg(test)]
mod tests {
    use super::super::samples::tests::synthetic;
    use super::*;

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
}
