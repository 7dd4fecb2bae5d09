//! Tables of convolutions: by layers, and by the zeros of feature maps.
use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::Files;
use super::draw::{Table, filtered, misplaced, number, spread};
use super::spec::{Column, Spec, What};
use crate::conv::{Record, title};
use lacuna_cases::exit::Usage;

/// A row for each layer of drawn maps, in the order of the records.
pub(super) fn layers(spec: &Spec, files: &Files) -> Result<String> {
    let records = chosen(spec, files)?;
    let mut layers: Vec<[usize; 4]> = Vec::new();
    for record in records.iter().filter(|record| record.level.is_some()) {
        if !layers.contains(&layer(record)) {
            layers.push(layer(record));
        }
    }
    let mut table = Table::new([("C, H×W, N".into(), false)].into_iter().chain(titles(spec)));
    for [channels, height, width, filters] in layers {
        let size = if height == width { format!("{height}²") } else { format!("{height}×{width}") };
        let of_layer = records.iter().filter(|record| layer(record) == [channels, height, width, filters]);
        let of_layer: Vec<&Record> = of_layer.collect();
        let cell = |column: &Column| {
            let meant = filtered(of_layer.iter().copied(), &column.filter)?;
            let numbers: Vec<f64> = match &column.what {
                What::Us => meant.iter().filter_map(|record| record.median_us()).collect(),
                What::UsOf(peer) => {
                    meant.iter().filter_map(|record| Some(record.peers.get(peer)?.time.median)).collect()
                }
                _ => return misplaced(column, spec),
            };
            match numbers[..] {
                [] => Ok(number(None, 1)),
                // A peer is measured once, for all parts of zeros.
                [first, ..] if numbers.iter().all(|&other| other == first) => Ok(number(Some(first), 1)),
                _ => bail!(Usage(format!(
                    "{} records of layer {channels} {size} {filters} are meant by {:?}: tell which, as in \
                     `where images=1 zeros=70 value=f32`",
                    numbers.len(),
                    column.what
                ))),
            }
        };
        let name = format!("{channels} {size} {filters}");
        table.row([Ok(name)].into_iter().chain(spec.columns.iter().map(cell)))?;
    }
    Ok(table.text)
}

/// A row for each part of zeros of drawn maps, and one for real maps.
pub(super) fn levels(spec: &Spec, files: &Files) -> Result<String> {
    let records = chosen(spec, files)?;
    let levels: BTreeSet<u32> = records.iter().filter_map(Record::percent).collect();
    let levels = levels.into_iter().map(|level| (format!("{level} %"), Some(level)));
    let real = records.iter().any(|record| record.level.is_none()).then(|| ("real maps".into(), None));
    let mut table = Table::new([("zeros".into(), false)].into_iter().chain(titles(spec)));
    for (name, level) in levels.chain(real) {
        let of_level: Vec<&Record> = records.iter().filter(|record| record.percent() == level).collect();
        let cell = |column: &Column| {
            let What::Over(peer) = &column.what else { return misplaced(column, spec) };
            let meant = filtered(of_level.iter().copied(), &column.filter)?;
            Ok(spread(&meant.iter().filter_map(|record| record.speedup(peer)).collect::<Vec<_>>()))
        };
        table.row([Ok(name)].into_iter().chain(spec.columns.iter().map(cell)))?;
    }
    Ok(table.text)
}

/// The records that a table is made from.
fn chosen(spec: &Spec, files: &Files) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for name in &spec.files {
        let read = files.convolutions(name)?;
        records.extend(filtered(read.iter(), &spec.filter)?.into_iter().cloned());
    }
    Ok(records)
}

fn layer(record: &Record) -> [usize; 4] {
    [record.channels, record.size[0], record.size[1], record.filters]
}

/// Titles of columns, all of numbers.
fn titles(spec: &Spec) -> impl Iterator<Item = (String, bool)> {
    spec.columns.iter().map(|column| {
        let name = match &column.what {
            What::UsOf(peer) => format!("{}, us", title(peer)),
            What::Over(peer) => format!("over {}", title(peer)),
            _ => "us".into(),
        };
        (format!("{name}{}", column.filter.words()), true)
    })
}
