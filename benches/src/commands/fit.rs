//! `fit`: the cost model's constants from measurements.
use std::path::PathBuf;

use anyhow::{Context, Result};
use comfy_table::Table;
use lacuna::spmm::{CostModel, ModelFile};
use lacuna_cases::exit::{Outcome, Usage};

use crate::cli::FitOptions;
use crate::conv;
use crate::fit::{Score, nudged};
use crate::spmm::fit::{fit as fit_model, loss};
use crate::spmm::samples::{Sample, samples, score};
use crate::spmm::timed::{read, to_compact};
use crate::table::new_table;

/// The kinds of values that have constants of their own.
const KINDS: [&str; 3] = ["f32", "16-bit", "prepacked f32"];
/// What the tables of scores have.
const HEADER: [&str; 7] = ["problems", "count", "library's", "worst", "fitted", "worst", "where"];

/// Fits the cost model's constants to two thirds of the problems in the fit's records, prints how well the library's and the
/// fitted ones choose, and writes them to `--out`. With `--check` it fits nothing, but says whether 2 % more or less of one of
/// the library's constants would choose much better.
///
/// # Errors
/// Files that cannot be read or written; records that do not serve, or too few.
pub fn fit(options: &FitOptions) -> Result<Outcome> {
    if options.records.iter().any(|path| conv::Record::is_first_of(path)) {
        return convolution(options);
    }
    if !options.held_out.is_empty() || !options.times.is_empty() {
        return Err(Usage("expected --held-out and --times with records of convolutions alone".into()).into());
    }
    let (gpu, timed) = read(&options.records)?;
    let mut all = Vec::new();
    for problem in &timed {
        all.extend(samples(&gpu, problem)?);
    }
    let samples = all;
    let shipped = CostModel::hopper();
    let of_kind = |kind: &str, held_out: bool| -> Vec<&Sample> {
        let is_kind = |sample: &&Sample| kind_of(sample) == kind;
        samples.iter().filter(is_kind).filter(|sample| sample.is_held_out() == held_out).collect()
    };
    let (mut model, mut outcome) = (shipped.clone(), Outcome::Good);
    // Constants of a kind that the records do not have stay as they are.
    let kinds: Vec<&str> = KINDS.into_iter().filter(|kind| !of_kind(kind, false).is_empty()).collect();
    if kinds.is_empty() {
        return Err(Usage("expected problems to fit to, got none".into()).into());
    }
    for &kind in &kinds {
        let train = of_kind(kind, false);
        if options.check {
            let loss = |file| loss(&train, &CostModel::new(file));
            for moved in nudged(shipped.file(), kind, loss) {
                println!("{moved}");
                outcome = Outcome::Failure;
            }
        } else {
            model = fit_model(&train, &model, kind);
        }
    }
    println!("{}, {} problems\n", gpu.gpu, samples.len());
    let mut table = new_table(HEADER);
    let mut rows: Vec<(String, Vec<&Sample>)> = Vec::new();
    for kind in kinds {
        rows.push((format!("{kind}: fitted to"), of_kind(kind, false)));
        rows.push((format!("{kind}: held out"), of_kind(kind, true)));
    }
    let mut suites: Vec<&str> = samples.iter().map(|sample| sample.suite.as_str()).collect();
    suites.sort_unstable();
    suites.dedup();
    for suite in suites {
        rows.push((suite.into(), samples.iter().filter(|sample| sample.suite == suite).collect()));
    }
    for (name, samples) in &rows {
        let scores = [shipped, &model].map(|model| score(samples.iter().copied(), model));
        add_scores(&mut table, name.clone(), samples.len(), scores);
    }
    println!("{table}");
    write(options, model.file())?;
    if let Some(out) = &options.compact {
        let text = to_compact(&gpu, &timed)?;
        std::fs::write(out, text).with_context(|| format!("{} cannot be written", out.display()))?;
    }
    Ok(outcome)
}

/// Which constants decide about a problem.
fn kind_of(sample: &Sample) -> &'static str {
    match (sample.problem.value.bytes(), sample.problem.prepacked) {
        (4, true) => "prepacked f32",
        (4, false) => "f32",
        _ => "16-bit",
    }
}

/// Writes the constants to `--out`.
fn write(options: &FitOptions, file: &ModelFile) -> Result<()> {
    let Some(out) = &options.out else { return Ok(()) };
    let text = serde_json::to_string_pretty(file)?;
    std::fs::write(out, text + "\n").with_context(|| format!("{} cannot be written", out.display()))
}

/// As [`fit`], of convolution: to all of `--records`, with a row for each file, also of those that are held out.
fn convolution(options: &FitOptions) -> Result<Outcome> {
    if options.compact.is_some() {
        return Err(Usage("expected --compact with records of SpMM alone".into()).into());
    }
    let mut times = Vec::new();
    for path in &options.times {
        times.extend(conv::fit::read_times(path)?);
    }
    let (train, held_out) = (read_files(&options.records, &times)?, read_files(&options.held_out, &[])?);
    let shipped = lacuna::conv::CostModel::hopper();
    let all: Vec<&conv::fit::Sample> = train.iter().flat_map(|(_, samples)| samples).collect();
    let (mut model, mut outcome) = (shipped.clone(), Outcome::Good);
    if options.check {
        let loss = |file| conv::fit::loss(&all, &lacuna::conv::CostModel::new(file));
        for moved in nudged(shipped.file(), conv::fit::KIND, loss) {
            println!("{moved}");
            outcome = Outcome::Failure;
        }
    } else {
        model = conv::fit::fit(&all, shipped);
        for section in &model.file().sections {
            for constant in &section.constants {
                println!("{}.{} {}", section.name, constant.name, constant.value);
            }
        }
    }
    let mut table = new_table(HEADER);
    for (files, what) in [(&train, "fitted to"), (&held_out, "held out")] {
        for (name, samples) in files {
            let scores = [shipped, &model].map(|model| conv::fit::score(samples, model));
            add_scores(&mut table, format!("{name}: {what}"), samples.len(), scores);
        }
    }
    println!("{table}");
    write(options, model.file())?;
    Ok(outcome)
}

/// A row of how well two models choose.
fn add_scores(table: &mut Table, name: String, count: usize, scores: [Option<Score>; 2]) {
    if let [Some(before), Some(after)] = scores {
        let number = |value: f64| format!("{value:.4}");
        table.add_row([
            name,
            count.to_string(),
            number(before.mean),
            number(before.worst),
            number(after.mean),
            number(after.worst),
            after.worst_name,
        ]);
    }
}

/// The problems of each file, by its name.
fn read_files(paths: &[PathBuf], times: &[conv::fit::Time]) -> Result<Vec<(String, Vec<conv::fit::Sample>)>> {
    let of = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, conv::fit::read(path, times)?))
    };
    paths.iter().map(of).collect()
}
