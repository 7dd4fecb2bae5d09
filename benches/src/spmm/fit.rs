//! Fitting the chooser's constants to measurements of every legal kernel.
use std::collections::{BTreeMap, HashSet};

use anyhow::Result;
use lacuna::{CostModel, IndexType, Precision, Problem, ValueType, choose, choose_by};

use crate::exit::Usage;
use crate::record::{Record, geometric_mean};

/// Columns at once that measured operands allow: they are whole buffers without gaps.
const VECTOR: u32 = 8;
/// The types of values and indices that records may name.
const VALUES: [ValueType; 3] = [ValueType::F32, ValueType::F16, ValueType::Bf16];
const INDICES: [IndexType; 2] = [IndexType::U32, IndexType::U16];
/// The precisions that they may name.
const PRECISIONS: [(&str, Precision); 3] =
    [("single", Precision::Single), ("fma", Precision::Fma), ("tf32", Precision::Tf32)];
/// By how much a constant is changed in one step of the fit.
const FACTORS: [f64; 14] = [0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.02, 1.05, 1.1, 1.25, 1.4, 2.0, 4.0];
/// Rounds over all constants at most. A descent mostly ends after a few, when no step helps.
const MOST_ROUNDS: usize = 50;
/// Descents from shaken constants.
const RESTARTS: usize = 30;
/// The most by which a constant is multiplied or divided before such a descent.
const MOST_SHAKING: f64 = 3.0;

/// A problem, and what its kernels took.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its name in tables.
    pub name: String,
    /// What the chooser sees.
    pub problem: Problem,
    /// The median in microseconds, by entry point; of several measurements the least.
    pub times: BTreeMap<String, f64>,
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

/// The problems in records, each with its kernels' times. Left out are wrong results, kernels that this version has not,
/// and problems with fewer than two kernels, which leave nothing to choose.
///
/// # Errors
/// [`Usage`]: records of several GPUs, without a time, without the numbers that the chooser sees, or of unknown types or
/// precisions.
pub fn samples(records: &[Record]) -> Result<Vec<Sample>> {
    let mut samples: BTreeMap<([&str; 3], [usize; 5], bool), Sample> = BTreeMap::new();
    for record in records.iter().filter(|record| record.op == "spmm") {
        let usage = |what: String| Usage(format!("{}, N {}: {what}", record.case, record.n));
        let (first, machine) = (&records[0].machine, &record.machine);
        if first.device != machine.device {
            let two = format!("`{}` and `{}`", first.device, machine.device);
            return Err(usage(format!("{two}: expected records of one GPU; fit each by itself")).into());
        }
        let time = record.median_us().ok_or_else(|| {
            usage("no time was measured; expected records of a GPU, not of the simulator".into())
        })?;
        let (Some(longest_row), Some(multiprocessors), Some(sm)) =
            (record.longest_row, machine.multiprocessors, machine.sm)
        else {
            let fields = "`longest_row`, `multiprocessors` or `sm` is missing";
            return Err(usage(format!("{fields}; measure again by `sweep --all-algorithms`")).into());
        };
        if !(record.is_right() && time.is_finite() && time > 0.0) {
            continue;
        }
        let (rows, cols, nnz, n) = (record.m, record.k, record.nnz, record.n);
        let (dtype, index) = (record.dtype.as_str(), record.index.as_str());
        let types = (
            VALUES.into_iter().find(|value| value.name() == dtype),
            INDICES.into_iter().find(|known| known.name() == index),
        );
        let (Some(value), Some(column)) = types else {
            let known = "expected values of f32, f16 or bf16, and indices of u32 or u16";
            return Err(usage(format!("{known}; got `{dtype}` and `{index}`")).into());
        };
        let named = record.precision.as_str();
        let Some(&(_, precision)) = PRECISIONS.iter().find(|(name, _)| *name == named) else {
            return Err(usage(format!("expected precision single, fma or tf32; got `{named}`")).into());
        };
        let problem = Problem {
            rows,
            cols,
            nnz,
            longest_row,
            n,
            vector: VECTOR,
            batch: 1,
            value,
            index: column,
            precision,
            packed: record.packed,
            multiprocessors,
            block_shared_bytes: 227 * 1024,
            sm,
        };
        let shape = [rows, cols, nnz, longest_row, n];
        let sample = samples.entry(([dtype, index, named], shape, record.packed)).or_insert_with(|| Sample {
            name: format!("{}, N {n}, {dtype} {index} {named}", record.case),
            problem,
            times: BTreeMap::new(),
        });
        let known = sample.times.entry(record.algorithm.clone()).or_insert(time);
        *known = known.min(time);
    }
    let mut samples: Vec<Sample> = samples.into_values().collect();
    for sample in &mut samples {
        let legal = choose(&sample.problem);
        let legal: HashSet<&str> = legal.iter().map(|choice| choice.entry).collect();
        sample.times.retain(|entry, _| legal.contains(entry.as_str()));
    }
    samples.retain(|sample| sample.times.len() >= 2);
    Ok(samples)
}

impl Sample {
    /// Whether the fit must not see it: a third of all, by a hash of its shape. Other draws of one shape go with it, and
    /// the shape in other types, because they are nearly the same problem.
    pub fn is_held_out(&self) -> bool {
        let Problem { rows, cols, nnz, n, .. } = self.problem;
        let percent = (100.0 * nnz as f64 / (rows as f64 * cols as f64).max(1.0)).round() as usize;
        let numbers = [rows, cols, n, percent];
        let bytes = numbers.iter().flat_map(|&number| (number as u64).to_le_bytes());
        // 64-bit FNV-1a, whose high bits depend on all of the input.
        let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        (bytes.fold(0xcbf2_9ce4_8422_2325, fnv) >> 32).is_multiple_of(3)
    }

    /// The speed of the model's choice among the measured kernels, over that of the best of them.
    fn speed(&self, model: &CostModel) -> f64 {
        let best = self.times.values().copied().fold(f64::INFINITY, f64::min);
        let choices = choose_by(&self.problem, model);
        let chosen = choices.iter().find_map(|choice| self.times.get(choice.entry));
        chosen.map_or(f64::NAN, |chosen| best / chosen)
    }
}

/// How well a model chooses on samples; none without samples.
pub fn score<'s>(samples: impl IntoIterator<Item = &'s Sample>, model: &CostModel) -> Option<Score> {
    let speeds: Vec<(f64, &str)> =
        samples.into_iter().map(|sample| (sample.speed(model), sample.name.as_str())).collect();
    let mean = geometric_mean(speeds.iter().map(|&(speed, _)| speed))?;
    let &(worst, name) = speeds.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Score { mean, worst, worst_name: name.into() })
}

/// The constants with which the choices on `samples` are fastest in geometric mean, as far as was found: a descent from
/// `start`, and others from shaken constants, since what one constant does depends on the others. The same samples give
/// the same constants.
pub fn fit(samples: &[&Sample], start: CostModel) -> CostModel {
    let (mut model, mut least) = descend(samples, start);
    let mut state = 1_u64;
    let mut shaken = |value: f64| {
        // Knuth's generator; its high bits as a number from -1 to 1.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = (state >> 33) as f64 / f64::from(1 << 30) - 1.0;
        three_digits(value * MOST_SHAKING.powf(part))
    };
    for _ in 0..RESTARTS {
        let mut start = model;
        for value in start.values_mut() {
            *value = shaken(*value);
        }
        let (there, loss) = descend(samples, start);
        if loss < least {
            (model, least) = (there, loss);
        }
    }
    model
}

/// Coordinate descent: one constant after the other takes the step that helps most, until none helps. Gives the constants
/// and their loss, the sum of log(time of the choice / time of the best).
fn descend(samples: &[&Sample], start: CostModel) -> (CostModel, f64) {
    let loss =
        |model: &CostModel| -> f64 { samples.iter().map(|sample| -sample.speed(model).ln()).sum::<f64>() };
    let (mut model, mut least) = (start, loss(&start));
    for _ in 0..MOST_ROUNDS {
        let before = least;
        for index in 0..CostModel::NAMES.len() {
            let from = model;
            for factor in FACTORS {
                let mut step = from;
                if let Some(value) = step.values_mut().into_iter().nth(index) {
                    *value = three_digits(*value * factor);
                }
                let there = loss(&step);
                if there < least {
                    (model, least) = (step, there);
                }
            }
        }
        if least >= before {
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
    use super::*;

    /// A problem whose kernels take what `truth` says.
    fn sample(rows: usize, cols: usize, row: usize, n: usize, truth: &CostModel) -> Sample {
        let problem = Problem {
            rows,
            cols,
            nnz: rows * row,
            longest_row: row + row / 4,
            n,
            vector: VECTOR,
            batch: 1,
            value: ValueType::F32,
            index: IndexType::U32,
            precision: Precision::Single,
            packed: false,
            block_shared_bytes: 227 * 1024,
            multiprocessors: 132,
            sm: 90,
        };
        let times =
            choose_by(&problem, truth).iter().map(|choice| (choice.entry.into(), choice.cost)).collect();
        Sample { name: format!("{rows} {cols} {row}"), problem, times }
    }

    fn synthetic(truth: &CostModel) -> Vec<Sample> {
        let mut samples = Vec::new();
        for rows in [256, 1024, 4096, 16_384] {
            for row in [8, 64, 300] {
                for n in [1, 8, 32, 128, 1024] {
                    samples.push(sample(rows, 2048, row, n, truth));
                }
            }
        }
        samples
    }

    #[test]
    fn the_truth_scores_one_and_the_fit_finds_its_way_back() {
        let truth = CostModel::H200;
        let samples = synthetic(&truth);
        assert_eq!(score(&samples, &truth).unwrap().mean, 1.0);
        let mut wrong = truth;
        wrong.quad_latency /= 30.0;
        wrong.a_traffic *= 30.0;
        wrong.b_traffic *= 30.0;
        let (train, held_out): (Vec<_>, Vec<_>) = samples.iter().partition(|sample| !sample.is_held_out());
        let fitted = fit(&train, wrong);
        let mean =
            |samples: &[&Sample], model: &CostModel| score(samples.iter().copied(), model).unwrap().mean;
        assert!(mean(&train, &wrong) < 0.95, "{}", mean(&train, &wrong));
        assert!(mean(&train, &fitted) > 0.999, "{}: {fitted:?}", mean(&train, &fitted));
        assert!(mean(&held_out, &fitted) > mean(&held_out, &wrong));
    }

    #[test]
    fn about_a_third_is_held_out_and_draws_of_a_shape_stay_together() {
        let samples = synthetic(&CostModel::H200);
        let held_out = samples.iter().filter(|sample| sample.is_held_out()).count();
        assert!((samples.len() / 5..samples.len() / 2).contains(&held_out), "{held_out}");
        for sample in &samples {
            let mut other = sample.clone();
            other.problem.longest_row += 7;
            assert_eq!(sample.is_held_out(), other.is_held_out());
        }
    }

    #[test]
    fn the_worst_problem_is_named() {
        let mut samples = synthetic(&CostModel::H200);
        let best = choose(&samples[7].problem)[0].entry;
        *samples[7].times.get_mut(best).unwrap() *= 1000.0;
        let score = score(&samples, &CostModel::H200).unwrap();
        assert_eq!(score.worst_name, samples[7].name);
        assert!(score.worst < 0.5 && score.mean < 1.0, "{score:?}");
        assert_eq!(super::score(&[], &CostModel::H200), None);
    }

    #[test]
    fn digits_that_count() {
        for (value, rounded) in [(540.04, 540.0), (0.123_45, 0.123), (1.0, 1.0), (99_960.0, 100_000.0)] {
            assert_eq!(three_digits(value), rounded);
        }
    }
}
