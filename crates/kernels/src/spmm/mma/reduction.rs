//! From the consumers' accumulators to C.
use lacuna_gpu::{Gpu, SharedPtr, WARP};

use super::pipeline::Stages;

/// A consumer warp's accumulators: of Cᵀ, for each 8 rows and 16 columns of C what mma gives a lane.
pub(super) type Accumulators<const RT: usize, const NT: usize> = [[[f32; 4]; NT]; RT];

/// Adds the accumulators of the warps that share a part of C into those of the first, warp after warp. All threads come here.
///
/// # Safety
/// Nothing else uses shared memory any more once all threads of the block are here; it has room for all accumulators.
#[inline(always)]
pub(in crate::spmm) unsafe fn add_slices<G: Gpu, S: Stages>(
    gpu: G,
    accumulators: &mut [[f32; 4]],
    warp: u32,
    consumers: u32,
) {
    gpu.sync_threads();
    if S::CHUNKS == 1 {
        return;
    }
    let parts = consumers / S::CHUNKS;
    let (lane, count) = (gpu.lane_id(), accumulators.len() as u32);
    let place = |warp: u32| SharedPtr::<f32>::from_offset((warp * count * WARP + lane) * 16);
    // SAFETY: each warp has its own place, written before the barrier and read after it.
    unsafe {
        if warp >= parts && warp < consumers {
            for (i, sum) in accumulators.iter().enumerate() {
                gpu.shared_store(place(warp).add(i as u32 * WARP * 4), *sum);
            }
        }
        gpu.sync_threads();
        if warp < parts {
            for other in 1..S::CHUNKS {
                for (i, sum) in accumulators.iter_mut().enumerate() {
                    let more: [f32; 4] =
                        gpu.shared_load(place(warp + other * parts).add(i as u32 * WARP * 4));
                    for (sum, more) in sum.iter_mut().zip(&more) {
                        *sum += more;
                    }
                }
            }
        }
    }
}
