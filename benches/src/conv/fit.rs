//! Fitting the constants of convolution's cost model to measurements of every kernel and its splits.
use std::path::Path;

use anyhow::{Result, bail};
use lacuna::Precision;
use lacuna::conv::{Algorithm, Choice, CostModel, MapLayout, Problem, choose};
use lacuna_cases::exit::Usage;
use rayon::prelude::*;

use super::layers::{LAYERS, OTHER_TAPS};
use super::record::Record;
use crate::fit::{LEFT_OUT, Score, Timed, loss_of, search, value_named};

/// What measurements tell the model's constants: all of them.
pub const KIND: &str = "all";
/// What a cost costs that is e times the time, against a choice that is e times slower than the best: more than in SpMM, as there are fewer problems.
const TIMES: f64 = 0.1;
/// The splits that are measured: 1, 2, 4 and so on.
const SPLITS: u32 = 6;

/// A problem, and what its kernels took.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its name in tables.
    pub name: String,
    /// The kernels that split channels, with the splits that they were measured with.
    kernels: Vec<Kernel>,
}

/// A kernel with its splits.
#[derive(Clone, Debug)]
struct Kernel {
    choice: Choice,
    /// The problem with these splits.
    problem: Problem,
    splits: usize,
    us: f64,
    /// Whether records left it out, as slower than `us`.
    is_left_out: bool,
}

/// A time of a kernel for a problem.
pub type Time = (Problem, Record);

/// The times of a file of records.
///
/// # Errors
/// As [`read`].
pub fn read_times(path: &Path) -> Result<Vec<Time>> {
    let of = |record: Record| Ok((problem(&record)?, record));
    Record::read_lines(path)?.into_iter().map(of).collect()
}

/// The problems of a file of records. What records leave out has the time that `times` have of it, if they have one.
///
/// # Errors
/// A file that cannot be read; records of layers that are not known, or of depthwise ones.
pub fn read(path: &Path, times: &[Time]) -> Result<Vec<Sample>> {
    let records = Record::read_lines(path)?;
    let mut samples: Vec<(Problem, Vec<&Record>)> = Vec::new();
    for record in &records {
        let problem = problem(record)?;
        match samples.iter_mut().find(|(known, _)| *known == problem) {
            Some((_, of)) => of.push(record),
            None => samples.push((problem, vec![record])),
        }
    }
    let samples: Vec<Sample> = samples.iter().map(|(problem, of)| Sample::new(problem, of, times)).collect();
    if samples.iter().any(|sample| sample.kernels.is_empty()) {
        bail!("{}: expected times of this version's entry points", path.display());
    }
    Ok(samples)
}

fn problem(record: &Record) -> Result<Problem, Usage> {
    let sizes = [record.channels, record.size[0], record.filters];
    let mut layers = LAYERS.iter().chain(&OTHER_TAPS);
    let layer = layers.find(|layer| layer.network == record.case && layer.sizes == sizes);
    let layer =
        layer.ok_or_else(|| Usage(format!("expected a layer of `conv`, got {} {sizes:?}", record.case)))?;
    let mut problem = Problem::new(layer.shape(record.batch));
    problem.value = value_named(&record.value)
        .ok_or_else(|| Usage(format!("expected a type of values, got `{}`", record.value)))?;
    problem.zeros = record.zeros;
    problem.precision = Precision::Single;
    problem.layout = if record.layout == "nhwc" { MapLayout::Nhwc } else { MapLayout::Nchw };
    let missing = || Usage("expected the GPU's compute capability and multiprocessors in all records".into());
    problem.sm = record.machine.sm.ok_or_else(missing)?;
    problem.multiprocessors = record.machine.multiprocessors.ok_or_else(missing)?;
    Ok(problem)
}

impl Sample {
    fn new(problem: &Problem, records: &[&Record], times: &[Time]) -> Self {
        let model = CostModel::hopper();
        let best = records.iter().filter_map(|record| record.median_us()).fold(f64::INFINITY, f64::min);
        let times: Vec<&Record> =
            times.iter().filter(|(known, _)| known == problem).map(|(_, record)| record).collect();
        let us_of = |records: &[&Record], choice: &Choice, splits: usize| {
            let is_it = |record: &&&Record| record.algorithm == choice.entry.name && record.splits == splits;
            records.iter().find(is_it).and_then(|record| record.median_us())
        };
        let mut kernels: Vec<Kernel> = Vec::new();
        for choice in
            choose(problem).into_iter().filter(|choice| model.cost(problem, choice.entry).is_finite())
        {
            let measured = records.iter().filter(|record| record.algorithm == choice.entry.name);
            let powers = (0..SPLITS).map(|power| 1 << power);
            for splits in powers.chain(measured.map(|record| record.splits)) {
                let mut of_splits = *problem;
                of_splits.splits = Some(splits);
                let splits = model.splits(&of_splits, choice.entry);
                if !kernels
                    .iter()
                    .any(|known| known.choice.entry.name == choice.entry.name && known.splits == splits)
                {
                    let least = LEFT_OUT * best;
                    // Times are of other runs: what is left out in this one is not as fast as they may say.
                    let slow = || us_of(&times, &choice, splits).map(|us| us.max(least));
                    let us = us_of(records, &choice, splits).or_else(slow);
                    let (us, is_left_out) = (us.unwrap_or(least), us.is_none());
                    kernels.push(Kernel { choice, problem: of_splits, splits, us, is_left_out });
                }
            }
        }
        let shape = problem.shape;
        let name = format!(
            "{} {} {}² {}, {} taps, batch {}",
            problem.value.name(),
            shape.channels,
            shape.size[0],
            shape.filters,
            shape.taps[0],
            shape.batch
        );
        Self { name, kernels }
    }

    /// The time of the fastest kernel over that of the model's choice.
    fn speed(&self, model: &CostModel) -> f64 {
        let cost = |kernel: &Kernel| model.cost(&kernel.problem, kernel.choice.entry);
        let chosen = self.kernels.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let best = self.kernels.iter().map(|kernel| kernel.us).fold(f64::INFINITY, f64::min);
        chosen.map_or(f64::NAN, |chosen| best / chosen.us)
    }
}

/// The constants with which the choices on `samples` are fastest, as far as was found.
pub fn fit(samples: &[&Sample], model: &CostModel) -> CostModel {
    CostModel::new(search(model.file(), KIND, &|file| loss(samples, &CostModel::new(file))))
}

/// The mean of the problems' losses. Times of tiles by `mma` count once more, by their mean alone: they are seldom the fastest where there are
/// warpgroups, so that choices only ask that they be slow, while an older GPU chooses between them and kernels that the fit does not know.
pub fn loss(samples: &[&Sample], model: &CostModel) -> f64 {
    let of = |sample: &&Sample| {
        let timed = |kernel: &Kernel| Timed {
            cost: model.cost(&kernel.problem, kernel.choice.entry),
            us: kernel.us,
            is_least: kernel.is_left_out,
        };
        let kernels: Vec<Timed> = sample.kernels.iter().map(timed).collect();
        let is_mma = |kernel: &Kernel| matches!(kernel.choice.algorithm, Algorithm::MmaTile { .. });
        let mma = sample.kernels.iter().zip(&kernels).filter(|(kernel, _)| is_mma(kernel));
        let known: Vec<f64> =
            mma.filter(|(_, timed)| !timed.is_least).map(|(_, timed)| timed.distance()).collect();
        let distance = known.iter().sum::<f64>() / known.len().max(1) as f64;
        loss_of(&kernels, TIMES) + TIMES * distance
    };
    // Summed in order, so that it does not depend on how many threads there are.
    let losses: Vec<f64> = samples.par_iter().map(of).collect();
    losses.iter().sum::<f64>() / losses.len() as f64
}

/// How well a model chooses on samples; none without samples.
pub fn score<'s>(samples: impl IntoIterator<Item = &'s Sample>, model: &CostModel) -> Option<Score> {
    Score::of(samples.into_iter().map(|sample| (sample.speed(model), sample.name.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("records/conv").join(name)
    }

    #[test]
    fn a_file_has_a_sample_for_each_problem_and_what_it_leaves_out_is_slow() {
        let samples = read(&file("h100-fit-layers.jsonl"), &[]).unwrap();
        assert_eq!(samples.len(), 39, "13 layers with one, two and 16 images");
        for sample in &samples {
            let us_of = |is_left_out| {
                let of = sample.kernels.iter().filter(move |kernel| kernel.is_left_out == is_left_out);
                of.map(|kernel| kernel.us)
            };
            let slowest = us_of(false).fold(0.0, f64::max);
            let least = us_of(true).fold(f64::INFINITY, f64::min);
            assert!(slowest <= least * 1.01, "{}: {slowest} {least}", sample.name);
            let speed = sample.speed(CostModel::hopper());
            assert!((0.5..=1.0).contains(&speed), "{}: {speed}", sample.name);
        }
        let score = score(&samples, CostModel::hopper()).unwrap();
        assert!(score.worst <= score.mean && samples.iter().any(|sample| sample.name == score.worst_name));
    }

    #[test]
    fn times_fill_what_records_leave_out_and_nothing_else() {
        let [few, times] = ["h100-fit-layers.jsonl", "h100-all.jsonl"].map(file);
        let [before, after] = [&[][..], &read_times(&times).unwrap()].map(|times| read(&few, times).unwrap());
        let mut filled = 0;
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before.kernels.len(), after.kernels.len(), "{}", after.name);
            for (before, after) in before.kernels.iter().zip(&after.kernels) {
                let is_filled = before.is_left_out && !after.is_left_out;
                filled += usize::from(is_filled);
                assert!(after.us >= before.us && (is_filled || after.us == before.us));
            }
        }
        assert!(filled > 20, "{filled}");
    }

    /// Times of an H200, which the fit does not see, of kernels that older GPUs have too.
    #[test]
    fn without_warpgroups_costs_of_mma_are_about_times_and_choices_are_fast() {
        let model = CostModel::hopper();
        let mut problems: Vec<(Problem, Vec<(bool, Timed)>)> = Vec::new();
        for (problem, record) in read_times(&file("h200-all.jsonl")).unwrap() {
            let mut older = problem;
            older.sm = 80;
            let choices = choose(&older);
            let Some(choice) = choices.iter().find(|choice| choice.entry.name == record.algorithm) else {
                continue;
            };
            older.splits = Some(record.splits);
            let cost = model.cost(&older, choice.entry);
            if !cost.is_finite() {
                continue;
            }
            let timed = Timed { cost, us: record.median_us().unwrap(), is_least: false };
            let timed = (matches!(choice.algorithm, Algorithm::MmaTile { .. }), timed);
            match problems.iter_mut().find(|(known, _)| *known == problem) {
                Some((_, kernels)) => kernels.push(timed),
                None => problems.push((problem, vec![timed])),
            }
        }
        let kernels = problems.iter().flat_map(|(_, kernels)| kernels);
        let mma: Vec<f64> =
            kernels.filter(|(is_mma, _)| *is_mma).map(|(_, timed)| timed.distance()).collect();
        assert_eq!((problems.len(), mma.len()), (26, 52), "13 layers with one and 16 images");
        let off = (mma.iter().sum::<f64>() / mma.len() as f64).sqrt();
        assert!(off < 0.3, "root of the mean square of logarithms: {off}");
        let speed = |kernels: &[(bool, Timed)]| {
            let chosen = kernels.iter().min_by(|a, b| a.1.cost.total_cmp(&b.1.cost)).unwrap();
            kernels.iter().map(|(_, timed)| timed.us).fold(f64::INFINITY, f64::min) / chosen.1.us
        };
        let score = Score::of(problems.iter().map(|(_, kernels)| (speed(kernels), ""))).unwrap();
        assert!(score.mean > 0.98 && score.worst > 0.85, "{score:?}");
    }

    #[test]
    fn depthwise_layers_are_refused() {
        assert!(read(&file("h200-depthwise.jsonl"), &[]).unwrap_err().is::<Usage>());
    }
}
