//! Fitting the constants of SDDMM's cost model to measurements of every kernel and its splits of K.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use lacuna::IndexType;
use lacuna::sddmm::{Choice, CostModel, Problem, choose};
use lacuna_cases::exit::Usage;
use rayon::prelude::*;

use super::{OPERATION, kernel_of, measured_splits};
use crate::fit::{LEFT_OUT, Score, Timed, is_held_out, loss_of, search, value_named};
use crate::record::{Record, operation_of_first, single};

/// The kinds of values that have constants of their own. Those of `f32` count for 16 bits, too.
pub(crate) const KINDS: [&str; 2] = ["f32", "16-bit"];
/// What a cost costs that is e times the time, against a choice that is e times slower than the best.
const TIMES: f64 = 0.02;

/// A problem, and what its kernels took.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Its name in tables.
    name: String,
    /// The GPU.
    pub(crate) gpu: String,
    problem: Problem,
    /// The kernels with the splits that they were measured with.
    kernels: Vec<Kernel>,
}

/// A kernel with its splits.
#[derive(Clone, Debug)]
struct Kernel {
    choice: Choice,
    /// The problem with these splits.
    problem: Problem,
    us: f64,
    /// Whether records left it out, as slower than `us`.
    is_left_out: bool,
}

/// Microseconds by kernel and splits.
type Times<'r> = BTreeMap<(&'r str, usize), f64>;

/// The records of a problem's kernels, with their microseconds.
type Measured<'r> = (Problem, Vec<(&'r Record, f64)>);

/// Whether a file of JSON lines begins with a record of SDDMM.
pub(crate) fn is_first_of(path: &Path) -> bool {
    operation_of_first(path).is_some_and(|op| op == OPERATION.name)
}

/// The problems of a file of records.
///
/// # Errors
/// [`Usage`]: a file that cannot be read; records that do not serve, or none that do.
pub(crate) fn read(path: &Path) -> Result<Vec<Sample>> {
    samples(&Record::read_lines(path)?).with_context(|| path.display().to_string())
}

/// The records of a file that a fit needs: of each problem those of what is at most [`LEFT_OUT`] times as slow as the fastest. They are without
/// peers and row lengths, which the fit does not read.
///
/// # Errors
/// As [`read`].
pub(crate) fn compact(path: &Path) -> Result<Vec<Record>> {
    let records = Record::read_lines(path)?;
    let mut kept = Vec::new();
    for (_, of) in by_problem(&records).with_context(|| path.display().to_string())? {
        let best = of.iter().map(|&(_, us)| us).fold(f64::INFINITY, f64::min);
        kept.extend(of.iter().filter(|(_, us)| *us <= LEFT_OUT * best).map(|&(record, _)| Record {
            peers: BTreeMap::new(),
            peer_failures: BTreeMap::new(),
            row_lengths: None,
            ..record.clone()
        }));
    }
    Ok(kept)
}

fn samples(records: &[Record]) -> Result<Vec<Sample>, Usage> {
    let mut samples = Vec::new();
    for (problem, of) in by_problem(records)? {
        let first = of[0].0;
        let name = format!("{} {}, K {}", first.dtype, first.case, first.k);
        let times = of.iter().filter_map(|&(record, us)| Some((kernel_of(&record.algorithm)?, us))).collect();
        let sample = Sample::new([name, first.machine.device.clone()], problem, &times);
        if sample.kernels.iter().all(|kernel| kernel.is_left_out) {
            return Err(Usage(format!("{}: expected times of this version's entry points", sample.name)));
        }
        samples.push(sample);
    }
    if samples.is_empty() {
        return Err(Usage("expected times of kernels of SDDMM, got none".into()));
    }
    Ok(samples)
}

/// Records with their microseconds, by problem. What is wrong, and what other operations measured, is left out.
fn by_problem(records: &[Record]) -> Result<Vec<Measured<'_>>, Usage> {
    let mut problems: Vec<Measured<'_>> = Vec::new();
    for record in records.iter().filter(|record| is_for_fits(record)) {
        let usage = |what: &str| Usage(format!("{}, K {}: {what}", record.case, record.k));
        let problem = problem(record, usage)?;
        let us = record.median_us().ok_or_else(|| usage("expected times of a GPU, not of the simulator"))?;
        if !(us.is_finite() && us > 0.0) {
            continue;
        }
        let is_same = |first: &Record| {
            let of = |record: &Record| (record.case.clone(), record.seed, record.machine.device.clone());
            of(first) == of(record)
        };
        // A sweep writes the kernels of a problem one after the other.
        match problems.last_mut() {
            Some((last, of)) if *last == problem && is_same(of[0].0) => of.push((record, us)),
            _ => problems.push((problem, vec![(record, us)])),
        }
    }
    Ok(problems)
}

/// Whether a record is of products from whose kernels the library would choose, with warm caches.
fn is_for_fits(record: &Record) -> bool {
    record.op == OPERATION.name && record.precision == single() && !record.cold && record.is_right()
}

/// The problem of a record.
fn problem(record: &Record, usage: impl Fn(&str) -> Usage) -> Result<Problem, Usage> {
    let index = [IndexType::U32, IndexType::U16].into_iter().find(|index| index.name() == record.index);
    let missing = || usage("`longest_row` or another field is missing; measure again by `sweep`");
    let multiprocessors = record.machine.multiprocessors.ok_or_else(missing)?;
    if [record.m, record.n, record.batch, multiprocessors as usize].contains(&0) {
        return Err(usage("expected rows, columns, a batch and multiprocessors, got 0 of one"));
    }
    // Measured operands are whole buffers without gaps, and the measured GPUs have an H100's shared memory.
    Ok(Problem {
        longest_row: record.longest_row.ok_or_else(missing)?,
        batch: record.batch,
        value: value_named(&record.dtype).ok_or_else(|| usage("expected values of f32, f16 or bf16"))?,
        index: index.ok_or_else(|| usage("expected indices of u32 or u16"))?,
        multiprocessors,
        sm: record.machine.sm.ok_or_else(missing)?,
        ..Problem::new(record.m, record.n, record.nnz, record.k)
    })
}

impl Sample {
    /// A problem whose kernels took `times`. What a sweep measures and `times` do not have is slow: records leave it out. Other splits do not
    /// count, though the library may choose them.
    fn new([name, gpu]: [String; 2], problem: Problem, times: &Times<'_>) -> Self {
        let model = CostModel::hopper();
        let mut kernels: Vec<Kernel> = Vec::new();
        for choice in choose(&problem) {
            let in_splits = |splits: usize| Problem { splits: Some(splits), ..problem };
            let of_kernel = times.keys().filter(|(kernel, _)| *kernel == choice.entry.name);
            let wanted = measured_splits().chain(of_kernel.map(|&(_, splits)| splits));
            // Where K has few lines, there are fewer splits than are asked for.
            let counts: BTreeSet<usize> =
                wanted.filter_map(|splits| model.splits(&in_splits(splits), choice.entry)).collect();
            for splits in counts {
                let us = times.get(&(choice.entry.name, splits)).copied();
                let (us, is_left_out) = (us.unwrap_or(f64::INFINITY), us.is_none());
                let kernel = Kernel { choice, problem: in_splits(splits), us, is_left_out };
                if kernel.cost(model).is_finite() {
                    kernels.push(kernel);
                }
            }
        }
        let least = LEFT_OUT * fastest(&kernels);
        kernels.iter_mut().filter(|kernel| kernel.is_left_out).for_each(|kernel| kernel.us = least);
        Self { name, gpu, problem, kernels }
    }

    /// Which constants it tells: one of [`KINDS`].
    pub(crate) fn kind(&self) -> &'static str {
        KINDS[usize::from(self.problem.value.bytes() == 2)]
    }

    /// Whether the fit must not see it: a third of all.
    pub(crate) fn is_held_out(&self) -> bool {
        let Problem { rows, cols, k, nnz, .. } = self.problem;
        is_held_out([rows, cols, k], nnz)
    }

    /// The time of the fastest kernel over that of the model's choice.
    fn speed(&self, model: &CostModel) -> f64 {
        let chosen = self.kernels.iter().min_by(|a, b| a.cost(model).total_cmp(&b.cost(model)));
        chosen.map_or(f64::NAN, |chosen| fastest(&self.kernels) / chosen.us)
    }
}

/// The time of the fastest.
fn fastest(kernels: &[Kernel]) -> f64 {
    kernels.iter().map(|kernel| kernel.us).fold(f64::INFINITY, f64::min)
}

impl Kernel {
    fn cost(&self, model: &CostModel) -> f64 {
        model.cost(&self.problem, self.choice.entry)
    }

    fn timed(&self, model: &CostModel) -> Timed {
        Timed { cost: self.cost(model), us: self.us, is_least: self.is_left_out }
    }
}

/// The constants of a kind with which the choices on `samples` are fastest, as far as was found.
pub(crate) fn fit(samples: &[&Sample], model: &CostModel, kind: &str) -> CostModel {
    CostModel::new(search(model.file(), kind, &|file| loss(samples, &CostModel::new(file))))
}

/// The mean of the problems' losses.
pub(crate) fn loss(samples: &[&Sample], model: &CostModel) -> f64 {
    let of = |sample: &&Sample| {
        let kernels: Vec<Timed> = sample.kernels.iter().map(|kernel| kernel.timed(model)).collect();
        loss_of(&kernels, TIMES)
    };
    // Summed in order, so that it does not depend on how many threads there are.
    let losses: Vec<f64> = samples.par_iter().map(of).collect();
    losses.iter().sum::<f64>() / losses.len() as f64
}

/// How well a model chooses on samples; none without samples.
pub(crate) fn score<'s>(samples: impl IntoIterator<Item = &'s Sample>, model: &CostModel) -> Option<Score> {
    Score::of(samples.into_iter().map(|sample| (sample.speed(model), sample.name.as_str())))
}

#[cfg(test)]
mod tests {
    use lacuna::ValueType;

    use super::*;
    use crate::record::tests::record;
    use crate::sddmm::named;

    /// Problems whose kernels take what `truth` says, with every number of splits.
    fn synthetic(truth: &CostModel, value: ValueType) -> Vec<Sample> {
        let mut samples = Vec::new();
        for rows in [256, 1024, 8192] {
            for row in [4, 40, 400] {
                for k in [32, 128, 1024, 20_000] {
                    let problem = Problem { value, ..Problem::new(rows, 2048, rows * row, k) };
                    let mut times = Times::new();
                    for Choice { entry, .. } in choose(&problem) {
                        for splits in measured_splits() {
                            let of_splits = Problem { splits: Some(splits), ..problem };
                            if let Some(splits) = truth.splits(&of_splits, entry) {
                                times.insert((entry.name, splits), truth.cost(&of_splits, entry));
                            }
                        }
                    }
                    let name = format!("{rows} 2048 {row}, K {k}");
                    samples.push(Sample::new([name, "a GPU".into()], problem, &times));
                }
            }
        }
        samples
    }

    #[test]
    fn the_truth_has_the_least_loss_and_scores_one() {
        let truth = CostModel::hopper();
        for (value, kind) in [(ValueType::F32, "f32"), (ValueType::F16, "16-bit")] {
            let samples = synthetic(truth, value);
            assert!(samples.iter().all(|sample| sample.kind() == kind));
            assert_eq!(score(&samples, truth).unwrap().mean, 1.0);
            let samples: Vec<&Sample> = samples.iter().collect();
            let file = truth.file();
            let mut values: Vec<f64> = file.fitted_to(kind).map(|constant| constant.value).collect();
            values.iter_mut().step_by(2).for_each(|value| *value *= 10.0);
            let wrong = CostModel::new(file.clone().with_values(kind, &values));
            assert!(loss(&samples, truth) < 0.9 * loss(&samples, &wrong), "{kind}");
            assert!(score(samples.iter().copied(), &wrong).unwrap().mean < 1.0, "{kind}");
        }
    }

    #[test]
    fn about_a_third_is_held_out_whatever_the_type() {
        let [single, half] =
            [ValueType::F32, ValueType::F16].map(|value| synthetic(CostModel::hopper(), value));
        let held_out = single.iter().filter(|sample| sample.is_held_out()).count();
        assert!((single.len() / 5..single.len() / 2).contains(&held_out), "{held_out}");
        for (single, half) in single.iter().zip(&half) {
            assert_eq!(single.is_held_out(), half.is_held_out());
        }
    }

    /// A record of a kernel of a small problem.
    fn measured(algorithm: String, us: f64) -> Record {
        let mut record = record("sddmm-dlmc", "a", 0.9, [us, 1.0, 1.0]);
        (record.op, record.algorithm) = ("sddmm".into(), algorithm);
        (record.m, record.n, record.k, record.nnz, record.longest_row) = (512, 512, 3136, 26_000, Some(60));
        (record.machine.multiprocessors, record.machine.sm) = (Some(132), Some(90));
        record.row_lengths = Some(vec![512]);
        record
    }

    fn written(name: &str, records: &[Record]) -> std::path::PathBuf {
        let lines: Vec<String> =
            records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let name = format!("lacuna-sddmm-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, lines.join("\n")).unwrap();
        path
    }

    #[test]
    fn records_become_samples_by_problem_and_what_they_leave_out_is_slow() {
        let kernel = "sddmm_f32_mma_32x64_split";
        let wrong = Record { error_over_bound: 2.0, ..measured(named(kernel, 2), 1.0) };
        let other = Record { case: "b".into(), ..measured(named(kernel, 1), 7.0) };
        let product = Record { op: "spmm".into(), ..measured(named(kernel, 1), 1.0) };
        let times = [(1, 40.0), (11, 10.0), (8, 15.0)];
        let of_a = times.map(|(splits, us)| measured(named(kernel, splits), us));
        let path = written("small", &[&of_a[..], &[wrong, other, product]].concat());
        assert!(is_first_of(&path));
        let samples = read(&path).unwrap();
        let names: Vec<&str> = samples.iter().map(|sample| sample.name.as_str()).collect();
        assert_eq!(names, ["f32 a, K 3136", "f32 b, K 3136"]);
        let us_of = |sample: &Sample, entry: &str, splits: usize| {
            let is_it = |of: &&Kernel| of.choice.entry.name == entry && of.problem.splits == Some(splits);
            sample.kernels.iter().find(is_it).map(|of| (of.us, of.is_left_out))
        };
        for (splits, us) in times {
            assert_eq!(us_of(&samples[0], kernel, splits), Some((us, false)), "{splits}");
        }
        assert_eq!(us_of(&samples[0], kernel, 2), Some((16.0, true)), "out of its bound");
        assert_eq!(us_of(&samples[0], kernel, 6), None, "no sweep asks for it");
        assert_eq!(us_of(&samples[0], "sddmm_f32_mma_128x64_split", 1), Some((16.0, true)));
        assert_eq!(us_of(&samples[1], kernel, 1), Some((7.0, false)));

        let kept = written("compact", &compact(&path).unwrap());
        let names: Vec<String> =
            Record::read_lines(&kept).unwrap().into_iter().map(|record| record.algorithm).collect();
        assert_eq!(names, [named(kernel, 11), named(kernel, 8), named(kernel, 1)]);
        let again = read(&kept).unwrap();
        assert_eq!(us_of(&again[0], kernel, 1), Some((16.0, true)), "slower than records have");
        assert_eq!(us_of(&again[0], kernel, 8), Some((15.0, false)));
    }

    #[test]
    fn what_cannot_be_fitted_to_is_refused() {
        let kernel = || measured("sddmm_f32_mma_32x64_split".into(), 1.0);
        for (name, record) in [
            ("simulated", Record { time_us: None, ..kernel() }),
            ("before", Record { longest_row: None, ..kernel() }),
            ("values", Record { dtype: "f64".into(), ..kernel() }),
            ("kernel", Record { algorithm: "sddmm_of_another_version".into(), ..kernel() }),
            ("other", Record { op: "spmm".into(), ..kernel() }),
            ("empty", Record { n: 0, ..kernel() }),
        ] {
            let error = read(&written(name, &[record])).unwrap_err();
            assert!(error.is::<Usage>(), "{name}: {error:#}");
        }
    }

    #[test]
    fn names_of_kernels_with_splits_are_read_as_they_are_written() {
        for (kernel, splits) in [("sddmm_a", 1), ("sddmm_b", 12)] {
            assert_eq!(kernel_of(&named(kernel, splits)), Some((kernel, splits)));
        }
        assert_eq!((kernel_of("a, 4 parts"), kernel_of("a, many splits")), (None, None));
    }

    #[test]
    fn choices_on_committed_records_are_fast() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("records/fit/hopper-sddmm-f16.jsonl");
        let samples = read(&path).unwrap();
        assert_eq!(samples.len(), 80);
        let score = score(&samples, CostModel::hopper()).unwrap();
        assert!(score.mean > 0.98 && score.worst > 0.85 && score.worst <= score.mean, "{score:?}");
    }
}
