//! `fit`: the cost model's constants from measurements.
use anyhow::{Context, Result};
use lacuna::spmm::CostModel;
use lacuna_cases::exit::{Outcome, Usage};

use crate::cli::FitOptions;
use crate::spmm::fit::{fit as fit_model, loss};
use crate::spmm::samples::{Sample, samples, score};
use crate::spmm::timed::{read, to_compact};
use crate::table::new_table;

/// The kinds of values that have constants of their own.
const KINDS: [&str; 2] = ["f32", "16-bit"];
/// By how much `--check` moves each constant.
const NUDGES: [f64; 2] = [0.98, 1.02];
/// How much the loss may fall by that.
const MOST_GAIN: f64 = 5e-4;

/// Fits the cost model's constants to two thirds of the problems in the fit's records, prints how well the library's and the
/// fitted ones choose, and writes them to `--out`. With `--check` it fits nothing, but says whether 2 % more or less of one of
/// the library's constants would choose much better.
///
/// # Errors
/// Files that cannot be read or written; records that do not serve, or too few.
pub fn fit(options: &FitOptions) -> Result<Outcome> {
    let (gpu, timed) = read(&options.records)?;
    let mut all = Vec::new();
    for problem in &timed {
        all.extend(samples(&gpu, problem)?);
    }
    let samples = all;
    let shipped = CostModel::hopper();
    let of_kind = |kind: &str, held_out: bool| -> Vec<&Sample> {
        let is_kind = |sample: &&Sample| (sample.problem.value.bytes() == 4) == (kind == "f32");
        samples.iter().filter(is_kind).filter(|sample| sample.is_held_out() == held_out).collect()
    };
    let (mut model, mut outcome) = (shipped.clone(), Outcome::Good);
    for kind in KINDS {
        let train = of_kind(kind, false);
        if train.is_empty() {
            return Err(Usage(format!("{kind}: expected problems to fit to, got none")).into());
        }
        if options.check {
            for moved in nudged(&train, shipped, kind) {
                println!("{moved}");
                outcome = Outcome::Failure;
            }
        } else {
            model = fit_model(&train, &model, kind);
        }
    }
    println!("{}, {} problems\n", gpu.gpu, samples.len());
    let mut table = new_table(["problems", "count", "library's", "worst", "fitted", "worst", "where"]);
    let mut rows: Vec<(String, Vec<&Sample>)> = Vec::new();
    for kind in KINDS {
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
        if let [Some(before), Some(after)] = scores {
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
    }
    println!("{table}");
    if let Some(out) = &options.out {
        let text = serde_json::to_string_pretty(model.file())?;
        std::fs::write(out, text + "\n").with_context(|| format!("{} cannot be written", out.display()))?;
    }
    if let Some(out) = &options.compact {
        let text = to_compact(&gpu, &timed)?;
        std::fs::write(out, text).with_context(|| format!("{} cannot be written", out.display()))?;
    }
    Ok(outcome)
}

/// The constants of which a little more or less would choose much better.
fn nudged(samples: &[&Sample], model: &CostModel, kind: &str) -> Vec<String> {
    let before = loss(samples, model);
    let values: Vec<f64> = model.file().fitted_to(kind).map(|constant| constant.value).collect();
    let mut found = Vec::new();
    for (at, constant) in model.file().fitted_to(kind).enumerate() {
        for factor in NUDGES {
            let mut values = values.clone();
            values[at] = (values[at] * factor).clamp(constant.bounds[0], constant.bounds[1]);
            let after = loss(samples, &CostModel::new(model.file().clone().with_values(kind, &values)));
            if after < before - MOST_GAIN {
                let [from, to] = [constant.value, values[at]];
                found.push(format!(
                    "{kind}: {} {from} to {to}: loss {before:.5} to {after:.5}",
                    constant.name
                ));
            }
        }
    }
    found
}
