//! Running cases on a device.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Instant;

use lacuna::{Device, Stream};
use serde::Serialize;

use crate::case::{Case, Context, NotRun, group_of};
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

/// Runs the cases: on a GPU one after another, on the simulator several at once, each on a device of its own, because a launch
/// of few blocks leaves processors idle. It tells `before` of each case when that starts, and `group_ended` of the records
/// of each group, in their order, when all its cases and the groups before it have ended: a group is a run of cases that
/// follow each other and have the first two parts of their names in common. A panic is a failure of its case. Once a GPU
/// has stopped answering, the rest of its cases are skipped.
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
    let mut devices = vec![target.device.clone()];
    if target.device.is_simulator() {
        let more = thread::available_parallelism().map_or(0, |processors| processors.get() - 1);
        devices.extend((0..more).map(|_| Device::simulator()));
    }
    let (next, lost_at) = (AtomicUsize::new(0), OnceLock::new());
    let shared = Shared { cases, name: &target.name, seed, next: &next, lost_at: &lost_at };
    // Without room for messages: nobody runs far ahead of one who is told of an end, and may stop.
    let (sender, events) = mpsc::sync_channel(0);
    thread::scope(|scope| {
        for device in &devices {
            let (stream, sender) = (device.stream()?, sender.clone());
            scope.spawn(move || shared.work(device, &stream, &sender));
        }
        drop(sender);
        // Owned here, so that an early return hangs up, which ends the others.
        let events = events;
        let mut records: Vec<Option<Record>> = cases.iter().map(|_| None).collect();
        let mut ended = Vec::new();
        let mut groups = cases.chunk_by(|a, b| a.group() == b.group()).map(<[_]>::len).peekable();
        for event in &events {
            match event {
                Event::Started(index) => before(cases[index]),
                Event::Ended(index, record) => records[index] = Some(record),
            }
            while let Some(group) =
                groups.next_if(|&len| records[ended.len()..][..len].iter().all(Option::is_some))
            {
                let start = ended.len();
                ended.extend(records[start..start + group].iter_mut().filter_map(Option::take));
                group_ended(&ended[start..])?;
            }
        }
        Ok(ended)
    })
}

/// What happens while cases run, by their places in the list.
enum Event {
    Started(usize),
    Ended(usize, Record),
}

/// What the threads that run cases share.
#[derive(Clone, Copy)]
struct Shared<'a> {
    cases: &'a [&'a Case],
    name: &'a str,
    seed: u64,
    /// The next case to run.
    next: &'a AtomicUsize,
    /// The case in which the GPU stopped answering.
    lost_at: &'a OnceLock<&'a str>,
}

impl Shared<'_> {
    /// Runs cases until there are no more, or nobody listens.
    fn work(&self, device: &Device, stream: &Stream, sender: &SyncSender<Event>) {
        loop {
            let index = self.next.fetch_add(1, Relaxed);
            let Some(case) = self.cases.get(index) else { return };
            if sender.send(Event::Started(index)).is_err() {
                return;
            }
            let start = Instant::now();
            let outcome = if let Some(name) = self.lost_at.get() {
                Outcome::Skipped { why: format!("the GPU stopped answering in {name}") }
            } else if let Some(why) = case.skipped_on(device) {
                Outcome::Skipped { why: why.to_owned() }
            } else {
                check(case, &Context { device, stream, seed: case.seed(self.seed) })
            };
            if matches!(outcome, Outcome::Failed { .. }) && is_lost(device) {
                // Another thread may have said so first.
                self.lost_at.get_or_init(|| case.name());
            }
            let seconds = start.elapsed().as_secs_f64();
            let record = Record { case: case.name().into(), device: self.name.into(), outcome, seconds };
            if sender.send(Event::Ended(index, record)).is_err() {
                return;
            }
        }
    }
}

fn check(case: &Case, context: &Context<'_>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(|| case.check(context))) {
        Ok(Ok(error_over_bound)) => Outcome::Passed { error_over_bound },
        Ok(Err(error)) if error.is::<NotRun>() => Outcome::Skipped { why: error.to_string() },
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
            Case::new("t/h/not_here", "", |_| Err(NotRun("no library".into()).into())),
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
                skipped("no library"),
            ]
        );
        assert_eq!(started, cases.len());
        assert_eq!(groups, [("t/g".into(), 3), ("t/h".into(), 3)]);
    }

    #[test]
    fn an_error_where_a_group_ends_ends_the_run() {
        let cases: Vec<Case> = (0..1000).map(|i| Case::new(format!("t/{i}/a"), "", |_| Ok(0.0))).collect();
        let cases: Vec<&Case> = cases.iter().collect();
        let mut started = 0;
        let full = |_: &[Record]| anyhow::bail!("the disk is full");
        let result = run(&cases, &Target::simulator(), 1, |_| started += 1, full);
        assert_eq!(result.unwrap_err().to_string(), "the disk is full");
        assert!(started < cases.len(), "{started}");
    }

    #[test]
    fn records_and_groups_come_in_the_order_of_cases() {
        let (gate, wait) = std::sync::mpsc::channel::<()>();
        let wait = std::sync::Mutex::new(wait);
        // On several processors the first ends after the second.
        let several = std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
        let cases = [
            Case::new("t/g/a", "", move |_| {
                if several {
                    wait.lock().unwrap().recv()?;
                }
                Ok(0.0)
            }),
            Case::new("t/h/b", "", move |_| Ok(gate.send(()).map(|()| 0.0)?)),
            Case::new("t/h/c", "", |_| Ok(0.0)),
        ];
        let cases: Vec<&Case> = cases.iter().collect();
        let mut groups = Vec::new();
        let ended = |group: &[Record]| {
            groups.push(group.len());
            Ok(())
        };
        let records = run(&cases, &Target::simulator(), 1, |_| (), ended).unwrap();
        let names: Vec<&str> = records.iter().map(|record| record.case.as_str()).collect();
        assert_eq!((names, groups), (vec!["t/g/a", "t/h/b", "t/h/c"], vec![1, 2]));
    }

    #[test]
    fn seeds_differ_by_case_and_run() {
        let [a, b] = ["t/g/a", "t/g/b"].map(|name| Case::new(name, "", |_| Ok(0.0)));
        assert_eq!(a.seed(1), a.seed(1));
        assert_ne!(a.seed(1), a.seed(2));
        assert_ne!(a.seed(1), b.seed(1));
    }
}
