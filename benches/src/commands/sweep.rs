//! `sweep`: a suite of problems.
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use lacuna_cases::Problem;
use lacuna_cases::exit::{Outcome, Usage};
use serde::Serialize;

use super::run::{outcome, print};
use crate::cli::{SetupOptions, SweepOptions};
use crate::measure;
use crate::operation::Task;
use crate::profile::Profile;
use crate::session::Session;
use crate::suites::{self, Case, Setup};
use crate::{expect, summary};

/// Products that the simulator does in a sweep: a minute or so on two cores.
const SIMULATED_PRODUCTS: f64 = 1.2e9;

/// Measures a suite.
///
/// # Errors
/// A suite or a device that is not there, or a file that cannot be written. Records of the cases before stay written.
pub fn sweep(options: &SweepOptions) -> Result<Outcome> {
    if suites::is_by_host(&options.suite) {
        return super::host::sweep(options);
    }
    let mut session = Session::open(&options.measure)?;
    let setup = setup(&options.setup, &session)?;
    let cases = cases(&options.suite, &setup, &session, SIMULATED_PRODUCTS)?;
    let mut out = create(options.out.as_deref())?;
    let records = over(&options.suite, &cases, options.measure.seed, |task| {
        let measured = measure::measure(&mut session, task)?;
        write(out.as_mut(), &measured)?;
        Ok(measured)
    })?;
    print(&records, options.measure.json)?;
    if !options.measure.json {
        println!("{}", summary::of(&records, setup.profile.name()));
    }
    let missed = if setup.is_whole() { expect::missed(&records) } else { None };
    for line in missed.iter().flatten() {
        eprintln!("lacuna-bench: suite {}: {line}", options.suite);
    }
    if missed.is_some_and(|missed| !missed.is_empty()) {
        return Ok(Outcome::Failure);
    }
    Ok(outcome(&records))
}

/// The file of `--out`, where it is named.
pub(super) fn create(path: Option<&Path>) -> Result<Option<BufWriter<File>>> {
    let create =
        |path: &Path| File::create(path).with_context(|| format!("{} cannot be written", path.display()));
    Ok(path.map(create).transpose()?.map(BufWriter::new))
}

/// Writes records to that file, as JSON lines, at once.
pub(super) fn write(out: Option<&mut BufWriter<File>>, records: &[impl Serialize]) -> Result<()> {
    let Some(out) = out else { return Ok(()) };
    for record in records {
        serde_json::to_writer(&mut *out, record)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// What the options and the device make of a suite.
pub(super) fn setup(options: &SetupOptions, session: &Session) -> Result<Setup> {
    let profile = Profile::find(&options.profile, &session.device)?;
    let SetupOptions { data, case, limit, .. } = options.clone();
    Ok(Setup { profile, data, case, limit: limit.map(|limit| limit as usize) })
}

/// The cases of a suite that the setup names, as many as it allows.
pub(super) fn limited(suite: &str, setup: &Setup) -> Result<Vec<Case>> {
    let mut cases = suites::find(suite, setup)?;
    if let Some(text) = &setup.case {
        cases.retain(|case| case.spec.name.contains(text));
        if cases.is_empty() {
            return Err(Usage(format!("no case of suite `{suite}` has `{text}` in its name")).into());
        }
    }
    let Some(limit) = setup.limit.filter(|&limit| limit < cases.len()) else { return Ok(cases) };
    eprintln!("lacuna-bench: {limit} of {} cases run", cases.len());
    Ok(suites::thinned(cases, limit))
}

/// The cases of a suite, as many as the setup allows; on the simulator a sample of them, of `products` together. What is
/// left out is told on stderr.
pub(super) fn cases(suite: &str, setup: &Setup, session: &Session, products: f64) -> Result<Vec<Case>> {
    let cases = limited(suite, setup)?;
    if !session.device.is_simulator() {
        return Ok(cases);
    }
    let sample = suites::for_simulator(cases, products)?;
    if sample.cut > 0 || sample.cases.len() < sample.of {
        let (taken, of, cut) = (sample.cases.len(), sample.of, sample.cut);
        eprintln!(
            "lacuna-bench: on the simulator {taken} of {of} cases run, {cut} of them cut to a smaller size"
        );
    }
    Ok(sample.cases)
}

/// Makes the problem of each case and measures it, with progress.
pub(super) fn over<R>(
    suite: &str,
    cases: &[Case],
    seed: u64,
    mut measure: impl FnMut(&Task<'_>) -> Result<Vec<R>>,
) -> Result<Vec<R>> {
    // indicatif draws on stderr, and only where that is a terminal.
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")?;
    let progress = ProgressBar::new(cases.len() as u64).with_style(style);
    let mut records = Vec::new();
    for case in cases {
        progress.set_message(case.spec.name.clone());
        let problem = Problem::draw(&case.spec, seed)?;
        let task = Task { suite, op: case.op, problem: &problem };
        records.extend(measure(&task).with_context(|| case.spec.name.clone())?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(records)
}
