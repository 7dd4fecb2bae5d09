//! Records as a table for people.
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{Cell, CellAlignment, Table};

use crate::operations::peers_of;
use crate::record::{Counts, Record};

/// What stands in a cell without a value.
const NONE: &str = "–";

/// A table of records: measured times and speedups, or modelled times and counts. Columns that no record has are left out.
pub fn of(records: &[Record]) -> String {
    let measured = records.iter().any(|record| record.time_us.is_some());
    let columns = if measured { measured_columns(records) } else { modelled_columns(records) };
    let mut text = drawn(columns);
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

/// Aligns the columns from `first` on to the right: those of numbers.
pub(crate) fn align_numbers(table: &mut Table, first: usize) {
    for column in table.column_iter_mut().skip(first) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// A column: its title, whether it is of numbers, and a cell for each record.
struct Column {
    title: String,
    is_number: bool,
    cells: Vec<Option<String>>,
}

impl Column {
    fn text(title: &str, records: &[Record], cell: impl Fn(&Record) -> String) -> Self {
        let cells = records.iter().map(|record| Some(cell(record)).filter(|cell| !cell.is_empty()));
        Self { title: title.into(), is_number: false, cells: cells.collect() }
    }

    fn numbers(
        title: impl Into<String>,
        records: &[Record],
        cell: impl Fn(&Record) -> Option<String>,
    ) -> Self {
        Self { title: title.into(), is_number: true, cells: records.iter().map(cell).collect() }
    }
}

/// The columns that have a value; of no records all titles.
fn drawn(mut columns: Vec<Column>) -> String {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    columns.retain(|column| rows == 0 || column.cells.iter().any(Option::is_some));
    let mut table = new_table(columns.iter().map(|column| &column.title));
    for row in 0..rows {
        table.add_row(columns.iter().map(|column| column.cells[row].as_deref().unwrap_or(NONE)));
    }
    for (drawn, column) in table.column_iter_mut().zip(&columns) {
        let alignment = if column.is_number { CellAlignment::Right } else { CellAlignment::Left };
        drawn.set_cell_alignment(alignment);
    }
    table.to_string()
}

fn measured_columns(records: &[Record]) -> Vec<Column> {
    let number =
        |title: &str, cell: &dyn Fn(&Record) -> Option<String>| Column::numbers(title, records, cell);
    let tflops = |record: &Record| record.tflops().filter(|_| record.flops > 0);
    let bandwidth = |record: &Record| {
        record.median_us().filter(|_| record.bytes > 0).map(|us| record.bytes as f64 / us / 1e3)
    };
    let mut columns = vec![
        Column::text("case", records, |record| record.case.clone()),
        Column::text("kernel", records, |record| record.algorithm.clone()),
        caches(records),
        number("us", &|record| record.median_us().map(|us| format!("{us:.1}"))),
        number("TFLOP/s", &|record| tflops(record).map(|rate| format!("{rate:.2}"))),
        number("GB/s", &|record| bandwidth(record).map(|rate| format!("{rate:.0}"))),
        number("error/bound", &|record| Some(error(record))),
    ];
    for (peer, title) in peers_of(records) {
        let time = |record: &Record| record.peers.get(peer).map(|peer| format!("{:.1}", peer.time.median));
        columns.push(Column::numbers(format!("{title} us"), records, time));
        let speedup = |record: &Record| record.speedup(peer).map(|speedup| format!("{speedup:.2}"));
        columns.push(Column::numbers("speedup", records, speedup));
    }
    columns
}

fn modelled_columns(records: &[Record]) -> Vec<Column> {
    let number =
        |title: &str, cell: &dyn Fn(&Record) -> Option<String>| Column::numbers(title, records, cell);
    let count = |title: &str, of: fn(&Counts) -> u64| {
        Column::numbers(title, records, |record| record.counts.as_ref().map(|counts| of(counts).to_string()))
    };
    let mut columns = vec![
        Column::text("case", records, |record| record.case.clone()),
        number("M", &|record| Some(record.m.to_string())),
        number("K", &|record| Some(record.k.to_string())),
        number("N", &|record| Some(record.n.to_string())),
        number("nonzeros", &|record| Some(record.nnz.to_string())),
        Column::text("kernel", records, |record| record.algorithm.clone()),
        caches(records),
        count("requests", |counts| counts.requests),
        count("sectors", |counts| counts.sectors),
        count("FMAs", |counts| counts.fmas),
    ];
    for machine in ["V100", "A100", "H200"] {
        let model = |record: &Record| record.model_us.get(machine).map(|us| format!("{us:.2}"));
        columns.push(Column::numbers(format!("{machine} model us"), records, model));
    }
    columns.push(number("error/bound", &|record| Some(error(record))));
    columns
}

/// Which records are of cold caches.
fn caches(records: &[Record]) -> Column {
    Column::text("caches", records, |record| if record.cold { "cold".into() } else { String::new() })
}

fn error(record: &Record) -> String {
    if record.is_right() { format!("{:.3}", record.error_over_bound) } else { "WRONG".into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn titles(text: &str) -> Vec<&str> {
        let header = text.lines().next().expect("a table has a header");
        header.trim_matches('|').split('|').map(str::trim).collect()
    }

    #[test]
    fn columns_without_values_are_left_out() {
        let mut first = record("table", "first", 0.9, [100.0, 50.0, 400.0]);
        let mut second = first.clone();
        first.peers.remove("cublas_f32");
        let both = of(&[first.clone(), second.clone()]);
        assert_eq!(
            titles(&both),
            ["case", "kernel", "us", "TFLOP/s", "GB/s", "error/bound", "cuSPARSE default us", "speedup"]
                .into_iter()
                .chain(["dense cuBLAS f32 us", "speedup"])
                .collect::<Vec<_>>()
        );
        assert_eq!(both.lines().filter(|line| line.contains(NONE)).count(), 1, "{both}");
        second.peers.clear();
        second.flops = 0;
        let alone = of(&[second]);
        assert_eq!(titles(&alone), ["case", "kernel", "us", "GB/s", "error/bound"], "{alone}");
        assert!(!of(&[first.clone()]).contains("cuBLAS"));
        first.cold = true;
        assert_eq!(titles(&of(&[first]))[2], "caches");
    }
}
