//! The limit on the steps of a thread, which ends endless loops.

/// The memory and synchronisation operations that each thread of a block may still do.
#[derive(Debug, Default)]
pub(crate) struct Steps(Vec<u64>);

impl Steps {
    pub(crate) fn start_block(&mut self, threads: usize, limit: u64) {
        self.0.clear();
        self.0.resize(threads, limit);
    }

    /// Steps that a thread may still take.
    pub(crate) fn left(&self, thread: u32) -> u64 {
        self.0[thread as usize]
    }

    /// Takes a step. Gives whether there was none left.
    #[inline]
    pub(crate) fn pass_limit(&mut self, thread: u32) -> bool {
        let left = &mut self.0[thread as usize];
        match left.checked_sub(1) {
            Some(fewer) => {
                *left = fewer;
                false
            }
            None => true,
        }
    }
}
