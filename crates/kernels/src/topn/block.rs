//! What the threads of a block find out together, and where in shared memory.
use core::ops::Add as _;

use lacuna_gpu::{FULL_WARP, Gpu, SharedPtr, WARP};

use crate::Bounds;
use crate::common::{inclusive_sum, reduce};

/// Warps of a block at most.
const WARPS: u32 = 32;
/// Where warps put what they join: two numbers a warp, for each of two joins.
const REDUCTIONS: u32 = 0;
/// Where warps put their counts, in turn in one of two places.
const COUNTS: u32 = REDUCTIONS + 2 * WARPS * 8;
/// How many keys were gathered, by up to four thresholds; a pass has its block's index in place of the last.
const COUNTERS: u32 = COUNTS + 2 * WARPS * 4;
/// The keys.
const KEYS: u32 = COUNTERS + 16;

/// Bytes of shared memory of a block with room for so many keys.
pub(super) const fn shared_bytes(keys: u32) -> u32 {
    KEYS + keys * 8
}

/// What ptxas may rely on where so many threads are to be at work on a multiprocessor.
pub(super) const fn bounds(threads: u32, resident: u32) -> Bounds {
    Bounds { max_threads: threads, min_blocks: resident / threads }
}

/// The keys.
#[inline(always)]
pub(super) const fn keys() -> SharedPtr<u64> {
    SharedPtr::from_offset(KEYS)
}

/// The counter of the keys that the `turn`-th threshold lets through.
#[inline(always)]
pub(super) const fn counter(turn: u32) -> SharedPtr<u32> {
    SharedPtr::from_offset(COUNTERS + turn * 4)
}

/// Joins two numbers of each lane of a warp, always in the same order.
#[inline(always)]
fn reduce_pairs<G: Gpu>(
    gpu: G,
    lanes: u32,
    mut pair: [f32; 2],
    join: impl Fn([f32; 2], [f32; 2]) -> [f32; 2],
) -> [f32; 2] {
    let mut distance = lanes / 2;
    while distance > 0 {
        let other = pair.map(|number| gpu.warp_shuffle_xor(FULL_WARP, number, distance, WARP));
        pair = join(pair, other);
        distance /= 2;
    }
    pair
}

/// Gives what this warp has to the join of this index, 0 or 1: [`reduce_block`] has the result after a barrier.
#[inline(always)]
pub(super) fn reduce_warp<G: Gpu>(
    gpu: G,
    index: u32,
    pair: [f32; 2],
    join: impl Fn([f32; 2], [f32; 2]) -> [f32; 2],
) {
    store_warp_result(gpu, index, reduce_pairs(gpu, WARP, pair, join));
}

/// The same for what the warp has joined already, in its first lane at least.
#[inline(always)]
pub(super) fn store_warp_result<G: Gpu>(gpu: G, index: u32, pair: [f32; 2]) {
    if gpu.lane_id() == 0 {
        let place = index * WARPS + gpu.thread_idx_x() / WARP;
        // SAFETY: each warp has a place of its own for each join, written once.
        unsafe { gpu.shared_store(SharedPtr::<f32>::from_offset(REDUCTIONS).add(2 * place), pair) };
    }
}

/// What the warps of the block gave to the join of this index, joined: the same for all threads.
#[inline(always)]
pub(super) fn reduce_block<G: Gpu, const THREADS: u32>(
    gpu: G,
    index: u32,
    join: impl Fn([f32; 2], [f32; 2]) -> [f32; 2],
) -> [f32; 2] {
    reduce_pairs(gpu, THREADS / WARP, warp_result::<G, THREADS>(gpu, index), join)
}

/// What the warp of this lane's number gave; lanes beyond these begin anew.
#[inline(always)]
pub(super) fn warp_result<G: Gpu, const THREADS: u32>(gpu: G, index: u32) -> [f32; 2] {
    let place = index * WARPS + gpu.lane_id() % (THREADS / WARP);
    // SAFETY: a barrier is between the warps' stores and this.
    unsafe { gpu.shared_load(SharedPtr::<f32>::from_offset(REDUCTIONS).add(2 * place)) }
}

/// The sum of the threads' counts. Consecutive calls have different parities of `turn`.
#[inline(always)]
pub(super) fn sum<G: Gpu, const THREADS: u32>(gpu: G, turn: u32, mut count: u32) -> u32 {
    let warps = THREADS / WARP;
    count = reduce(gpu, FULL_WARP, WARP, count, u32::add);
    if THREADS > WARP {
        let parts = SharedPtr::<u32>::from_offset(COUNTS + turn % 2 * WARPS * 4);
        // SAFETY: each warp has a place of its own, which is read after the barrier. It is written again two calls later,
        // after the barrier of the next one.
        unsafe {
            if gpu.lane_id() == 0 {
                gpu.shared_store(parts.add(gpu.thread_idx_x() / WARP), [count]);
            }
            gpu.sync_threads();
            [count] = gpu.shared_load(parts.add(gpu.lane_id() % warps));
        }
        count = reduce(gpu, FULL_WARP, warps, count, u32::add);
    }
    count
}

/// A place for each of the `count` keys of this thread, beside those of the others: the first of them. Whole warps come here.
///
/// # Safety
/// The counter is used by this function alone until the next barrier.
#[inline(always)]
pub(super) unsafe fn reserve<G: Gpu>(gpu: G, counter: SharedPtr<u32>, count: u32) -> u32 {
    let lane = gpu.lane_id();
    let through = inclusive_sum(gpu, count);
    let mut first = 0;
    if lane == WARP - 1 && through > 0 {
        // SAFETY: as promised by the caller.
        first = unsafe { gpu.shared_atomic_add(counter, through) };
    }
    gpu.warp_shuffle_idx(FULL_WARP, first, WARP - 1, WARP) + through - count
}
