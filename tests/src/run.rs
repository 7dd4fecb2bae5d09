//! Running cases on a device.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use lacuna::Device;
use serde::Serialize;

use crate::case::{Case, Context, group_of};
use crate::target::Target;

/// What came of a case on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// The case's name.
    pub case: String,
    /// The device's name on the command line.
    pub device: String,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// How long it took.
    pub seconds: f64,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// It holds.
    Passed {
        /// The largest error over its bound; 0 where nothing was rounded.
        error_over_bound: f64,
    },
    /// It does not hold.
    Failed {
        /// What is wrong.
        why: String,
    },
    /// It did not run.
    Skipped {
        /// Why not.
        why: String,
    },
}

impl Record {
    /// The first two parts of the case's name.
    pub fn group(&self) -> &str {
        group_of(&self.case)
    }

    /// What is wrong, if it failed.
    pub fn failure(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Failed { why } => Some(why),
            _ => None,
        }
    }
}

/// Runs the cases one after another (the simulator is parallel inside). It tells `before` of each case before that starts,
/// and `group_ended` of the records of each group when its last case has run: a group is a run of cases that follow each
/// other and have the first two parts of their names in common. A panic is a failure of its case. Once a GPU has stopped
/// answering, the rest of its cases are skipped.
///
/// # Errors
/// If the device gives no stream, and those of `group_ended`.
pub fn run(
    cases: &[&Case],
    target: &Target,
    seed: u64,
    mut before: impl FnMut(&Case),
    mut group_ended: impl FnMut(&[Record]) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Record>> {
    let device = &target.device;
    let stream = device.stream()?;
    let mut lost_at: Option<&str> = None;
    let mut records: Vec<Record> = Vec::new();
    for group in cases.chunk_by(|a, b| a.group() == b.group()) {
        for case in group {
            before(case);
            let start = Instant::now();
            let outcome = if let Some(name) = lost_at {
                Outcome::Skipped { why: format!("the GPU stopped answering in {name}") }
            } else if let Some(why) = case.skipped_on(device) {
                Outcome::Skipped { why: why.to_owned() }
            } else {
                check(case, &Context { device, stream: &stream, seed: case.seed(seed) })
            };
            if lost_at.is_none() && matches!(outcome, Outcome::Failed { .. }) && is_lost(device) {
                lost_at = Some(case.name());
            }
            let (case, device) = (case.name().to_owned(), target.name.clone());
            records.push(Record { case, device, outcome, seconds: start.elapsed().as_secs_f64() });
        }
        group_ended(&records[records.len() - group.len()..])?;
    }
    Ok(records)
}

fn check(case: &Case, context: &Context<'_>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(|| case.check(context))) {
        Ok(Ok(error_over_bound)) => Outcome::Passed { error_over_bound },
        Ok(Err(error)) => Outcome::Failed { why: format!("{error:#}") },
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
            Outcome::Failed { why: format!("panicked: {text}") }
        }
    }
}

/// After a fault in a kernel the driver refuses every call.
fn is_lost(device: &Device) -> bool {
    device.zeros::<u32>(1).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Effort;

    #[test]
    fn every_outcome_is_told() {
        let cases = [
            Case::new("t/g/good", "", |_| Ok(0.5)),
            Case::new("t/g/bad", "", |_| anyhow::bail!("wrong")),
            Case::new("t/g/panic", "", |_| panic!("out of luck")),
            Case::missing("t/h/missing", "", "no data"),
            Case::new("t/h/gpu", "", |_| Ok(0.0)).effort(Effort::Gpu),
        ];
        let mut started = 0;
        let mut groups = Vec::new();
        let group_ended = |group: &[Record]| {
            groups.push((group[0].group().to_owned(), group.len()));
            Ok(())
        };
        let cases: Vec<&Case> = cases.iter().collect();
        let records = run(&cases, &Target::simulator(), 1, |_| started += 1, group_ended).unwrap();
        let outcomes: Vec<Outcome> = records.iter().map(|record| record.outcome.clone()).collect();
        let skipped = |why: &str| Outcome::Skipped { why: why.into() };
        let failed = |why: &str| Outcome::Failed { why: why.into() };
        assert_eq!(
            outcomes,
            [
                Outcome::Passed { error_over_bound: 0.5 },
                failed("wrong"),
                failed("panicked: out of luck"),
                skipped("no data"),
                skipped("for a GPU only"),
            ]
        );
        assert_eq!(started, cases.len());
        assert_eq!(groups, [("t/g".into(), 3), ("t/h".into(), 2)]);
    }

    #[test]
    fn an_error_where_a_group_ends_ends_the_run() {
        let cases = ["t/g/a", "t/g/b", "t/h/c"].map(|name| Case::new(name, "", |_| Ok(0.0)));
        let cases: Vec<&Case> = cases.iter().collect();
        let mut started = 0;
        let full = |_: &[Record]| anyhow::bail!("the disk is full");
        let result = run(&cases, &Target::simulator(), 1, |_| started += 1, full);
        assert_eq!(result.unwrap_err().to_string(), "the disk is full");
        assert_eq!(started, 2);
    }

    #[test]
    fn seeds_differ_by_case_and_run() {
        let [a, b] = ["t/g/a", "t/g/b"].map(|name| Case::new(name, "", |_| Ok(0.0)));
        assert_eq!(a.seed(1), a.seed(1));
        assert_ne!(a.seed(1), a.seed(2));
        assert_ne!(a.seed(1), b.seed(1));
    }
}
