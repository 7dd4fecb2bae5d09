//! Records as a table for people.
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{Cell, CellAlignment, Table};

use crate::operations::peers_of;
use crate::record::Record;

/// A table of records: measured times and speedups, or modelled times and counts.
pub fn of(records: &[Record]) -> String {
    let measured = records.iter().any(|record| record.time_us.is_some());
    let (mut table, first_number) = if measured { measured_table(records) } else { modelled_table(records) };
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if index >= first_number {
            CellAlignment::Right
        } else {
            CellAlignment::Left
        });
    }
    let mut text = table.to_string();
    if !measured && !records.is_empty() {
        text.push_str("\n\nTimes are the simulator's model (perfect caches, peak rates), not measurements.");
    }
    text
}

pub(crate) fn new_table<T: Into<Cell>>(header: impl IntoIterator<Item = T>) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(header);
    table
}

fn measured_table(records: &[Record]) -> (Table, usize) {
    let mut header: Vec<String> =
        ["case", "kernel", "us", "TFLOP/s", "GB/s", "error/bound"].map(String::from).into();
    let peers = peers_of(records);
    for (_, title) in &peers {
        header.extend([format!("{title} us"), "speedup".into()]);
    }
    let mut table = new_table(header);
    for record in records {
        let us = record.median_us().unwrap_or(f64::NAN);
        let mut row = vec![
            record.case.clone(),
            record.algorithm.clone(),
            format!("{us:.1}"),
            format!("{:.2}", record.tflops().unwrap_or(f64::NAN)),
            format!("{:.0}", record.bytes as f64 / us / 1e3),
            error(record),
        ];
        for &(peer, _) in &peers {
            let time = record.peers.get(peer).map(|peer| format!("{:.1}", peer.time.median));
            let speedup = record.speedup(peer).map(|speedup| format!("{speedup:.2}"));
            row.extend([time, speedup].map(|cell| cell.unwrap_or_else(|| "–".into())));
        }
        table.add_row(row);
    }
    (table, 2)
}

fn modelled_table(records: &[Record]) -> (Table, usize) {
    let mut table = new_table([
        "case",
        "M",
        "K",
        "N",
        "nonzeros",
        "kernel",
        "requests",
        "sectors",
        "FMAs",
        "V100 model us",
        "A100 model us",
        "H200 model us",
        "error/bound",
    ]);
    for record in records {
        let counts = record.counts.unwrap_or_default();
        let model =
            |machine: &str| record.model_us.get(machine).map_or_else(|| "–".into(), |us| format!("{us:.2}"));
        table.add_row([
            record.case.clone(),
            record.m.to_string(),
            record.k.to_string(),
            record.n.to_string(),
            record.nnz.to_string(),
            record.algorithm.clone(),
            counts.requests.to_string(),
            counts.sectors.to_string(),
            counts.fmas.to_string(),
            model("V100"),
            model("A100"),
            model("H200"),
            error(record),
        ]);
    }
    (table, 1)
}

fn error(record: &Record) -> String {
    if record.is_right() { format!("{:.3}", record.error_over_bound) } else { "WRONG".into() }
}
