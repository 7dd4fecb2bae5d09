//! Choosing by measuring: an autotuner, and the file in which its choices outlive it.
mod file;
mod format;
mod kernels;
mod key;
mod place;
mod rank;
mod stopwatch;
mod tunable;
mod warning;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::format::{Measured, Rankings};
pub(crate) use self::kernels::{draw_into, drawn};
pub(crate) use self::key::row_class;
pub use self::stopwatch::time;
pub(crate) use self::tunable::Candidate;
pub use self::tunable::Tunable;
pub use self::warning::TuneWarning;
use crate::{Error, Result};

/// Plans by measurement: [`tune`](Self::tune) times the kernels that may do a plan's problem, once, and later plans for the
/// same problem take the fastest at once, in this process or another.
///
/// A choice belongs to a GPU (name, compute capability, multiprocessors, driver), to this version of the library with its
/// list of the operation's kernels, and to a problem: shape, nonzeros, types, N (K, d), batch, how its rows vary and are
/// ordered, the vectors that N and the strides allow, and the kernels that may do it. The values of the matrix do not count,
/// nor where exactly its nonzeros are, nor what is done to sums before they are stored.
///
/// Nothing that is wrong with the file is an error: see [`TuneWarning`]. Threads may share one autotuner; they measure
/// one after the other. Processes may share one file.
///
/// Two kernels may add in different orders. Where results must have the same bits in every run of a program, keep the
/// file, or name the algorithm.
#[derive(Debug)]
pub struct Autotuner {
    /// Where choices are kept; none for memory alone.
    path: Option<PathBuf>,
    state: Mutex<State>,
    /// Held while something is measured: two measurements at once would disturb each other.
    measuring: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// All choices known here.
    known: Rankings,
    /// Those measured by this autotuner: what it adds to the file.
    own: Rankings,
    /// Each once, in the order in which they came.
    warnings: Vec<TuneWarning>,
}

impl Autotuner {
    /// An autotuner whose choices end with it.
    pub fn in_memory() -> Self {
        Self { path: None, state: Mutex::default(), measuring: Mutex::default() }
    }

    /// An autotuner that finds and keeps its choices in this file. It is made, with its folders, when there is something
    /// to keep; a file `<path>.lock` stands beside it from then on. What is wrong with it is a
    /// [warning](Self::warnings).
    pub fn open(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let mut state = State::default();
        match file::load(&path) {
            Ok(rankings) => state.known = rankings,
            Err(warning) => state.warnings.push(warning),
        }
        Self { path: Some(path), state: Mutex::new(state), measuring: Mutex::default() }
    }

    /// An autotuner with its file in the user's cache folder: `$XDG_CACHE_HOME/lacuna/tune-2.json`, or
    /// `$HOME/.cache/lacuna/tune-2.json`, with the number of the file's format. Where neither variable has an absolute path
    /// it keeps choices in memory, with a [warning](Self::warnings).
    pub fn open_default() -> Self {
        match place::default_file(|name| std::env::var_os(name)) {
            Some(path) => Self::open(path),
            None => {
                let tuner = Self::in_memory();
                tuner.state().warn(TuneWarning::NoFolder);
                tuner
            }
        }
    }

    /// The file; none for memory alone.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Problems for which a choice is known, on whatever GPU.
    pub fn problems(&self) -> usize {
        self.state().known.len()
    }

    /// What did not work so far, each thing once.
    pub fn warnings(&self) -> Vec<TuneWarning> {
        self.state().warnings.clone()
    }

    /// The kernels measured for the problem `key`, fastest first, if some of `candidates` are among them. Otherwise those that
    /// `measure` gives, which are kept; it may give none, which is not kept. None, with a warning, where the device has no room
    /// for what it measures on.
    fn ranking(
        &self,
        key: &str,
        candidates: &[&str],
        measure: impl FnOnce() -> Result<Vec<Measured>>,
    ) -> Result<Option<Vec<Measured>>> {
        let is_legal = |kernel: &Measured| candidates.contains(&kernel.entry.as_str());
        let known = || self.state().known.get(key).filter(|ranking| ranking.iter().any(is_legal)).cloned();
        if let Some(ranking) = known() {
            return Ok(Some(ranking));
        }
        let _turn = self.measuring.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have measured it meanwhile.
        if let Some(ranking) = known() {
            return Ok(Some(ranking));
        }
        match measure() {
            Ok(ranking) => {
                if !ranking.is_empty() {
                    self.keep(key, &ranking);
                }
                Ok(Some(ranking))
            }
            Err(error @ Error::OutOfMemory { .. }) => {
                self.state().warn(TuneWarning::NoRoom { why: error.to_string() });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn keep(&self, key: &str, ranking: &[Measured]) {
        let own = {
            let mut state = self.state();
            state.known.insert(key.into(), ranking.into());
            state.own.insert(key.into(), ranking.into());
            state.own.clone()
        };
        // The disk may be slow: threads that look up a choice need not wait for it.
        if let Some(path) = &self.path {
            let stored = file::store(path, &own);
            let mut state = self.state();
            match stored {
                Ok(merged) => state.known.extend(merged),
                Err(warning) => state.warn(warning),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn warn(&mut self, warning: TuneWarning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(entry: &str) -> Vec<Measured> {
        vec![Measured::new(entry, 2.0)]
    }

    fn measured(tuner: &Autotuner, key: &str, entry: &str) -> String {
        let candidates = ["x", "y", "z", "there"];
        tuner.ranking(key, &candidates, || Ok(ranking(entry))).unwrap().unwrap()[0].entry.clone()
    }

    #[test]
    fn a_problem_is_measured_once() {
        let tuner = Autotuner::in_memory();
        assert_eq!((measured(&tuner, "a", "x"), measured(&tuner, "a", "y")), ("x".into(), "x".into()));
        assert_eq!(measured(&tuner, "b", "y"), "y");
        assert_eq!((tuner.problems(), tuner.path(), tuner.warnings().len()), (2, None, 0));
    }

    #[test]
    fn choices_outlive_the_autotuner_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tune.json");
        assert_eq!(measured(&Autotuner::open(&path), "a", "x"), "x");
        let later = Autotuner::open(&path);
        assert_eq!(measured(&later, "a", "y"), "x");
        // Another autotuner's choice comes in with the next that is kept.
        measured(&Autotuner::open(&path), "b", "x");
        assert_eq!((later.problems(), measured(&later, "c", "z").as_str(), later.problems()), (1, "z", 3));
    }

    #[test]
    fn what_cannot_be_used_is_measured_again() {
        let tuner = Autotuner::in_memory();
        measured(&tuner, "a", "gone");
        let again = tuner.ranking("a", &["there"], || Ok(ranking("there"))).unwrap();
        assert_eq!(again, Some(ranking("there")));
        assert_eq!(measured(&tuner, "a", "x"), "there");
    }

    #[test]
    fn failures_and_empty_rankings_are_not_kept() {
        let tuner = Autotuner::in_memory();
        let failed = tuner.ranking("a", &["x"], || Err(Error::NoCuda));
        assert!(failed.is_err());
        assert_eq!(tuner.ranking("a", &["x"], || Ok(Vec::new())).unwrap(), Some(Vec::new()));
        assert_eq!(tuner.problems(), 0);
    }

    #[test]
    fn without_room_nothing_is_kept_and_a_warning_tells() {
        let tuner = Autotuner::in_memory();
        let full = || Err(Error::OutOfMemory { device: "GPU".into(), asked: 9, free: 1, total: 8 });
        assert_eq!(tuner.ranking("k", &["a"], full).unwrap(), None);
        assert!(matches!(&tuner.warnings()[..], [TuneWarning::NoRoom { why }] if why.contains("9 bytes")));
        let known = tuner.ranking("k", &["a"], || Ok(vec![Measured::new("a", 1.0)])).unwrap().unwrap();
        assert_eq!(known, tuner.ranking("k", &["a", "b"], || unreachable!("known")).unwrap().unwrap());
        // What is known can no longer be used.
        let other = tuner.ranking("k", &["b"], || Ok(vec![Measured::new("b", 2.0)])).unwrap().unwrap();
        assert_eq!(other[0].entry, "b");
    }

    #[test]
    fn broken_files_are_warnings_and_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tune.json");
        std::fs::write(&path, r#"{"format": 9}"#).unwrap();
        let tuner = Autotuner::open(&path);
        assert_eq!((measured(&tuner, "a", "x"), measured(&tuner, "b", "y")), ("x".into(), "y".into()));
        assert_eq!(tuner.warnings().len(), 1);
        let text = tuner.warnings()[0].to_string();
        assert!(text.contains("tune.json") && text.contains("format 9"), "{text}");
    }

    #[test]
    fn threads_measure_a_problem_once() {
        let tuner = Autotuner::in_memory();
        let times = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let count = || {
                        times.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        Ok(ranking("x"))
                    };
                    assert_eq!(tuner.ranking("a", &["x"], count).unwrap(), Some(ranking("x")));
                });
            }
        });
        assert_eq!(times.into_inner(), 1);
    }
}
