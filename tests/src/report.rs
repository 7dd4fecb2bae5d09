//! What is printed of a run.
use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use crate::run::{Outcome, Record};

/// How many cases passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Cases that hold.
    pub passed: usize,
    /// Cases that do not.
    pub failed: usize,
    /// Cases that did not run.
    pub skipped: usize,
}

impl Counts {
    /// Counts records.
    pub fn of<'r>(records: impl IntoIterator<Item = &'r Record>) -> Self {
        let mut counts = Self::default();
        for record in records {
            *match record.outcome {
                Outcome::Passed { .. } => &mut counts.passed,
                Outcome::Failed { .. } => &mut counts.failed,
                Outcome::Skipped { .. } => &mut counts.skipped,
            } += 1;
        }
        counts
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// A line a case, as JSON objects.
pub fn json(records: &[Record]) -> String {
    let line = |record| serde_json::to_string(record).expect("a record has only names and numbers");
    records.iter().map(|record| line(record) + "\n").collect()
}

/// A table of groups, why cases were skipped, each failure in full with the command that `repeat` gives for it, and,
/// in the last line, the counts.
pub fn text(records: &[Record], repeat: impl Fn(&Record) -> String) -> String {
    let mut text = format!("{}\n", table(records));
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records {
        if let Outcome::Skipped { why } = &record.outcome {
            *reasons.entry(why).or_default() += 1;
        }
    }
    for (why, count) in reasons {
        let _ = writeln!(text, "skipped {count}: {why}");
    }
    for record in records {
        if let Some(why) = record.failure() {
            let (case, device) = (&record.case, &record.device);
            let _ = writeln!(text, "\nFAILED {case} on {device}\n  {}", why.replace('\n', "\n  "));
            let _ = writeln!(text, "  again: {}", repeat(record));
        }
    }
    let _ = writeln!(text, "\n{}", Counts::of(records));
    text
}

fn table(records: &[Record]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header([
        "device",
        "group",
        "passed",
        "failed",
        "skipped",
        "worst error/bound",
        "seconds",
    ]);
    for column in 2..7 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for group in records.chunk_by(|a, b| (&a.device, a.group()) == (&b.device, b.group())) {
        let counts = Counts::of(group);
        let worst = group.iter().filter_map(|record| match record.outcome {
            Outcome::Passed { error_over_bound } => Some(error_over_bound),
            _ => None,
        });
        let worst = worst.fold(0.0, f64::max);
        let seconds: f64 = group.iter().map(|record| record.seconds).sum();
        table.add_row([
            group[0].device.clone(),
            group[0].group().to_owned(),
            counts.passed.to_string(),
            counts.failed.to_string(),
            counts.skipped.to_string(),
            match counts.passed {
                0 => "-".into(),
                _ if worst == 0.0 => "exact".into(),
                _ => format!("{worst:.3}"),
            },
            format!("{seconds:.1}"),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Record> {
        let record =
            |case: &str, outcome| Record { case: case.into(), device: "sim".into(), outcome, seconds: 0.25 };
        vec![
            record("op/a/one", Outcome::Passed { error_over_bound: 0.25 }),
            record("op/a/two", Outcome::Failed { why: "first line\nsecond".into() }),
            record("op/b/three", Outcome::Skipped { why: "no data".into() }),
        ]
    }

    #[test]
    fn text_tells_all_and_ends_with_the_counts() {
        let text = text(&records(), |record| format!("repeat {}", record.case));
        assert!(text.ends_with("\n1 passed, 1 failed, 1 skipped\n"), "{text}");
        for part in [
            "0.250",
            "skipped 1: no data",
            "FAILED op/a/two on sim\n  first line\n  second",
            "again: repeat op/a/two",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn json_has_an_object_a_case() {
        let lines: Vec<serde_json::Value> =
            json(&records()).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0]["outcome"], "passed");
        assert_eq!(lines[0]["error_over_bound"], 0.25);
        assert_eq!(lines[1]["why"], "first line\nsecond");
    }
}
