//! Problems with their kernels' times, from the records of the fit, and how well a model chooses on them.
use lacuna::{Precision, ValueType, spmm};
use lacuna_cases::exit::Usage;

use super::timed::{Gpu, Timed};
use crate::fit::{Score, is_held_out};

/// A problem, and what its kernels took.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The suite that it is from; that with `fma` where only what [`Precision::Fma`] allows was taken of its kernels.
    pub suite: String,
    /// Its name in tables.
    pub name: String,
    /// What the heuristic sees.
    pub problem: spmm::Problem,
    /// The median in microseconds of each kernel that the library may choose.
    pub times: Vec<(spmm::Choice, f64)>,
}

/// The samples of a problem: at the precision at which it was measured; and of the default one, where [`Precision::Fma`] leaves others to
/// choose from, at that.
///
/// # Errors
/// Values of another type than `f32` and `f16`; no time of an entry point that this version has.
pub fn samples(gpu: &Gpu, timed: &Timed) -> Result<Vec<Sample>, Usage> {
    if timed.tf32 {
        return Ok(vec![sample(gpu, timed, Precision::Tf32)?]);
    }
    let default = sample(gpu, timed, Precision::Single)?;
    let exact = sample(gpu, timed, Precision::Fma)?;
    let others = (2..default.times.len()).contains(&exact.times.len());
    let is_unpacked_f32 = default.problem.value == ValueType::F32 && !timed.prepacked;
    let exact = (others && is_unpacked_f32).then_some(exact);
    Ok(exact.into_iter().chain([default]).collect())
}

fn sample(gpu: &Gpu, timed: &Timed, precision: Precision) -> Result<Sample, Usage> {
    let values = [ValueType::F32, ValueType::F16];
    let value = values.into_iter().find(|value| value.name() == timed.value);
    let value =
        value.ok_or_else(|| Usage(format!("expected values of f32 or f16, got `{}`", timed.value)))?;
    // Measured operands are whole buffers without gaps, and the measured GPUs have an H200's shared memory.
    let problem = spmm::Problem {
        longest_row: timed.longest_row,
        lengths: spmm::RowLengths::from_counts(timed.rows as u32, timed.nonempty, &timed.longer),
        value,
        precision,
        // The times are of rows that were whole.
        longest_piece: Some(usize::MAX),
        prepacked: timed.prepacked,
        multiprocessors: gpu.multiprocessors,
        sm: gpu.sm,
        ..spmm::Problem::new(timed.rows, timed.cols, timed.nnz, timed.n)
    };
    let choices = spmm::choose(&problem).into_iter();
    let times: Vec<_> =
        choices.filter_map(|choice| Some((choice, *timed.us.get(choice.entry.name)?))).collect();
    if times.is_empty() {
        return Err(Usage(format!("{}: expected times of this version's entry points", timed.case)));
    }
    let exact = match precision {
        Precision::Fma => " fma",
        Precision::Tf32 => " tf32",
        _ => "",
    };
    let prepacked = if timed.prepacked { " prepacked" } else { "" };
    Ok(Sample {
        suite: format!("{} {}{prepacked}{exact}", timed.suite, timed.value),
        name: format!("{}, N {}{prepacked}{exact}", timed.case, timed.n),
        problem,
        times,
    })
}

impl Sample {
    /// Whether the fit must not see it: a third of all.
    pub fn is_held_out(&self) -> bool {
        let spmm::Problem { rows, cols, nnz, n, .. } = self.problem;
        is_held_out([rows, cols, n], nnz)
    }

    /// The speed of the model's choice among the measured kernels, over that of the best of them.
    fn speed(&self, model: &spmm::CostModel) -> f64 {
        let cost = |choice: &spmm::Choice| model.cost(&self.problem, choice.entry);
        let chosen = self.times.iter().min_by(|a, b| cost(&a.0).total_cmp(&cost(&b.0)));
        chosen.map_or(f64::NAN, |chosen| self.best() / chosen.1)
    }

    /// The time of the fastest kernel.
    pub(super) fn best(&self) -> f64 {
        self.times.iter().map(|&(_, us)| us).fold(f64::INFINITY, f64::min)
    }
}

/// How well a model chooses on samples; none without samples.
pub fn score<'s>(samples: impl IntoIterator<Item = &'s Sample>, model: &spmm::CostModel) -> Option<Score> {
    Score::of(samples.into_iter().map(|sample| (sample.speed(model), sample.name.as_str())))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Problems whose kernels take what `truth` says.
    pub(in crate::spmm) fn synthetic(truth: &spmm::CostModel) -> Vec<Sample> {
        let mut samples = Vec::new();
        for rows in [256, 1024, 4096, 16_384] {
            for row in [8, 64, 300] {
                for n in [1, 8, 32, 128, 1024] {
                    let problem = spmm::Problem::new(rows, 2048, rows * row, n);
                    let cost = |choice: &spmm::Choice| truth.cost(&problem, choice.entry);
                    let times = spmm::choose(&problem).iter().map(|choice| (*choice, cost(choice))).collect();
                    let name = format!("{rows} 2048 {row}, N {n}");
                    samples.push(Sample { suite: "synthetic f32".into(), name, problem, times });
                }
            }
        }
        samples
    }

    #[test]
    fn about_a_third_is_held_out_and_draws_of_a_shape_stay_together() {
        let samples = synthetic(spmm::CostModel::hopper());
        let held_out = samples.iter().filter(|sample| sample.is_held_out()).count();
        assert!((samples.len() / 5..samples.len() / 2).contains(&held_out), "{held_out}");
        for sample in &samples {
            let mut other = sample.clone();
            other.problem.longest_row += 7;
            assert_eq!(sample.is_held_out(), other.is_held_out());
        }
    }

    #[test]
    fn the_truth_scores_one_and_the_worst_problem_is_named() {
        let truth = spmm::CostModel::hopper();
        let mut samples = synthetic(truth);
        assert_eq!(score(&samples, truth).unwrap().mean, 1.0);
        samples[7].times[0].1 *= 1000.0;
        let score = score(&samples, truth).unwrap();
        assert_eq!(score.worst_name, samples[7].name);
        assert!(score.worst < 0.99 && score.mean < 1.0, "{score:?}");
        assert_eq!(super::score(&[], truth), None);
    }
}
