//! Fitting the chooser's constants to measurements of every legal kernel.
use lacuna::spmm;
use rayon::prelude::*;

use super::samples::{Sample, score};

/// By how much a constant is changed in one step of a descent.
const FACTORS: [f64; 14] = [0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.02, 1.05, 1.1, 1.25, 1.4, 2.0, 4.0];
/// Rounds over all constants at most. A descent mostly ends after some, when no step helps.
const MOST_ROUNDS: usize = 50;
/// A round that gains less is the last.
const LEAST_GAIN: f64 = 1e-5;
/// Descents from shaken constants.
const RESTARTS: usize = 30;
/// The most by which a constant is multiplied or divided before such a descent.
const MOST_SHAKING: f64 = 3.0;
/// Part of the constants that are shaken.
const SHAKEN: f64 = 0.3;
/// Costs that differ by this part count as nearly alike.
const BLUR: f64 = 0.02;
/// What a constant costs that is e times what it was, against a problem whose choice is e times slower. It keeps what the
/// problems say nothing of where it was.
const MOVING: f64 = 1e-5;

/// The constants with which the choices on `samples` are fastest in geometric mean, as far as was found: a descent from
/// `start`, and others from shaken constants, since what one constant does depends on the others. The same samples give
/// the same constants.
///
/// What is descended is smooth: of a problem all kernels count, by how near their cost is to the least. A choice that is
/// right by a hair on these samples would be wrong on others; so it counts as half wrong. What is found is given only where it
/// chooses better than `start` on these samples.
pub fn fit(samples: &[&Sample], start: spmm::CostModel) -> spmm::CostModel {
    let trials: Vec<Trial> = samples.iter().map(|sample| Trial::new(sample, &start)).collect();
    let (mut model, mut least) = descend(&trials, start, &start);
    let mut state = 1_u64;
    // Knuth's generator; its high bits as a number from 0 to 1.
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    for _ in 0..RESTARTS {
        let mut shaken = model;
        for value in shaken.values_mut() {
            if random() < SHAKEN {
                *value = three_digits(*value * MOST_SHAKING.powf(2.0 * random() - 1.0));
            }
        }
        let (there, loss) = descend(&trials, shaken, &start);
        if loss < least {
            (model, least) = (there, loss);
        }
    }
    let mean = |model: &spmm::CostModel| score(samples.iter().copied(), model).map(|score| score.mean);
    if mean(&model) > mean(&start) { model } else { start }
}

/// A problem, and its kernels' times.
struct Trial {
    problem: spmm::Problem,
    /// Each kernel, and the logarithm of its time over the best one's.
    kernels: Vec<(spmm::Choice, f64)>,
}

impl Trial {
    fn new(sample: &Sample, model: &spmm::CostModel) -> Self {
        let best = sample.best();
        let kernels = spmm::choose_by(&sample.problem, model).into_iter();
        let kernels = kernels
            .filter_map(|choice| Some((choice, (sample.times.get(choice.entry.name)? / best).ln())))
            .collect();
        Self { problem: sample.problem, kernels }
    }

    /// The mean of its kernels' logarithms, each weighed by how near its cost is to the least.
    fn loss(&self, model: &spmm::CostModel) -> f64 {
        let costs: Vec<f64> =
            self.kernels.iter().map(|(choice, _)| model.cost(&self.problem, choice.entry)).collect();
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let (mut weights, mut losses) = (0.0, 0.0);
        for (cost, (_, slower)) in costs.iter().zip(&self.kernels) {
            let weight = (least / cost).powf(1.0 / BLUR);
            weights += weight;
            losses += weight * slower;
        }
        losses / weights
    }

    /// Whether two models give its kernels the same costs.
    fn is_alike(&self, one: &spmm::CostModel, other: &spmm::CostModel) -> bool {
        let cost = |model: &spmm::CostModel, choice: &spmm::Choice| model.cost(&self.problem, choice.entry);
        self.kernels.iter().all(|(choice, _)| cost(one, choice) == cost(other, choice))
    }
}

/// The mean of the problems' losses, and what it costs that constants are not what they were.
fn loss(trials: &[Trial], model: &spmm::CostModel, from: &spmm::CostModel) -> f64 {
    let moved = model.values().into_iter().zip(from.values());
    let moved: f64 = moved.filter(|&(to, from)| to != from).map(|(to, from)| (to / from).ln().powi(2)).sum();
    trials.iter().map(|trial| trial.loss(model)).sum::<f64>() / trials.len() as f64 + MOVING * moved
}

/// Coordinate descent: one constant after the other takes the step that helps most, until none helps. Gives the constants
/// and their loss.
fn descend(trials: &[Trial], start: spmm::CostModel, from: &spmm::CostModel) -> (spmm::CostModel, f64) {
    let (mut model, mut least) = (start, loss(trials, &start, from));
    for _ in 0..MOST_ROUNDS {
        let before = least;
        for index in 0..spmm::CostModel::NAMES.len() {
            let step = |factor: f64| {
                let mut step = model;
                *step.values_mut()[index] = three_digits(model.values()[index] * factor);
                step
            };
            // Constants of kernels that these problems have not change nothing.
            let [down, up] = [FACTORS[0], FACTORS[FACTORS.len() - 1]].map(step);
            if trials.iter().all(|trial| trial.is_alike(&down, &up)) {
                continue;
            }
            let tried = |&factor: &f64| (step(factor), loss(trials, &step(factor), from));
            let steps: Vec<(spmm::CostModel, f64)> = FACTORS.par_iter().map(tried).collect();
            if let Some(&(step, there)) = steps.iter().min_by(|a, b| a.1.total_cmp(&b.1))
                && there < least
            {
                (model, least) = (step, there);
            }
        }
        if least > before - LEAST_GAIN {
            break;
        }
    }
    (model, least)
}

/// A positive number with three digits that count: more would claim what measurements do not tell.
fn three_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::super::samples::tests::{problem, synthetic};
    use super::*;

    #[test]
    fn a_choice_by_a_hair_counts_as_half_wrong() {
        let problem = problem(1024, 1024, 64, 128);
        let model = spmm::CostModel::H200;
        let choices = spmm::choose_by(&problem, &model);
        let (cheap, dear) = (choices[0], choices[choices.len() - 1]);
        let loss =
            |kernels: [(spmm::Choice, f64); 2]| Trial { problem, kernels: kernels.into() }.loss(&model);
        assert_eq!(loss([(cheap, 0.0), (cheap, 1.0)]), 0.5);
        assert!(loss([(cheap, 0.0), (dear, 1.0)]) < 1e-6, "right, by far");
        assert!(loss([(cheap, 1.0), (dear, 0.0)]) > 1.0 - 1e-6, "wrong, by far");
    }

    #[test]
    fn the_truth_scores_one_and_the_fit_finds_its_way_back() {
        let truth = spmm::CostModel::H200;
        let samples = synthetic(&truth);
        assert_eq!(score(&samples, &truth).unwrap().mean, 1.0);
        let mut wrong = truth;
        wrong.quad_latency /= 30.0;
        wrong.a_traffic *= 30.0;
        wrong.b_traffic *= 30.0;
        let (train, held_out): (Vec<_>, Vec<_>) = samples.iter().partition(|sample| !sample.is_held_out());
        let fitted = fit(&train, wrong);
        let mean = |samples: &[&Sample], model: &spmm::CostModel| {
            score(samples.iter().copied(), model).unwrap().mean
        };
        assert!(mean(&train, &wrong) < 0.95, "{}", mean(&train, &wrong));
        assert!(mean(&train, &fitted) > 0.999, "{}: {fitted:?}", mean(&train, &fitted));
        assert!(mean(&held_out, &fitted) > mean(&held_out, &wrong));
    }

    #[test]
    fn digits_that_count() {
        for (value, rounded) in [(540.04, 540.0), (0.123_45, 0.123), (1.0, 1.0), (99_960.0, 100_000.0)] {
            assert_eq!(three_digits(value), rounded);
        }
    }
}
