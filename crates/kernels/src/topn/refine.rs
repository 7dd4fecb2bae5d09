//! Radix refinement: a threshold among keys that were gathered, bit by bit.
use lacuna_gpu::{Gpu, SharedPtr};

use super::{block, threshold};
use crate::common::strided;

/// A threshold, as the bits of an ordered number, that at least `n` keys of the block reach, and few more, unless many are
/// equal. It is from `low` on, which at least `n` are known to reach, up to `high`. `own` is that of the thread's greatest
/// key; `reach` says how many of the thread's reach a threshold.
#[inline(always)]
pub(super) fn threshold<G: Gpu, const THREADS: u32>(
    gpu: G,
    n: u32,
    [low, high]: [u32; 2],
    own: u32,
    reach: impl Fn(u32) -> u32,
) -> u32 {
    let (first, enough) = (high - high.saturating_sub(low) / 2, n + n / 8 + 4);
    if n <= THREADS / 4 * 3 {
        // The greatest of N threads are N keys.
        threshold::between(low, high, first, n, enough, |threshold, _| {
            gpu.sync_threads_count(own >= threshold)
        })
    } else {
        threshold::between(low, high, first, n, enough, |threshold, step| {
            block::sum::<G, THREADS>(gpu, step, reach(threshold))
        })
    }
}

/// Compacts `count` keys: those that reach such a threshold go to another room. Gives their number.
///
/// # Safety
/// The block comes here after a barrier; nobody else uses the rooms, and the counter 2, which is 0.
#[inline(always)]
pub(super) unsafe fn compact<G: Gpu, const THREADS: u32>(
    gpu: G,
    n: u32,
    ends: [u32; 2],
    (keys, count): (SharedPtr<u64>, u32),
    to: SharedPtr<u64>,
) -> u32 {
    let thread = gpu.thread_idx_x();
    let counter = block::counter(2);
    // SAFETY: as promised by the caller; the counter gives each key a slot of its own.
    unsafe {
        let value = |place: u32| {
            let [key] = gpu.shared_load::<u64, 1>(keys.add(place));
            (key >> 32) as u32
        };
        let mut own = 0;
        strided(thread, count, THREADS, |place| own = own.max(value(place)));
        let threshold = threshold::<G, THREADS>(gpu, n, ends, own, |threshold| {
            let mut reach = 0;
            strided(thread, count, THREADS, |place| reach += u32::from(value(place) >= threshold));
            reach
        });
        strided(thread, count, THREADS, |place| {
            if value(place) >= threshold {
                let key = gpu.shared_load::<u64, 1>(keys.add(place));
                gpu.shared_store(to.add(gpu.shared_atomic_add(counter, 1)), key);
            }
        });
        gpu.sync_threads();
        let [kept] = gpu.shared_load(counter);
        kept
    }
}
