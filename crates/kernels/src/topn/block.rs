//! Reductions and counters of a thread block, and their layout in shared memory.
use core::ops::Add as _;

use lacuna_gpu::{FULL_WARP, Gpu, SharedPtr, WARP};

use crate::Bounds;
use crate::common::{inclusive_sum, reduce};

/// Warps of a block at most.
const WARPS: u32 = 32;
/// Where warps store their results: two numbers a warp, for each of two reductions.
const REDUCTIONS: u32 = 0;
/// Where warps store their counts, in turn in one of two slots.
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

/// The counter of the keys that reach the `turn`-th threshold.
#[inline(always)]
pub(super) const fn counter(turn: u32) -> SharedPtr<u32> {
    SharedPtr::from_offset(COUNTERS + turn * 4)
}

/// Reduces two numbers over the lanes of a warp, always in the same order.
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

/// Reduces two numbers over the warp, for the block's reduction `index`, 0 or 1: [`reduce_block`] has the result after a barrier.
#[inline(always)]
pub(super) fn reduce_warp<G: Gpu>(
    gpu: G,
    index: u32,
    pair: [f32; 2],
    join: impl Fn([f32; 2], [f32; 2]) -> [f32; 2],
) {
    store_warp_result(gpu, index, reduce_pairs(gpu, WARP, pair, join));
}

/// Stores a warp's result for the block's reduction `index`; its first lane has it.
#[inline(always)]
pub(super) fn store_warp_result<G: Gpu>(gpu: G, index: u32, pair: [f32; 2]) {
    if gpu.lane_id() == 0 {
        let place = index * WARPS + gpu.thread_idx_x() / WARP;
        // SAFETY: each warp has a slot of its own for each reduction, written once.
        unsafe { gpu.shared_store(SharedPtr::<f32>::from_offset(REDUCTIONS).add(2 * place), pair) };
    }
}

/// The result of the block's reduction `index`, the same for all threads.
#[inline(always)]
pub(super) fn reduce_block<G: Gpu, const THREADS: u32>(
    gpu: G,
    index: u32,
    join: impl Fn([f32; 2], [f32; 2]) -> [f32; 2],
) -> [f32; 2] {
    reduce_pairs(gpu, THREADS / WARP, warp_result::<G, THREADS>(gpu, index), join)
}

/// The result of the warp whose index is this lane's, modulo the number of warps.
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
        // SAFETY: each warp has a slot of its own, which is read after the barrier. It is written again two calls later,
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

/// Reserves slots for the `count` keys of this thread, and gives the index of the first. Whole warps come here.
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
