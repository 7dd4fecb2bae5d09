//! The parts of a long command, and how long each takes.
use std::fmt;
use std::time::{Duration, Instant};

/// The parts that have ended, in their order.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    ended: Vec<(&'static str, Duration)>,
}

impl Parts {
    /// Does a part. It counts whether it ends well or not.
    pub(crate) fn run<T>(&mut self, name: &'static str, part: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = part();
        self.ended.push((name, start.elapsed()));
        result
    }
}

/// A line a part with its seconds, and their sum.
impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Duration = self.ended.iter().map(|(_, time)| *time).sum();
        let lines = self.ended.iter().copied().chain([("all", all)]);
        let width = lines.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
        writeln!(f, "{:width$}  seconds", "part")?;
        for (name, time) in lines {
            writeln!(f, "{name:width$}  {:>7.1}", time.as_secs_f64())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_line_also_one_that_fails() {
        let mut parts = Parts::default();
        assert_eq!(parts.run("good", || 7), 7);
        assert!(parts.run("bad one", || Err::<(), _>("no")).is_err());
        let names: Vec<_> = parts.ended.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["good", "bad one"]);
    }

    #[test]
    fn a_table_ends_with_the_sum() {
        let seconds = |seconds| Duration::from_millis(seconds);
        let parts = Parts { ended: vec![("lints", seconds(61_250)), ("conformance", seconds(2_500))] };
        let table = "part         seconds\n\
                     lints           61.2\n\
                     conformance      2.5\n\
                     all             63.8\n";
        assert_eq!(parts.to_string(), table);
    }
}
