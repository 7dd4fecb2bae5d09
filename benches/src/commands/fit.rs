//! `fit`: the chooser's constants from measurements.
use anyhow::Result;
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use lacuna::{ValueType, spmm};

use crate::cli::FitOptions;
use crate::record::Record;
use crate::spmm::fit::fit as fit_model;
use crate::spmm::samples::{Sample, samples, score};
use lacuna_cases::exit::{Outcome, Usage};

/// Values that have constants of their own, and the constants' name in the library.
const KINDS: [(&str, &[ValueType], &str); 2] =
    [("f32", &[ValueType::F32], "H200"), ("f16 and bf16", &[ValueType::F16, ValueType::Bf16], "H200_HALVES")];

/// Fits the chooser's constants to two thirds of the problems in records of `sweep --all-algorithms`, and prints how well
/// the old and the new ones choose, on those and on the third that was held out; then the constants, for
/// `crates/lacuna/src/spmm/cost.rs`. Values of 32 and of 16 bits are fitted each by themselves.
///
/// # Errors
/// Files that cannot be read; records that do not serve, or too few.
pub fn fit(options: &FitOptions) -> Result<Outcome> {
    let mut records = Vec::new();
    for path in &options.records {
        records.extend(Record::read_lines(path)?);
    }
    let samples = samples(&records)?;
    if samples.is_empty() {
        return Err(too_few("any type", 0, 0).into());
    }
    for (kind, values, constants) in KINDS {
        let of_kind: Vec<&Sample> =
            samples.iter().filter(|sample| values.contains(&sample.problem.value)).collect();
        if !of_kind.is_empty() {
            println!("{}", report(kind, constants, &records[0].machine.device, &of_kind)?);
        }
    }
    Ok(Outcome::Good)
}

/// Fits to the problems of one kind of values.
fn report(kind: &str, constants: &str, device: &str, samples: &[&Sample]) -> Result<String, Usage> {
    let (held_out, train): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.is_held_out());
    if train.is_empty() || held_out.is_empty() {
        return Err(too_few(kind, train.len(), held_out.len()));
    }
    let times: usize = samples.iter().map(|sample| sample.times.len()).sum();
    let mut text = format!("{kind}: {} problems, {times} times, {device}\n\n", samples.len());

    let known = spmm::CostModel::of(samples[0].problem.value);
    let fitted = fit_model(&train, known);
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(["constants", "problems", "count", "speed over the best", "worst", "where"]);
    for (constants, model) in [("the library's", known), ("fitted", fitted)] {
        for (problems, samples) in [("fitted to", &train), ("held out", &held_out)] {
            if let Some(score) = score(samples.iter().copied(), &model) {
                let (count, mean) = (samples.len().to_string(), format!("{:.4}", score.mean));
                let worst = format!("{:.3}", score.worst);
                table.add_row([constants, problems, &count, &mean, &worst, &score.worst_name]);
            }
        }
    }
    text.push_str(&format!(
        "{table}\n\nSpeeds are geometric means. The fitted constants, `spmm::CostModel::{constants}`:\n\n"
    ));
    for (name, value) in spmm::CostModel::NAMES.iter().zip(fitted.values()) {
        text.push_str(&format!("    {name}: {value:?},\n"));
    }
    Ok(text)
}

fn too_few(kind: &str, train: usize, held_out: usize) -> Usage {
    let counts = format!("{train} problems to fit to and {held_out} to hold out");
    let need = "expected some of both, each with two kernels or more; sweep by --all-algorithms";
    Usage(format!("{kind}: {counts}: {need}"))
}
