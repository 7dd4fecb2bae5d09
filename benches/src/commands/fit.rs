//! `fit`: the chooser's constants from measurements.
use anyhow::Result;
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use lacuna::CostModel;

use crate::cli::FitOptions;
use crate::exit::{Outcome, Usage};
use crate::record::Record;
use crate::spmm::fit::{Sample, fit as fit_model, samples, score};

/// Fits the chooser's constants to two thirds of the problems in records of `sweep --all-algorithms`, and prints how well
/// the old and the new ones choose, on those and on the third that was held out; then the constants, for
/// `crates/lacuna/src/spmm/cost.rs`.
///
/// # Errors
/// Files that cannot be read; records that do not serve, or too few.
pub fn fit(options: &FitOptions) -> Result<Outcome> {
    let mut records = Vec::new();
    for path in &options.records {
        records.extend(Record::read_lines(path)?);
    }
    let samples = samples(&records)?;
    let (held_out, train): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.is_held_out());
    if train.is_empty() || held_out.is_empty() {
        let counts = format!("{} problems to fit to and {} to hold out", train.len(), held_out.len());
        let need = "expected some of both, each with two kernels or more; sweep by --all-algorithms";
        return Err(Usage(format!("{counts}: {need}")).into());
    }
    let times: usize = samples.iter().map(|sample| sample.times.len()).sum();
    println!("{} problems, {times} times, {}\n", samples.len(), records[0].machine.device);

    let fitted = fit_model(&train, CostModel::H200);
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(["constants", "problems", "count", "speed over the best", "worst", "where"]);
    for (constants, model) in [("the library's", CostModel::H200), ("fitted", fitted)] {
        for (problems, samples) in [("fitted to", &train), ("held out", &held_out)] {
            if let Some(score) = score(samples.iter().copied(), &model) {
                let (count, mean) = (samples.len().to_string(), format!("{:.4}", score.mean));
                let worst = format!("{:.3}", score.worst);
                table.add_row([constants, problems, &count, &mean, &worst, &score.worst_name]);
            }
        }
    }
    println!("{table}\n\nSpeeds are geometric means. The fitted constants:\n");
    for (name, value) in CostModel::NAMES.iter().zip(fitted.values()) {
        println!("    {name}: {value:?},");
    }
    Ok(Outcome::Good)
}
