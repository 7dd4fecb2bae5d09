//! Whether a suite came to what its file expects of an H200.
use crate::chosen::{Chosen, right};
use crate::record::{Record, geometric_mean};
use crate::suites::{self, Expected};

/// The GPU of the expectations, as its name says.
const GPU: &str = "H200";

/// Lines that say which expectations the records of a whole suite miss; none of them if all are met. Nothing where the suite
/// expects nothing of this measurement: of another device, of types of which it says nothing, or without peers.
pub(crate) fn missed(records: &[Record]) -> Option<Vec<String>> {
    let first = records.first()?;
    let is_other = first.index != "u32" || first.reduce != "sum";
    if first.time_us.is_none() || !first.machine.device.contains(GPU) || is_other {
        return None;
    }
    // Where data is missing, matrices are drawn that are only like the real ones.
    if records.iter().any(|record| record.case.ends_with("(drawn)")) {
        return None;
    }
    let Expected { operation, cases, speedups } = suites::expected(&first.suite)?;
    let chosen = Chosen::of(records, GPU);
    let mut missed = Vec::new();
    if chosen.records().len() != *cases || chosen.records().iter().any(|record| record.op != *operation) {
        missed
            .push(format!("{} cases were measured: expected {cases} of {operation}", chosen.records().len()));
    }
    let these = speedups.iter().filter(|these| {
        (these.dtype.as_str(), these.precision.as_str(), these.prepacked)
            == (&*first.dtype, &*first.precision, first.prepacked)
    });
    let (right, _) = right(chosen.records().iter().copied());
    let right = Chosen::of(&right, GPU);
    let mut compared = 0;
    for (peer, least) in these.flat_map(|these| &these.at_least) {
        let Some(mean) = geometric_mean(right.speedups(peer)) else { continue };
        compared += 1;
        if mean < *least {
            missed.push(format!("{mean:.2}× {peer} in geometric mean: expected {least:.2}× or more"));
        }
    }
    (compared > 0 || !missed.is_empty()).then_some(missed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    /// Records of suite `table` on a GPU, so many times as fast as both peers.
    fn records(device: &str, count: usize, speedup: f64) -> Vec<Record> {
        let mut record = record("table", "case", 0.9, [1.0, speedup, speedup]);
        record.machine.device = device.into();
        vec![record; count]
    }

    #[test]
    fn what_is_slower_or_missing_is_told() {
        assert_eq!(missed(&records("NVIDIA H200", 14, 20.0)), Some(vec![]));
        let slow = missed(&records("NVIDIA H200", 14, 1.0)).unwrap();
        assert!(
            slow.len() == 2 && slow[0].contains("cublas_f32") && slow[0].contains("expected"),
            "{slow:?}"
        );
        let few = missed(&records("NVIDIA H200", 3, 20.0)).unwrap();
        assert!(few.len() == 1 && few[0].contains("expected 14"), "{few:?}");
    }

    #[test]
    fn the_committed_records_are_as_fast_as_their_suites_expect() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/records");
        let mut met = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            // The folder beside them has the times that cost models are fitted to.
            if path.is_dir() {
                continue;
            }
            let records = Record::read_lines(&path).unwrap();
            let mut missed = missed(&records);
            // Some were made of a part of a suite.
            missed.iter_mut().for_each(|missed| missed.retain(|line| !line.contains("were measured")));
            assert!(missed.as_ref().is_none_or(Vec::is_empty), "{missed:?}");
            met += usize::from(missed.is_some());
        }
        assert!(met > 10, "{met} files have expectations");
    }

    #[test]
    fn other_devices_and_types_have_no_expectations() {
        assert_eq!(missed(&records("NVIDIA A100", 14, 1.0)), None);
        let mut halves = records("NVIDIA H200", 14, 1.0);
        halves.iter_mut().for_each(|record| record.dtype = "bf16".into());
        assert_eq!(missed(&halves), None);
        assert_eq!(missed(&[]), None);
    }
}
