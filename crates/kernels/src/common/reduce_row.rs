//! Reductions over the lanes of a row: a part of a warp, a warp, or a block.
use lacuna_gpu::{Gpu, SharedPtr, WARP};

use super::{reduce, subwarp_mask};

/// Bytes of shared memory of a block whose rows have so many lanes each, for so many reductions: each keeps a value of each warp.
pub(crate) const fn row_shared_bytes(lanes: u32, reductions: u32) -> u32 {
    if lanes > WARP { lanes / WARP * 4 * reductions } else { 0 }
}

/// Reduces a value over the `LANES` lanes of a row, always in the same order: all of them get the same result. A block
/// does so at most once for each `index` below the number of [reductions](row_shared_bytes).
#[inline(always)]
pub(crate) fn reduce_row<G: Gpu, const LANES: u32>(
    gpu: G,
    index: u32,
    value: f32,
    join: impl Fn(f32, f32) -> f32,
) -> f32 {
    let lane = gpu.lane_id();
    let lanes = if LANES < WARP { LANES } else { WARP };
    let mask = subwarp_mask(lane / lanes * lanes, lanes);
    let mut value = reduce(gpu, mask, lanes, value, &join);
    if LANES > WARP {
        let warps = LANES / WARP;
        let parts = SharedPtr::<f32>::from_offset(index * warps * 4);
        // SAFETY: each warp has a place of its own, which is read after the barrier and not written again.
        unsafe {
            if lane == 0 {
                gpu.shared_store(parts.add(gpu.thread_idx_x() / WARP), [value]);
            }
            gpu.sync_threads();
            [value] = gpu.shared_load(parts);
            for warp in 1..warps {
                let [part] = gpu.shared_load(parts.add(warp));
                value = join(value, part);
            }
        }
    }
    value
}
