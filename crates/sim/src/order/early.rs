//! Launches that begin before the one before has ended: which threads have waited for it.
use crate::memory::view::View;
use crate::report::operation::Operation;

/// Which threads of a block may do anything: those that have waited for the launch before.
#[derive(Debug, Default)]
pub(crate) struct Waited(Vec<bool>);

impl Waited {
    /// `from_start` says whether the launch as a whole begins after the one before.
    pub(crate) fn start_block(&mut self, threads: usize, from_start: bool) {
        self.0.clear();
        self.0.resize(threads, from_start);
    }

    pub(crate) fn wait(&mut self, thread: u32) {
        self.0[thread as usize] = true;
    }

    /// Whether a thread does this too early: before it has waited, it may only read what no launch has written since the host
    /// last waited.
    #[inline]
    pub(crate) fn is_too_early(&self, thread: u32, operation: Operation, view: &View) -> bool {
        let may_be_early = || operation == Operation::ReadonlyLoad && !view.allocation.is_unsettled();
        !self.0[thread as usize] && !may_be_early()
    }
}
