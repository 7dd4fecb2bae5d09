//! Sorting a few keys by rank: each is compared with all.
use core::ops::Add as _;

use lacuna_gpu::{FULL_WARP, Gpu, SharedPtr, WARP};

use crate::common::{reduce, strided};

/// So many keys are sorted sooner by [`for_each_by_rank`] than by runs, in a block of so many threads.
pub(super) const fn max_keys(threads: u32) -> u32 {
    threads / 4
}

/// Calls `work` for each of `count` keys in shared memory, with its rank, the number of greater ones. Several lanes take a key, each of them a part
/// of the comparisons.
///
/// # Safety
/// There are as many keys, at least one and at most [`max_keys`], which nobody writes.
#[inline(always)]
pub(super) unsafe fn for_each_by_rank<G: Gpu, const THREADS: u32>(
    gpu: G,
    keys: SharedPtr<u64>,
    count: u32,
    work: impl FnOnce(u32, u64),
) {
    let thread = gpu.thread_idx_x();
    let lanes = (THREADS / count.next_power_of_two()).min(WARP);
    let own = thread / lanes;
    // SAFETY: as promised by the caller.
    let [key] = unsafe { gpu.shared_load(keys.add(own.min(count - 1))) };
    let mut greater = 0;
    strided(thread % lanes, count, lanes, |place| {
        // SAFETY: likewise.
        let [other] = unsafe { gpu.shared_load::<u64, 1>(keys.add(place)) };
        greater += u32::from(other > key);
    });
    let greater = reduce(gpu, FULL_WARP, lanes, greater, u32::add);
    if own < count && thread.is_multiple_of(lanes) {
        work(greater, key);
    }
}
