//! Where a thread leaves its results: a row of 32 words each.
use lacuna_gpu::{GlobalMut, Gpu, Word};

/// Words of a thread's row.
const ROW: u32 = 32;

/// The row of one thread, filled from the left.
pub struct Results<G> {
    gpu: G,
    next: GlobalMut<u32>,
}

impl<G: Gpu> Results<G> {
    /// The row of thread number `thread`.
    #[inline(always)]
    pub fn of(gpu: G, out: GlobalMut<u32>, thread: u32) -> Self {
        Self { gpu, next: out.add_rows(thread, 4 * ROW) }
    }

    /// Writes the next word.
    ///
    /// # Safety
    /// The output has a row for this thread, and the row has a word left.
    #[inline(always)]
    pub unsafe fn put(&mut self, value: impl Word) {
        // SAFETY: passed on to the caller; a row belongs to one thread.
        unsafe { self.gpu.store(self.next, [value.to_bits()]) }
        self.next = self.next.add(1);
    }
}
