//! The text of a table.
use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::spec::{Column, Filter, Filtered, Kind, Spec, What, percent};
use super::{Files, layers};
use crate::operations::peers_of;
use crate::record::{Record, geometric_mean};
use lacuna_cases::exit::Usage;

/// What stands where records do not have a number.
const NONE: &str = "–";

/// The table that a mark asks for. `folder` is where records are from the page.
pub(super) fn table(spec: &Spec, files: &Files, folder: &str) -> Result<String> {
    let draw: fn(&Spec, &[Part<'_>], &str) -> Result<String> = match spec.kind {
        Kind::Cases => |spec, parts, _| cases(spec, parts),
        Kind::Suites => suites,
        Kind::Grid => |spec, parts, _| grid(spec, parts),
        Kind::Layers => return layers::layers(spec, files),
        Kind::Levels => return layers::levels(spec, files),
    };
    let read = spec.files.iter().map(|name| files.get(name)).collect::<Result<Vec<_>>>()?;
    let mut parts = Vec::new();
    for (name, records) in spec.files.iter().zip(&read) {
        parts.push(Part { name, records: filtered(records.iter(), &spec.filter)? });
    }
    draw(spec, &parts, folder)
}

/// The chosen records of a file.
struct Part<'a> {
    name: &'a str,
    records: Vec<&'a Record>,
}

/// Those of the records that a filter lets through.
pub(super) fn filtered<'a, R: Filtered>(
    records: impl Iterator<Item = &'a R>,
    filter: &Filter,
) -> Result<Vec<&'a R>> {
    let kept =
        records.filter_map(|record| filter.lets(record).map(|lets| lets.then_some(record)).transpose());
    kept.collect()
}

fn cases(spec: &Spec, parts: &[Part<'_>]) -> Result<String> {
    let records: Vec<&Record> = parts.iter().flat_map(|part| part.records.iter().copied()).collect();
    let mut table = Table::new(spec.columns.iter().map(|column| title(column, &records)));
    for &record in &records {
        let cell = |column: &Column| match &column.what {
            What::Case => Ok(record.case.clone()),
            What::Problem => Ok(problem(record)),
            What::Kernel => Ok(kernel(record).into()),
            What::Us => Ok(number(record.median_us(), 1)),
            What::Tflops => Ok(number(record.tflops(), 2)),
            What::Tbs => Ok(number(record.median_us().map(|us| record.bytes as f64 / us / 1e6), 2)),
            What::UsOf(peer) => Ok(number(record.peers.get(peer).map(|peer| peer.time.median), 1)),
            What::Over(peer) => Ok(times(record.speedup(peer))),
            What::Problems | What::Lost(_) | What::Won(_) => misplaced(column, spec),
        };
        table.row(spec.columns.iter().map(cell))?;
    }
    if records.len() > 1 && spec.columns.iter().any(|column| matches!(column.what, What::Over(_))) {
        let mean = |(index, column): (usize, &Column)| match &column.what {
            What::Over(peer) => times(geometric_mean(speedups(&records, peer))),
            _ if index == 0 => "geometric mean".into(),
            _ => String::new(),
        };
        table.row(spec.columns.iter().enumerate().map(mean).map(Ok))?;
    }
    Ok(table.text)
}

fn suites(spec: &Spec, parts: &[Part<'_>], folder: &str) -> Result<String> {
    let all: Vec<&Record> = parts.iter().flat_map(|part| part.records.iter().copied()).collect();
    let titles = spec.columns.iter().map(|column| title(column, &all));
    let mut table = Table::new([("suite".into(), false)].into_iter().chain(titles));
    for part in parts {
        let Some(first) = part.records.first() else {
            bail!(Usage(format!("{}: no record is meant", part.name)))
        };
        let label =
            format!("`{}`{} ([record]({folder}/{}.jsonl))", first.suite, kind(first, &all), part.name);
        let cell = |column: &Column| {
            let records = filtered(part.records.iter().copied(), &column.filter)?;
            match &column.what {
                What::Problems => Ok(records.len().to_string()),
                What::Over(peer) => Ok(times(geometric_mean(speedups(&records, peer)))),
                What::Lost(peers) => {
                    let lost =
                        |peer: &String| speedups(&records, peer).filter(|&speedup| speedup < 1.0).count();
                    Ok(peers.iter().map(|peer| lost(peer).to_string()).collect::<Vec<_>>().join(", "))
                }
                What::Won(peer) => Ok(won(&records, peer)),
                _ => misplaced(column, spec),
            }
        };
        table.row([Ok(label)].into_iter().chain(spec.columns.iter().map(cell)))?;
    }
    Ok(table.text)
}

fn grid(spec: &Spec, parts: &[Part<'_>]) -> Result<String> {
    let all: Vec<&Record> = parts.iter().flat_map(|part| part.records.iter().copied()).collect();
    let levels: BTreeSet<u32> = all.iter().map(|record| percent(record)).collect();
    let widths: BTreeSet<usize> = all.iter().map(|record| record.width()).collect();
    let mut columns = Vec::new();
    for &width in &widths {
        for part in parts {
            let records = part.records.iter().copied().filter(|record| record.width() == width);
            columns.push(records.collect::<Vec<_>>());
        }
    }
    columns.retain(|records| !records.is_empty());
    let titles = columns
        .iter()
        .map(|records| (format!("{}{}", records[0].named_width(), kind(records[0], &all)), false));
    let mut table = Table::new([("zeros".into(), false)].into_iter().chain(titles));
    for level in levels {
        let cell = |records: &Vec<&Record>| {
            let records: Vec<&Record> =
                records.iter().copied().filter(|record| percent(record) == level).collect();
            let of_column = |column: &Column| match &column.what {
                What::Over(peer) => Ok(spread(&speedups(&records, peer).collect::<Vec<_>>())),
                What::Won(peer) => Ok(won(&records, peer)),
                _ => misplaced(column, spec),
            };
            Ok(spec.columns.iter().map(of_column).collect::<Result<Vec<_>>>()?.join(", "))
        };
        table.row([Ok(format!("{level} %"))].into_iter().chain(columns.iter().map(cell)))?;
    }
    Ok(table.text)
}

/// A Markdown table as it grows.
pub(super) struct Table {
    pub(super) text: String,
}

impl Table {
    /// With titles, and whether each column is of numbers.
    pub(super) fn new(titles: impl Iterator<Item = (String, bool)>) -> Self {
        let (titles, numbers): (Vec<String>, Vec<bool>) = titles.unzip();
        let line = |numbers: bool| if numbers { "---:" } else { "---" };
        let lines: Vec<&str> = numbers.into_iter().map(line).collect();
        Self { text: format!("| {} |\n| {} |", titles.join(" | "), lines.join(" | ")) }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl Iterator<Item = Result<String>>) -> Result<()> {
        self.text.push_str("\n|");
        for cell in cells {
            let cell = cell?;
            self.text.push_str(if cell.is_empty() { " |" } else { " " });
            if !cell.is_empty() {
                self.text.push_str(&cell.replace('|', "\\|"));
                self.text.push_str(" |");
            }
        }
        Ok(())
    }
}

/// A column's title, and whether it is of numbers.
fn title(column: &Column, records: &[&Record]) -> (String, bool) {
    let peer = |name: &String| {
        let known = peers_of(records.iter().copied()).into_iter().find(|(peer, _)| peer == name);
        known.map_or_else(|| name.clone(), |(_, title)| title.into())
    };
    let (title, is_number) = match &column.what {
        What::Case => ("case".into(), false),
        What::Problem => ("M K N, zeros".into(), false),
        What::Kernel => ("kernel".into(), false),
        What::Us => ("us".into(), true),
        What::Tflops => ("TFLOP/s".into(), true),
        What::Tbs => ("TB/s".into(), true),
        What::UsOf(name) => (format!("{}, us", peer(name)), true),
        What::Over(name) => (format!("over {}", peer(name)), true),
        What::Problems => ("problems".into(), true),
        What::Lost(names) => {
            (format!("lost to {}", names.iter().map(peer).collect::<Vec<_>>().join(", ")), true)
        }
        What::Won(name) => (format!("faster than {}", peer(name)), true),
    };
    (format!("{title}{}", column.filter.words()), is_number)
}

/// What sets the records of a file apart from others of its suite in the table.
fn kind(record: &Record, all: &[&Record]) -> String {
    let mut kind = String::new();
    if all.iter().any(|other| other.dtype != record.dtype) {
        kind.push_str(&format!(", `{}`", record.dtype));
    }
    match record.precision.as_str() {
        "fma" => kind.push_str(", `Fma`"),
        "tf32" => kind.push_str(", `Tf32`"),
        _ => {}
    }
    if record.prepacked {
        kind.push_str(", prepacked");
    }
    kind
}

fn problem(record: &Record) -> String {
    let zeros = (f64::from(percent(record)) / 100.0).to_string();
    let zeros = zeros.strip_prefix("0.").map_or(zeros.clone(), |decimals| format!(".{decimals}"));
    format!("{} {} {}, {zeros}", record.m, record.k, record.n)
}

/// A kernel's name without its operation and type, which the other cells tell.
fn kernel(record: &Record) -> &str {
    let name = record.algorithm.as_str();
    let shared = name.split_once('_').and_then(|(_, rest)| rest.strip_prefix(record.dtype.as_str()));
    shared.and_then(|rest| rest.strip_prefix('_')).unwrap_or(name)
}

fn speedups<'a>(records: &'a [&Record], peer: &'a str) -> impl Iterator<Item = f64> + 'a {
    records.iter().filter_map(move |record| record.speedup(peer))
}

fn won(records: &[&Record], peer: &str) -> String {
    match speedups(records, peer).filter(|&speedup| speedup > 1.0).count() {
        0 => "none".into(),
        count => count.to_string(),
    }
}

/// The geometric mean, the least and the most.
pub(super) fn spread(speedups: &[f64]) -> String {
    let (least, most) =
        speedups.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &x| (least.min(x), most.max(x)));
    match geometric_mean(speedups.iter().copied()) {
        Some(mean) => format!("{mean:.2}× ({least:.2} to {most:.2})"),
        None => NONE.into(),
    }
}

fn times(speedup: Option<f64>) -> String {
    speedup.map_or_else(|| NONE.into(), |speedup| format!("{speedup:.2}×"))
}

/// A number, or the sign for none.
pub(super) fn number(number: Option<f64>, decimals: usize) -> String {
    number.map_or_else(|| NONE.into(), |number| format!("{number:.decimals$}"))
}

/// The error of a column that a kind of table does not have.
pub(super) fn misplaced<T>(column: &Column, spec: &Spec) -> Result<T> {
    bail!(Usage(format!("a table of {:?} has no column {:?}", spec.kind, column.what)))
}
