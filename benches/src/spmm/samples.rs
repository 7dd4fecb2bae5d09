//! Problems with their kernels' times, from records, and how well a model chooses on them.
use std::collections::{BTreeMap, HashSet};

use anyhow::Result;
use lacuna::{IndexType, Precision, ValueType, spmm};

use crate::record::{Record, geometric_mean};
use lacuna_cases::exit::Usage;

/// Columns at once that measured operands allow: they are whole buffers without gaps.
const VECTOR: u32 = 8;
/// The types of values and indices that records may name.
const VALUES: [ValueType; 3] = [ValueType::F32, ValueType::F16, ValueType::Bf16];
const INDICES: [IndexType; 2] = [IndexType::U32, IndexType::U16];
/// The precisions that they may name.
const PRECISIONS: [(&str, Precision); 3] =
    [("single", Precision::Single), ("fma", Precision::Fma), ("tf32", Precision::Tf32)];

/// A problem, and what its kernels took.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its name in tables.
    pub name: String,
    /// What the chooser sees.
    pub problem: spmm::Problem,
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
        let problem = spmm::Problem {
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
        let legal = spmm::choose(&sample.problem);
        let legal: HashSet<&str> = legal.iter().map(|choice| choice.entry.name).collect();
        sample.times.retain(|entry, _| legal.contains(entry.as_str()));
    }
    samples.retain(|sample| sample.times.len() >= 2);
    Ok(samples)
}

impl Sample {
    /// Whether the fit must not see it: a third of all, by a hash of its shape. Other draws of one shape go with it, and
    /// the shape in other types, because they are nearly the same problem.
    pub fn is_held_out(&self) -> bool {
        let spmm::Problem { rows, cols, nnz, n, .. } = self.problem;
        let percent = (100.0 * nnz as f64 / (rows as f64 * cols as f64).max(1.0)).round() as usize;
        let numbers = [rows, cols, n, percent];
        let bytes = numbers.iter().flat_map(|&number| (number as u64).to_le_bytes());
        // 64-bit FNV-1a, whose high bits depend on all of the input.
        let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        (bytes.fold(0xcbf2_9ce4_8422_2325, fnv) >> 32).is_multiple_of(3)
    }

    /// The speed of the model's choice among the measured kernels, over that of the best of them.
    fn speed(&self, model: &spmm::CostModel) -> f64 {
        let choices = spmm::choose_by(&self.problem, model);
        let chosen = choices.iter().find_map(|choice| self.times.get(choice.entry.name));
        chosen.map_or(f64::NAN, |chosen| self.best() / chosen)
    }

    /// The time of the fastest kernel.
    pub(super) fn best(&self) -> f64 {
        self.times.values().copied().fold(f64::INFINITY, f64::min)
    }
}

/// How well a model chooses on samples; none without samples.
pub fn score<'s>(samples: impl IntoIterator<Item = &'s Sample>, model: &spmm::CostModel) -> Option<Score> {
    let speeds: Vec<(f64, &str)> =
        samples.into_iter().map(|sample| (sample.speed(model), sample.name.as_str())).collect();
    let mean = geometric_mean(speeds.iter().map(|&(speed, _)| speed))?;
    let &(worst, name) = speeds.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Score { mean, worst, worst_name: name.into() })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A problem with `row` nonzeros in each row.
    pub(in crate::spmm) fn problem(rows: usize, cols: usize, row: usize, n: usize) -> spmm::Problem {
        spmm::Problem {
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
        }
    }

    /// Problems whose kernels take what `truth` says.
    pub(in crate::spmm) fn synthetic(truth: &spmm::CostModel) -> Vec<Sample> {
        let mut samples = Vec::new();
        for rows in [256, 1024, 4096, 16_384] {
            for row in [8, 64, 300] {
                for n in [1, 8, 32, 128, 1024] {
                    let problem = problem(rows, 2048, row, n);
                    let choices = spmm::choose_by(&problem, truth);
                    let times =
                        choices.iter().map(|choice| (choice.entry.name.into(), choice.cost)).collect();
                    samples.push(Sample { name: format!("{rows} 2048 {row}"), problem, times });
                }
            }
        }
        samples
    }

    #[test]
    fn about_a_third_is_held_out_and_draws_of_a_shape_stay_together() {
        let samples = synthetic(&spmm::CostModel::H200);
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
        let mut samples = synthetic(&spmm::CostModel::H200);
        let best = spmm::choose(&samples[7].problem)[0].entry.name;
        *samples[7].times.get_mut(best).unwrap() *= 1000.0;
        let score = score(&samples, &spmm::CostModel::H200).unwrap();
        assert_eq!(score.worst_name, samples[7].name);
        assert!(score.worst < 0.5 && score.mean < 1.0, "{score:?}");
        assert_eq!(super::score(&[], &spmm::CostModel::H200), None);
    }
}
