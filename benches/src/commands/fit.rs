//! `fit`: a cost model's constants from measurements.
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lacuna::spmm::ModelFile;
use lacuna_cases::exit::{Outcome, Usage};

use super::sweep::{create, write as write_records};
use crate::cli::FitOptions;
use crate::conv;
use crate::fit::{Score, nudged};
use crate::sddmm::fit as sddmm_fit;
use crate::spmm::timed::{read, to_compact};
use crate::spmm::{fit as spmm_fit, samples as spmm_samples};
use crate::table::new_table;

/// The kinds of values of SpMM that have constants of their own.
const KINDS: [&str; 4] = ["f32", "16-bit", "prepacked 16-bit", "prepacked f32"];
/// What the tables of scores have.
const HEADER: [&str; 7] = ["problems", "count", "library's", "worst", "fitted", "worst", "where"];

/// Fits an operation's cost model to the records, prints how well the library's constants and the fitted ones choose, and writes them to `--out`.
/// With `--check` it fits nothing, but says whether 2 % more or less of one of the library's constants would choose much better.
///
/// # Errors
/// Files that cannot be read or written; records that do not serve, or too few.
pub fn fit(options: &FitOptions) -> Result<Outcome> {
    let FitOptions { records, held_out, times, .. } = options;
    if records.iter().any(|path| conv::Record::is_first_of(path)) {
        return convolution(options);
    }
    if !times.is_empty() {
        return Err(Usage("expected --times with records of convolutions alone".into()).into());
    }
    if records.iter().any(|path| sddmm_fit::is_first_of(path)) {
        return sddmm(options);
    }
    if !held_out.is_empty() {
        return Err(Usage("expected --held-out with records of SDDMM or of convolutions".into()).into());
    }
    spmm(options)
}

/// Of SpMM: to two thirds of the problems.
fn spmm(options: &FitOptions) -> Result<Outcome> {
    let (gpu, timed) = read(&options.records)?;
    let mut samples = Vec::new();
    for problem in &timed {
        samples.extend(spmm_samples::samples(&gpu, problem)?);
    }
    let of_kind = |kind: &str, held_out: bool| -> Vec<&spmm_samples::Sample> {
        let is_kind = |sample: &&spmm_samples::Sample| kind_of(sample) == kind;
        samples.iter().filter(is_kind).filter(|sample| sample.is_held_out() == held_out).collect()
    };
    // Constants of a kind that the records do not have stay as they are.
    let kinds = present(&KINDS, |kind| of_kind(kind, false).len())?;
    let shipped = lacuna::spmm::CostModel::hopper();
    let model = lacuna::spmm::CostModel::new;
    let (file, outcome) = constants(
        options,
        shipped.file(),
        &kinds,
        |kind, file| spmm_fit::loss(&of_kind(kind, false), &model(file)),
        |kind, file| spmm_fit::fit(&of_kind(kind, false), &model(file), kind).file().clone(),
    );
    println!("{}, {} problems\n", gpu.gpu, samples.len());
    let mut rows = rows_of_kinds(&kinds, of_kind);
    let mut suites: Vec<&str> = samples.iter().map(|sample| sample.suite.as_str()).collect();
    suites.sort_unstable();
    suites.dedup();
    for suite in suites {
        rows.push((suite.into(), samples.iter().filter(|sample| sample.suite == suite).collect()));
    }
    let fitted = model(file);
    let score = |of: &[&spmm_samples::Sample], model| spmm_samples::score(of.iter().copied(), model);
    print_scores(&rows, |of| [shipped, &fitted].map(|model| score(of, model)));
    write(options, fitted.file())?;
    if let Some(out) = &options.compact {
        let text = to_compact(&gpu, &timed)?;
        std::fs::write(out, text).with_context(|| format!("{} cannot be written", out.display()))?;
    }
    Ok(outcome)
}

/// Of SDDMM: to two thirds of the problems of `--records`, with rows for the other third and for each file that is held out.
fn sddmm(options: &FitOptions) -> Result<Outcome> {
    let records = read_files(&options.records, sddmm_fit::read)?;
    let held_out = read_files(&options.held_out, sddmm_fit::read)?;
    let of_kind = |kind: &str, held_out: bool| -> Vec<&sddmm_fit::Sample> {
        let all = records.iter().flat_map(|(_, samples)| samples);
        all.filter(|sample| sample.kind() == kind && sample.is_held_out() == held_out).collect()
    };
    let kinds = present(&sddmm_fit::KINDS, |kind| of_kind(kind, false).len())?;
    let mut gpus: Vec<&str> =
        records.iter().flat_map(|(_, of)| of).map(|sample| sample.gpu.as_str()).collect();
    let count = gpus.len();
    gpus.sort_unstable();
    gpus.dedup();
    if gpus.len() > 1 {
        let gpus = gpus.join(", ");
        return Err(Usage(format!("expected times of one GPU, got {gpus}; fit each by itself")).into());
    }
    let shipped = lacuna::sddmm::CostModel::hopper();
    let model = lacuna::sddmm::CostModel::new;
    let (file, outcome) = constants(
        options,
        shipped.file(),
        &kinds,
        |kind, file| sddmm_fit::loss(&of_kind(kind, false), &model(file)),
        |kind, file| sddmm_fit::fit(&of_kind(kind, false), &model(file), kind).file().clone(),
    );
    print_constants(options, &file);
    println!("{}, {count} problems\n", gpus.concat());
    let mut rows = rows_of_kinds(&kinds, of_kind);
    rows.extend(rows_of_files(&held_out, "held out"));
    let fitted = model(file);
    let score = |of: &[&sddmm_fit::Sample], model| sddmm_fit::score(of.iter().copied(), model);
    print_scores(&rows, |of| [shipped, &fitted].map(|model| score(of, model)));
    write(options, fitted.file())?;
    if let Some(out) = &options.compact {
        // All is read before the file is made, which may be one of those.
        let kept: Vec<_> =
            options.records.iter().map(|path| sddmm_fit::compact(path)).collect::<Result<_>>()?;
        write_records(create(Some(out))?.as_mut(), &kept.concat())?;
    }
    Ok(outcome)
}

/// Which constants decide about a problem of SpMM.
fn kind_of(sample: &spmm_samples::Sample) -> &'static str {
    match (sample.problem.value.bytes(), sample.problem.prepacked) {
        (4, true) => "prepacked f32",
        (4, false) => "f32",
        (_, true) => "prepacked 16-bit",
        _ => "16-bit",
    }
}

/// Writes the constants to `--out`.
fn write(options: &FitOptions, file: &ModelFile) -> Result<()> {
    let Some(out) = &options.out else { return Ok(()) };
    let text = serde_json::to_string_pretty(file)?;
    std::fs::write(out, text + "\n").with_context(|| format!("{} cannot be written", out.display()))
}

/// Of convolution: to all of `--records`, with a row for each file, also of those that are held out.
fn convolution(options: &FitOptions) -> Result<Outcome> {
    if options.compact.is_some() {
        return Err(Usage("expected --compact with records of SpMM or SDDMM alone".into()).into());
    }
    let mut times = Vec::new();
    for path in &options.times {
        times.extend(conv::fit::read_times(path)?);
    }
    let train = read_files(&options.records, |path| conv::fit::read(path, &times))?;
    let held_out = read_files(&options.held_out, |path| conv::fit::read(path, &[]))?;
    let all: Vec<&conv::fit::Sample> = train.iter().flat_map(|(_, samples)| samples).collect();
    let shipped = lacuna::conv::CostModel::hopper();
    let model = lacuna::conv::CostModel::new;
    let (file, outcome) = constants(
        options,
        shipped.file(),
        &[conv::fit::KIND],
        |_, file| conv::fit::loss(&all, &model(file)),
        |_, file| conv::fit::fit(&all, &model(file)).file().clone(),
    );
    print_constants(options, &file);
    let rows: Vec<_> =
        rows_of_files(&train, "fitted to").chain(rows_of_files(&held_out, "held out")).collect();
    let fitted = model(file);
    let score = |of: &[&conv::fit::Sample], model| conv::fit::score(of.iter().copied(), model);
    print_scores(&rows, |of| [shipped, &fitted].map(|model| score(of, model)));
    write(options, fitted.file())?;
    Ok(outcome)
}

/// Those kinds of which there are problems.
fn present(kinds: &[&'static str], count: impl Fn(&str) -> usize) -> Result<Vec<&'static str>, Usage> {
    let kinds: Vec<&str> = kinds.iter().copied().filter(|kind| count(kind) > 0).collect();
    if kinds.is_empty() { Err(Usage("expected problems to fit to, got none".into())) } else { Ok(kinds) }
}

/// The constants with those of these kinds fitted, one kind after the other; or with `--check` the library's, and whether they stand it.
fn constants(
    options: &FitOptions,
    shipped: &ModelFile,
    kinds: &[&str],
    loss: impl Fn(&str, ModelFile) -> f64,
    fit: impl Fn(&str, ModelFile) -> ModelFile,
) -> (ModelFile, Outcome) {
    let (mut file, mut outcome) = (shipped.clone(), Outcome::Good);
    for &kind in kinds {
        if options.check {
            for moved in nudged(shipped, kind, |file| loss(kind, file)) {
                println!("{moved}");
                outcome = Outcome::Failure;
            }
        } else {
            file = fit(kind, file);
        }
    }
    (file, outcome)
}

/// Prints what was fitted.
fn print_constants(options: &FitOptions, file: &ModelFile) {
    for section in file.sections.iter().filter(|_| !options.check) {
        for constant in &section.constants {
            println!("{}.{} {}", section.name, constant.name, constant.value);
        }
    }
}

/// Problems of a row of the table, with its name.
type Row<'s, S> = (String, Vec<&'s S>);
/// Problems of a file, with its name.
type Named<S> = (String, Vec<S>);

/// A row for those of each kind that were fitted to, and one for those that were held out.
fn rows_of_kinds<'s, S>(kinds: &[&str], of_kind: impl Fn(&str, bool) -> Vec<&'s S>) -> Vec<Row<'s, S>> {
    let parts = [("fitted to", false), ("held out", true)];
    let of =
        |&kind: &&str| parts.map(|(what, held_out)| (format!("{kind}: {what}"), of_kind(kind, held_out)));
    kinds.iter().flat_map(of).collect()
}

/// A row for each file.
fn rows_of_files<'s, S>(files: &'s [Named<S>], what: &str) -> impl Iterator<Item = Row<'s, S>> {
    files.iter().map(move |(name, samples)| (format!("{name}: {what}"), samples.iter().collect()))
}

/// Prints how well two models choose on the problems of each row.
fn print_scores<S>(rows: &[Row<'_, S>], scores: impl Fn(&[&S]) -> [Option<Score>; 2]) {
    let mut table = new_table(HEADER);
    for (name, samples) in rows {
        let [Some(before), Some(after)] = scores(samples) else { continue };
        let number = |value: f64| format!("{value:.4}");
        table.add_row([
            name.clone(),
            samples.len().to_string(),
            number(before.mean),
            number(before.worst),
            number(after.mean),
            number(after.worst),
            after.worst_name,
        ]);
    }
    println!("{table}");
}

/// The problems of each file, by its name.
fn read_files<S>(paths: &[PathBuf], read: impl Fn(&Path) -> Result<Vec<S>>) -> Result<Vec<Named<S>>> {
    let of = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, read(path)?))
    };
    paths.iter().map(of).collect()
}
