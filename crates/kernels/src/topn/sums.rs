//! Sums of exponentials, each relative to a greatest value of its own.
use core::ops::Add as _;

use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, WARP};

use super::block;
use super::output::base;
use crate::common::{reduce, strided};

/// The greatest value, and the sum, of two together: symmetric.
#[inline(always)]
pub(super) fn join<G: Gpu>(gpu: G, scale: f32, a: [f32; 2], b: [f32; 2]) -> [f32; 2] {
    let greatest = a[0].max(b[0]);
    let relative = |[own, sum]: [f32; 2]| sum * gpu.exp2_approx((own - base(greatest)) * scale);
    [greatest, relative(a) + relative(b)]
}

/// The greatest value, and the sum, of so many lanes, a power of two, from theirs. `exponent` tells by what power of two a sum that
/// is relative to the first is to be multiplied to be relative to the second. The greatest is found first: one exponential a lane.
#[inline(always)]
pub(super) fn of_lanes<G: Gpu>(
    gpu: G,
    lanes: u32,
    [own, sum]: [f32; 2],
    exponent: impl Fn(f32, f32) -> f32,
) -> [f32; 2] {
    let greatest = reduce(gpu, FULL_WARP, lanes, own, f32::max);
    let sum = reduce(gpu, FULL_WARP, lanes, sum * gpu.exp2_approx(exponent(own, greatest)), f32::add);
    [greatest, sum]
}

/// The greatest value, and the sum, of a block from those of its threads, by the reduction `index` of a block.
#[inline(always)]
pub(super) fn of_block<G: Gpu, const THREADS: u32>(
    gpu: G,
    index: u32,
    sums: [f32; 2],
    exponent: impl Fn(f32, f32) -> f32,
) -> [f32; 2] {
    block::store_warp_result(gpu, index, of_lanes(gpu, WARP, sums, &exponent));
    gpu.sync_threads();
    of_lanes(gpu, THREADS / WARP, block::warp_result::<G, THREADS>(gpu, index), &exponent)
}

/// The greatest value of a row, and its sum, from those of its chunks. Whole warps come here.
///
/// # Safety
/// There are so many pairs.
#[inline(always)]
pub(super) unsafe fn of_chunks<G: Gpu>(gpu: G, scale: f32, sums: GlobalPtr<f32>, chunks: u32) -> [f32; 2] {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut pair = of_chunk(gpu, sums, chunks);
        strided(gpu.lane_id() + WARP, chunks, WARP, |chunk| {
            pair = join(gpu, scale, pair, gpu.load_readonly(sums.add(2 * chunk as usize)));
        });
        of_lane_chunks(gpu, scale, pair, chunks)
    }
}

/// What [`of_lane_chunks`] begins with, where there are no more chunks than lanes.
///
/// # Safety
/// There are so many pairs.
#[inline(always)]
pub(super) unsafe fn of_chunk<G: Gpu>(gpu: G, sums: GlobalPtr<f32>, chunks: u32) -> [f32; 2] {
    let chunk = gpu.lane_id() & (lanes_of(chunks) - 1);
    if chunk < chunks {
        // SAFETY: as promised by the caller.
        unsafe { gpu.load_readonly(sums.add(2 * chunk as usize)) }
    } else {
        [f32::NEG_INFINITY, 0.0]
    }
}

/// The greatest value of a row, and its sum, from those that lanes have of its chunks.
#[inline(always)]
pub(super) fn of_lane_chunks<G: Gpu>(gpu: G, scale: f32, pair: [f32; 2], chunks: u32) -> [f32; 2] {
    of_lanes(gpu, lanes_of(chunks), pair, |own, greatest| (own - base(greatest)) * scale)
}

/// Lanes that have chunks; the others do the same once more.
#[inline(always)]
fn lanes_of(chunks: u32) -> u32 {
    chunks.min(WARP).next_power_of_two()
}
