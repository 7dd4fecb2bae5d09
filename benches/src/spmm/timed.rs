//! Problems with the times of all their kernels: from records of `sweep --all-algorithms`, or from the compact form that is
//! committed, a line a problem.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lacuna_cases::exit::Usage;
use serde::{Deserialize, Serialize};

use crate::record::Record;

/// What was measured: the first line of the compact form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its name.
    pub gpu: String,
    /// Its compute capability, times ten.
    pub sm: u32,
    /// Its multiprocessors.
    pub multiprocessors: u32,
}

/// A problem, and the times of its kernels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Its suite.
    pub suite: String,
    /// Its name.
    pub case: String,
    /// The type of values.
    pub value: String,
    /// Whether A is prepacked.
    pub prepacked: bool,
    /// Whether products in TF32 were allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tf32: bool,
    /// Rows of A.
    pub rows: usize,
    /// Columns of A.
    pub cols: usize,
    /// Nonzeros.
    pub nnz: usize,
    /// Those of the longest row.
    pub longest_row: usize,
    /// Columns of B.
    pub n: usize,
    /// Rows of at least one nonzero.
    pub nonempty: u32,
    /// Rows longer than 1, 2, 4, … nonzeros.
    pub longer: Vec<u32>,
    /// Medians in microseconds, by entry point.
    #[serde(skip)]
    pub us: BTreeMap<String, f64>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(flatten)]
    gpu: Gpu,
    /// The entry points that lines name by their place here.
    entries: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    timed: Timed,
    us: Vec<(usize, f64)>,
}

/// The problems of files of either form, all of one GPU.
///
/// # Errors
/// [`Usage`]: files that cannot be read, or have another form; several GPUs; records of the simulator, or without the counts of
/// row lengths; no problem.
pub fn read(paths: &[PathBuf]) -> Result<(Gpu, Vec<Timed>)> {
    let mut all: Option<(Gpu, Vec<Timed>)> = None;
    for path in paths {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let is_compact = text.lines().next().is_some_and(|line| serde_json::from_str::<Header>(line).is_ok());
        let (gpu, timed) =
            if is_compact { compact(path, &text)? } else { of_sweep(&Record::read_lines(path)?)? };
        match &mut all {
            None => all = Some((gpu, timed)),
            Some((known, problems)) if *known == gpu => problems.extend(timed),
            Some((known, _)) => {
                let two = format!("`{}` and `{}`", known.gpu, gpu.gpu);
                return Err(Usage(format!("expected times of one GPU, got {two}; fit each by itself")).into());
            }
        }
    }
    all.filter(|(_, timed)| !timed.is_empty())
        .ok_or_else(|| Usage("expected times of kernels of SpMM, got none".into()).into())
}

fn compact(path: &Path, text: &str) -> Result<(Gpu, Vec<Timed>)> {
    let at = |line: usize| format!("{}, line {line}", path.display());
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let header: Header = serde_json::from_str(first).with_context(|| at(1))?;
    let mut problems = Vec::new();
    for (index, line) in lines.enumerate() {
        let Line { mut timed, us } = serde_json::from_str(line).with_context(|| at(index + 2))?;
        for (entry, time) in us {
            let name = header.entries.get(entry);
            let name = name.ok_or_else(|| Usage(format!("{}: there is no entry {entry}", at(index + 2))))?;
            timed.us.insert(name.clone(), time);
        }
        let counts = || [timed.rows as u64, timed.nonempty.into()].into_iter();
        let counts = counts().chain(timed.longer.iter().map(|&count| count.into()));
        if !counts.is_sorted_by(|a, b| a >= b) || timed.longer.len() > 32 || timed.rows > u32::MAX as usize {
            let what = "expected 32 falling counts of rows at most, none larger than their number";
            return Err(Usage(format!("{}: {what}", at(index + 2))).into());
        }
        problems.push(timed);
    }
    Ok((header.gpu, problems))
}

/// The problems of a sweep's records. What is wrong, and what other operations measured, is left out.
fn of_sweep(records: &[Record]) -> Result<(Gpu, Vec<Timed>)> {
    let mut gpu: Option<Gpu> = None;
    let mut problems: Vec<Timed> = Vec::new();
    for record in records.iter().filter(|record| is_for_fits(record)) {
        let usage = |what: &str| Usage(format!("{}, N {}: {what}", record.case, record.n));
        let time =
            record.median_us().ok_or_else(|| usage("expected times of a GPU, not of the simulator"))?;
        let (Some(longest_row), Some([nonempty, longer @ ..]), Some(multiprocessors), Some(sm)) = (
            record.longest_row,
            record.row_lengths.as_deref(),
            record.machine.multiprocessors,
            record.machine.sm,
        ) else {
            return Err(usage("`row_lengths` or another field is missing; measure again by `sweep`").into());
        };
        let this = Gpu { gpu: record.machine.device.clone(), sm, multiprocessors };
        if gpu.get_or_insert_with(|| this.clone()) != &this {
            return Err(usage("expected times of one GPU; fit each by itself").into());
        }
        let problem = Timed {
            suite: record.suite.clone(),
            case: record.case.clone(),
            value: record.dtype.clone(),
            prepacked: record.prepacked,
            tf32: record.precision == "tf32",
            rows: record.m,
            cols: record.k,
            nnz: record.nnz,
            longest_row,
            n: record.n,
            nonempty: *nonempty,
            longer: longer.to_vec(),
            us: BTreeMap::new(),
        };
        // A sweep writes the kernels of a problem one after the other.
        if problems.last().is_none_or(|last| Timed { us: BTreeMap::new(), ..last.clone() } != problem) {
            problems.push(problem);
        }
        if let Some(problem) = problems.last_mut()
            && record.is_right()
            && time.is_finite()
            && time > 0.0
        {
            problem.us.insert(record.algorithm.clone(), time);
        }
    }
    problems.retain(|problem| problem.us.len() > 1);
    let gpu = gpu.ok_or_else(|| Usage("expected records of SpMM, got none".into()))?;
    Ok((gpu, problems))
}

/// Whether a record is of sums whose kernels the library would choose from: at the default precision, or in TF32; with warm caches.
fn is_for_fits(record: &Record) -> bool {
    let is_chosen_from = matches!(record.precision.as_str(), "single" | "tf32");
    record.op == "spmm" && record.reduce == "sum" && is_chosen_from && !record.cold
}

/// The compact form of problems: times have four digits.
pub fn to_compact(gpu: &Gpu, problems: &[Timed]) -> Result<String> {
    let entries: BTreeSet<&String> = problems.iter().flat_map(|problem| problem.us.keys()).collect();
    let header = Header { gpu: gpu.clone(), entries: entries.iter().map(|&entry| entry.clone()).collect() };
    let places: BTreeMap<&String, usize> =
        entries.into_iter().enumerate().map(|(place, entry)| (entry, place)).collect();
    let mut text = serde_json::to_string(&header)? + "\n";
    for problem in problems {
        let us = problem.us.iter().map(|(entry, &us)| Ok((places[entry], format!("{us:.3e}").parse()?)));
        let line = Line { timed: problem.clone(), us: us.collect::<Result<_>>()? };
        text += &(serde_json::to_string(&line)? + "\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    /// A record of a kernel of a problem with three rows.
    fn kernel(case: &str, algorithm: &str, us: f64) -> Record {
        let mut record = record("shapes", case, 0.9, [us, 1.0, 1.0]);
        record.algorithm = algorithm.into();
        (record.m, record.nnz) = (3, 9);
        record.row_lengths = Some(vec![3, 2, 1]);
        record.longest_row = Some(4);
        (record.machine.multiprocessors, record.machine.sm) = (Some(132), Some(90));
        record
    }

    fn written(text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("lacuna-timed-{}", std::process::id()));
        let path = path.with_extension(text.len().to_string());
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn a_sweep_becomes_the_compact_form_and_both_say_the_same() {
        let mut wrong = kernel("a", "spmm_wrong", 1.0);
        wrong.error_over_bound = 2.0;
        let records = [
            kernel("a", "spmm_one", 10.5),
            wrong,
            kernel("a", "spmm_two", 20.25),
            kernel("b", "spmm_one", 1.0),
            kernel("b", "spmm_two", 2.0),
            kernel("alone", "spmm_one", 1.0),
        ];
        let lines: Vec<String> =
            records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let sweep = written(&lines.join("\n"));
        let (gpu, problems) = read(std::slice::from_ref(&sweep)).unwrap();
        assert_eq!((gpu.sm, gpu.multiprocessors, problems.len()), (90, 132, 2));
        assert_eq!((problems[0].nonempty, problems[0].longer.as_slice()), (3, &[2, 1][..]));
        let times: Vec<(&str, f64)> = problems[0].us.iter().map(|(name, &us)| (name.as_str(), us)).collect();
        assert_eq!(times, [("spmm_one", 10.5), ("spmm_two", 20.25)]);

        let compact = written(&to_compact(&gpu, &problems).unwrap());
        let (same_gpu, same) = read(std::slice::from_ref(&compact)).unwrap();
        assert_eq!((&same_gpu, &same), (&gpu, &problems));
        let (_, both) = read(&[sweep.clone(), compact.clone()]).unwrap();
        assert_eq!(both.len(), 4);

        let other = Gpu { sm: 80, ..gpu };
        let other = written(&(to_compact(&other, &problems).unwrap() + " "));
        assert!(read(&[compact, other]).is_err(), "two GPUs");
    }

    #[test]
    fn what_cannot_be_fitted_to_is_refused() {
        let mut simulated = kernel("a", "spmm_one", 1.0);
        simulated.time_us = None;
        let mut before = kernel("a", "spmm_one", 1.0);
        before.row_lengths = None;
        for record in [simulated, before] {
            let path = written(&serde_json::to_string(&record).unwrap());
            let error = read(&[path]).unwrap_err();
            assert!(error.is::<Usage>(), "{error:#}");
        }
        let header = r#"{"gpu":"g","sm":90,"multiprocessors":1,"entries":["spmm_one"]}"#;
        let line = |counts: &str, us: &str| {
            format!(
                r#"{header}
{{"suite":"s","case":"c","value":"f32","prepacked":false,"rows":3,"cols":3,"nnz":3,"longest_row":1,"n":1,{counts},"us":{us}}}"#
            )
        };
        let good = line(r#""nonempty":3,"longer":[]"#, "[[0,1.0]]");
        assert_eq!(read(&[written(&good)]).unwrap().1.len(), 1);
        let bad = [
            line(r#""nonempty":4,"longer":[]"#, "[[0,1.0]]"),
            line(r#""nonempty":3,"longer":[1,2]"#, "[[0,1.0]]"),
            line(r#""nonempty":3,"longer":[]"#, "[[1,1.0]]"),
            header.into(),
        ];
        for text in bad {
            assert!(read(&[written(&text)]).is_err(), "{text}");
        }
    }
}
