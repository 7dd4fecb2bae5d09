//! The records that a summary is of.
use std::collections::BTreeMap;

use crate::operation::Rate;
use crate::record::Record;

/// The records of the library's choices, one a case, and the machine whose model counts where nothing was measured.
pub(crate) struct Chosen<'a> {
    records: Vec<&'a Record>,
    pub(crate) machine: &'a str,
}

impl<'a> Chosen<'a> {
    pub(crate) fn of(records: &'a [Record], machine: &'a str) -> Self {
        let records = records.iter().filter(|record| record.chosen && record.flops > 0).collect();
        Self { records, machine }
    }

    /// Those of a group.
    pub(crate) fn group(&self, group: &str) -> Self {
        self.those(|record| record.group == group)
    }

    /// Some of them.
    pub(crate) fn those(&self, wanted: impl Fn(&'a Record) -> bool) -> Self {
        let records = self.records.iter().copied().filter(|&record| wanted(record)).collect();
        Self { records, machine: self.machine }
    }

    /// The records.
    pub(crate) fn records(&self) -> &[&'a Record] {
        &self.records
    }

    /// A record's measured median, or else its model.
    pub(crate) fn us(&self, record: &Record) -> Option<f64> {
        record.us_on(self.machine)
    }

    /// Tera-operations a second of each record.
    pub(crate) fn tflops(&self) -> impl Iterator<Item = f64> + '_ {
        let tflops = |record: &&Record| Some(record.flops as f64 / self.us(record)? / 1e6);
        self.records.iter().filter_map(tflops)
    }

    /// What [`Self::rates`] are: some operations are a matter of bytes.
    pub(crate) fn rate_title(&self) -> &'static str {
        let is_by_bytes = |record: &&Record| record.operation().rate == Rate::Bytes;
        if self.records.iter().any(is_by_bytes) { "TB/s" } else { "TFLOP/s" }
    }

    /// Tera-operations a second of each record, or terabytes.
    pub(crate) fn rates(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        let tbs = |record: &&Record| Some(record.bytes as f64 / self.us(record)? / 1e6);
        if self.rate_title() == "TB/s" {
            Box::new(self.records.iter().filter_map(tbs))
        } else {
            Box::new(self.tflops())
        }
    }

    /// How many times faster than a peer each record is.
    pub(crate) fn speedups(&self, peer: &str) -> impl Iterator<Item = f64> {
        self.records.iter().filter_map(move |record| record.speedup(peer))
    }
}

/// The records whose results are within their bounds, less the peers whose results are not; and a line that tells what was
/// left out, where anything was.
pub(crate) fn right<'r>(records: impl IntoIterator<Item = &'r Record>) -> (Vec<Record>, Option<String>) {
    let (mut right, mut left_out) = (Vec::new(), BTreeMap::<&str, usize>::new());
    for record in records {
        if !record.is_right() {
            *left_out.entry("ours").or_default() += 1;
            continue;
        }
        let mut record = record.clone();
        for &(peer, title) in record.operation().peers {
            if record.peers.get(peer).is_some_and(|measured| measured.error_over_bound.is_none()) {
                record.peers.remove(peer);
                *left_out.entry(title).or_default() += 1;
            }
        }
        right.push(record);
    }
    let counts: Vec<String> = left_out.iter().map(|(whose, count)| format!("{count} of {whose}")).collect();
    let line = format!("Left out, because they are out of their bounds: {}.", counts.join(", "));
    (right, (!counts.is_empty()).then_some(line))
}
