//! `oracle`: the library's choice of kernels against the fastest.
use std::collections::BTreeMap;

use anyhow::Result;

use crate::cli::OracleOptions;
use crate::operations::width_title;
use crate::profile::Profile;
use crate::record::{Record, geometric_mean};
use crate::table::{align_numbers, new_table};
use lacuna_cases::exit::{Outcome, Usage};

/// How many of the worst cases are listed.
const LISTED: usize = 10;

/// A case with all its kernels.
struct Choice<'a> {
    chosen: &'a Record,
    fastest: &'a Record,
    /// The choice's speed over the fastest kernel's.
    speed: f64,
}

/// Reports how near the library's choices come to the fastest kernels, by suite, and the worst cases.
///
/// # Errors
/// Files that cannot be read, or in which no case has more than one kernel.
pub fn oracle(options: &OracleOptions) -> Result<Outcome> {
    let profile = Profile::named(&options.profile)?;
    let mut records = Vec::new();
    for path in &options.records {
        records.extend(Record::read_lines(path)?);
    }
    println!("{}", report(&records, profile.name())?);
    Ok(Outcome::Good)
}

fn report(records: &[Record], machine: &str) -> Result<String, Usage> {
    let wrong: Vec<&Record> = records.iter().filter(|record| !record.is_right()).collect();
    let mut choices = choices(records, machine);
    if choices.is_empty() {
        return Err(Usage(
            "no case has several right kernels of which one is the library's choice: make the records with \
             `sweep --all-algorithms`"
                .into(),
        ));
    }
    choices.sort_by(|a, b| a.speed.total_cmp(&b.speed));

    let mut suites: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for choice in &choices {
        suites.entry(&choice.chosen.suite).or_default().push(choice.speed);
    }
    let mut means = new_table(["suite", "cases", "choice is the fastest", "speed of the choice", "worst"]);
    for (suite, speeds) in &suites {
        let fastest = speeds.iter().filter(|&&speed| speed >= 1.0).count();
        let mean = geometric_mean(speeds.iter().copied()).unwrap_or(f64::NAN);
        // The choices were sorted: the first is the worst.
        let numbers = [mean, speeds[0]].map(|speed| format!("{speed:.3}"));
        let [mean, worst] = numbers;
        means.add_row([(*suite).to_string(), speeds.len().to_string(), fastest.to_string(), mean, worst]);
    }
    let width = width_title(choices.iter().map(|choice| choice.chosen));
    let mut worst = new_table(["case", width, "choice", "us", "fastest", "us", "speed of the choice"]);
    for Choice { chosen, fastest, speed } in choices.iter().take(LISTED).filter(|choice| choice.speed < 1.0) {
        let us = |record: &Record| format!("{:.2}", record.us_on(machine).unwrap_or(f64::NAN));
        worst.add_row([
            chosen.case.clone(),
            chosen.width().to_string(),
            chosen.algorithm.clone(),
            us(chosen),
            fastest.algorithm.clone(),
            us(fastest),
            format!("{speed:.3}"),
        ]);
    }
    align_numbers(&mut means, 1);
    align_numbers(&mut worst, 6);
    let mut text = means.to_string();
    if worst.row_count() > 0 {
        text.push_str(&format!("\n\nThe worst:\n\n{worst}"));
    }
    if !wrong.is_empty() {
        let chosen = wrong.iter().filter(|record| record.chosen).count();
        let (count, whose) = (wrong.len(), format!("{chosen} of them of the library's choice"));
        text.push_str(&format!(
            "\n\nLeft out, because they are out of their bounds: {count} results, {whose}."
        ));
    }
    if choices.iter().any(|choice| choice.chosen.time_us.is_none()) {
        text.push_str(&format!("\n\nTimes are the simulator's model of {machine}, not measurements."));
    }
    Ok(text)
}

/// The cases with several kernels. Wrong results are no rivals, and a case whose choice is wrong does not count.
fn choices<'a>(records: &'a [Record], machine: &str) -> Vec<Choice<'a>> {
    let mut cases: BTreeMap<_, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.is_right()) {
        let Record { suite, op, dtype, index, precision, case, k, n, batch, seed, machine, .. } = record;
        cases
            .entry((suite, op, (dtype, index, precision), case, [n, k, batch], seed, &machine.device))
            .or_default()
            .push(record);
    }
    let us = |record: &Record| record.us_on(machine).filter(|&us| us > 0.0);
    let choice = |kernels: Vec<&'a Record>| {
        let chosen = *kernels.iter().find(|record| record.chosen)?;
        let timed = kernels.iter().filter_map(|&record| Some((us(record)?, record)));
        let (fastest_us, fastest) = timed.min_by(|a, b| a.0.total_cmp(&b.0))?;
        (kernels.len() > 1).then_some(Choice { chosen, fastest, speed: fastest_us / us(chosen)? })
    };
    cases.into_values().filter_map(choice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn kernel(case: &str, name: &str, us: f64, chosen: bool) -> Record {
        Record { algorithm: name.into(), chosen, ..record("shapes", case, 0.9, [us, 1.0, 1.0]) }
    }

    #[test]
    fn choices_are_set_against_the_fastest() {
        let mut wrong = kernel("first", "wrong", 1.0, false);
        wrong.error_over_bound = 2.0;
        let wrong_choice = Record { error_over_bound: f64::MAX, ..kernel("third", "taken", 1.0, true) };
        let records = [
            kernel("first", "taken", 40.0, true),
            kernel("first", "better", 10.0, false),
            wrong,
            kernel("second", "taken", 10.0, true),
            kernel("second", "slower", 30.0, false),
            kernel("alone", "taken", 10.0, true),
            wrong_choice,
            kernel("third", "right", 10.0, false),
            kernel("third", "slow", 20.0, false),
        ];
        assert!(!report(&records[..2], "H200").unwrap().contains("Left out"));
        let text = report(&records, "H200").unwrap();
        let suite = text.lines().find(|line| line.contains("shapes")).unwrap();
        // A quarter and a whole: a half in geometric mean.
        let cells: Vec<&str> = suite.split('|').map(str::trim).collect();
        assert_eq!(cells[1..6], ["shapes", "2", "1", "0.500", "0.250"], "{text}");
        assert!(text.contains("better") && !text.contains("wrong") && !text.contains("slower"), "{text}");
        assert!(text.ends_with("bounds: 2 results, 1 of them of the library's choice."), "{text}");
    }

    #[test]
    fn one_kernel_a_case_is_no_choice() {
        let error = report(&[kernel("alone", "taken", 10.0, true)], "H200").unwrap_err();
        assert!(error.to_string().contains("--all-algorithms"), "{error}");
    }
}
