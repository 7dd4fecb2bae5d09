//! Sorting keys in shared memory.
use lacuna_gpu::{FULL_WARP, Gpu, SharedPtr, WARP};

use crate::common::strided;

/// Sorts `count` keys in falling order, and says where they are: in `keys`, or in `other`. Both have places up to the next power
/// of two, at least 32. The threads of the block come here after a barrier, and leave after one.
///
/// Runs of 32 are sorted by shuffles, in a bitonic network; then runs are merged in pairs, *by rank*: a key goes to its own place
/// in its run plus the number of greater keys in the other run, found by halving.
///
/// # Safety
/// There are as many keys, and places, and nobody else uses them.
#[inline(always)]
pub(super) unsafe fn sort<G: Gpu, const THREADS: u32>(
    gpu: G,
    keys: SharedPtr<u64>,
    other: SharedPtr<u64>,
    count: u32,
) -> SharedPtr<u64> {
    let thread = gpu.thread_idx_x();
    let places = count.max(WARP).next_power_of_two();
    // SAFETY: as promised by the caller. Each slot is one thread's between two barriers: keys are distinct, and so are ranks.
    unsafe {
        strided(thread, places, THREADS, |place| {
            // What fills up is less than any key, and distinct.
            let mut key = u64::from(2 * places - place);
            if place < count {
                [key] = gpu.shared_load(keys.add(place));
            }
            gpu.shared_store(keys.add(place), [sorted(gpu, key)]);
        });
        gpu.sync_threads();
        let (mut from, mut to) = (keys, other);
        let mut run = WARP;
        while run < places {
            strided(thread, places, THREADS, |place| {
                let [key] = gpu.shared_load(from.add(place));
                let partner = from.add((place ^ run) & !(run - 1));
                let merged = (place & !(2 * run - 1)) + (place & (run - 1)) + greater(gpu, partner, run, key);
                gpu.shared_store(to.add(merged), [key]);
            });
            gpu.sync_threads();
            (from, to) = (to, from);
            run *= 2;
        }
        from
    }
}

/// How many of a run's keys, a power of two in falling order, are greater than `key`.
///
/// # Safety
/// The run has so many keys, which nobody writes.
#[inline(always)]
unsafe fn greater<G: Gpu>(gpu: G, run: SharedPtr<u64>, len: u32, key: u64) -> u32 {
    let (mut count, mut step) = (0, len / 2);
    // SAFETY: as promised by the caller.
    unsafe {
        while step > 0 {
            let [other] = gpu.shared_load(run.add(count + step - 1));
            count += if other > key { step } else { 0 };
            step /= 2;
        }
        let [last] = gpu.shared_load(run.add(count));
        count + u32::from(last > key)
    }
}

/// The key that comes to this lane when those of the warp are sorted in falling order.
#[inline(always)]
fn sorted<G: Gpu>(gpu: G, mut key: u64) -> u64 {
    let lane = gpu.lane_id();
    let mut run = 2;
    while run <= WARP {
        let mut distance = run / 2;
        while distance > 0 {
            let high = gpu.warp_shuffle_xor(FULL_WARP, (key >> 32) as u32, distance, WARP);
            let low = gpu.warp_shuffle_xor(FULL_WARP, key as u32, distance, WARP);
            let other = u64::from(high) << 32 | u64::from(low);
            let falls = lane & run == 0;
            let is_first = lane & distance == 0;
            key = if falls == is_first { key.max(other) } else { key.min(other) };
            distance /= 2;
        }
        run *= 2;
    }
    key
}
