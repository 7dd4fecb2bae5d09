//! What is printed of a run.
use std::collections::BTreeMap;
use std::fmt::Write;

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

/// The table of groups, a line at a time: each can be printed when its group ends.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    device_width: usize,
    group_width: usize,
}

impl Table {
    /// A table in which these devices and groups fit.
    pub fn new<'n>(
        devices: impl IntoIterator<Item = &'n str>,
        groups: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        let width = |title: &str, longest: Option<usize>| longest.unwrap_or(0).max(title.len());
        Self {
            device_width: width("device", devices.into_iter().map(str::len).max()),
            group_width: width("group", groups.into_iter().map(str::len).max()),
        }
    }

    /// The titles of its columns.
    pub fn header(&self) -> String {
        self.line(["device", "group", "passed", "failed", "skipped", "worst error/bound", "seconds"])
    }

    /// The line of a group, of which there is at least one record.
    pub fn group(&self, records: &[Record]) -> String {
        let counts = Counts::of(records);
        let worst = records.iter().filter_map(|record| match record.outcome {
            Outcome::Passed { error_over_bound } => Some(error_over_bound),
            _ => None,
        });
        let worst = match worst.reduce(f64::max) {
            None => "-".into(),
            Some(0.0) => "exact".into(),
            Some(worst) => format!("{worst:.3}"),
        };
        let [passed, failed, skipped] =
            [counts.passed, counts.failed, counts.skipped].map(|count| count.to_string());
        let seconds = format!("{:.1}", seconds(records));
        self.line([&records[0].device, records[0].group(), &passed, &failed, &skipped, &worst, &seconds])
    }

    fn line(&self, [device, group, passed, failed, skipped, worst, seconds]: [&str; 7]) -> String {
        let (d, g) = (self.device_width, self.group_width);
        format!(
            "{device:d$}  {group:g$}  {passed:>6}  {failed:>6}  {skipped:>7}  {worst:>17}  {seconds:>7}\n"
        )
    }
}

/// What follows the table: why cases were skipped, each failure in full with the command that `repeat` gives for it, the
/// time, and, in the last line, the counts.
pub fn summary(records: &[Record], repeat: impl Fn(&Record) -> String) -> String {
    let mut text = String::new();
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
    let _ = writeln!(text, "\n{:.1} s of cases\n{}", seconds(records), Counts::of(records));
    text
}

fn seconds(records: &[Record]) -> f64 {
    records.iter().map(|record| record.seconds).sum()
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
    fn the_lines_of_a_table_have_one_width() {
        let records = records();
        let table = Table::new(["sim", "cuda:0"], ["op/a", "op/longer"]);
        let lines = [table.header(), table.group(&records[..2]), table.group(&records[2..])];
        let columns = |line: &String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(columns(&lines[1]), ["sim", "op/a", "1", "1", "0", "0.250", "0.5"]);
        assert_eq!(columns(&lines[2]), ["sim", "op/b", "0", "0", "1", "-", "0.2"]);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{lines:#?}");
        let exact = Record { outcome: Outcome::Passed { error_over_bound: 0.0 }, ..records[0].clone() };
        assert!(table.group(&[exact]).contains(" exact "));
    }

    #[test]
    fn the_summary_tells_all_and_ends_with_the_counts() {
        let text = summary(&records(), |record| format!("repeat {}", record.case));
        assert!(text.ends_with("\n0.8 s of cases\n1 passed, 1 failed, 1 skipped\n"), "{text}");
        for part in
            ["skipped 1: no data", "FAILED op/a/two on sim\n  first line\n  second", "again: repeat op/a/two"]
        {
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
