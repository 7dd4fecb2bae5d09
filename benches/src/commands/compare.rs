//! `compare`: two files of records, case by case.
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::cli::CompareOptions;
use crate::copies::COPY;
use crate::operations::width_title;
use crate::peers::CUSPARSE;
use crate::record::{Record, geometric_mean};
use crate::table::new_table;
use lacuna_cases::exit::{Outcome, Usage};

/// The peers whose times tell how fast the machine was: of an operation's, the first that both records have.
const YARDSTICKS: [&str; 5] =
    [CUSPARSE, "cublas_f32_products", "cublas_f16_products", "cublas_bf16_products", COPY];

/// What makes two records the same case.
type Key = ([String; 6], [usize; 3], u64, bool);

fn key(record: &Record) -> Key {
    let Record { op, dtype, index, precision, reduce, case, k, n, batch, seed, cold, .. } = record;
    ([op, dtype, index, precision, reduce, case].map(Clone::clone), [*n, *k, *batch], *seed, *cold)
}

/// The measured median, or the model on the newest machine.
fn microseconds(record: &Record) -> Option<f64> {
    record.us_on("H200")
}

/// The fastest record of each case of a file: a file may hold several kernels.
fn fastest(path: &Path) -> Result<BTreeMap<Key, Record>> {
    let mut fastest: BTreeMap<Key, Record> = BTreeMap::new();
    for record in Record::read_lines(path)? {
        let key = key(&record);
        let known = fastest.get(&key).and_then(microseconds);
        if known.is_none_or(|known| microseconds(&record).is_some_and(|us| us < known)) {
            fastest.insert(key, record);
        }
    }
    Ok(fastest)
}

/// Compares the fastest kernels of two files of records, case by case. Where a peer stands in both, times are first set
/// against that peer's, because the clocks of two runs differ. A case that became slower, or wrong, or is missing fails.
///
/// # Errors
/// Files that cannot be read, have no case in common, or come from different devices.
pub fn compare(options: &CompareOptions) -> Result<Outcome> {
    if !(options.tolerance.is_finite() && options.tolerance >= 0.0) {
        return Err(
            Usage(format!("--tolerance is {}: expected a number of 0 or more", options.tolerance)).into()
        );
    }
    let base = fastest(&options.base)?;
    let mut new = fastest(&options.new)?;
    let mut table = new_table([
        "case",
        width_title(base.values()),
        "base us",
        "new us",
        "speedup",
        "against the peer",
        "verdict",
    ]);
    let mut ratios = Vec::new();
    let mut failures = 0;
    for (key, before) in &base {
        let Some(record) = new.remove(key) else {
            failures += 1;
            table.add_row([before.case.as_str(), &before.width().to_string(), "", "", "", "", "missing"]);
            continue;
        };
        if before.machine.device != record.machine.device {
            let (base, new) = (&before.machine.device, &record.machine.device);
            return Err(Usage(format!("{}: `{base}` and `{new}` cannot be compared", record.case)).into());
        }
        let (Some(old), Some(now)) = (microseconds(before), microseconds(&record)) else { continue };
        let against_peer = YARDSTICKS
            .iter()
            .find_map(|peer| before.speedup(peer).zip(record.speedup(peer)))
            .map(|(old, new)| new / old);
        let ratio = against_peer.unwrap_or(old / now);
        let verdict = match () {
            () if !record.is_right() => "WRONG",
            () if ratio < 1.0 - options.tolerance => "slower",
            () => "",
        };
        failures += usize::from(!verdict.is_empty());
        ratios.push(ratio);
        table.add_row([
            record.case.clone(),
            record.width().to_string(),
            format!("{old:.2}"),
            format!("{now:.2}"),
            format!("{:.3}", old / now),
            against_peer.map_or_else(|| "–".into(), |ratio| format!("{ratio:.3}")),
            verdict.into(),
        ]);
    }
    let mean = geometric_mean(ratios.iter().copied())
        .ok_or_else(|| Usage("the two files have no measured case in common".into()))?;
    println!("{table}\n{mean:.3}× in geometric mean; {failures} of {} cases failed", base.len());
    Ok(if failures == 0 { Outcome::Good } else { Outcome::Failure })
}
