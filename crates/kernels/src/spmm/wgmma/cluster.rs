//! Cluster split-K: the blocks of a cluster share a tile of C. Each multiplies a part of K, and the first adds up.
use core::mem::MaybeUninit;

use lacuna_gpu::{Gpu, SharedPtr, WARP};

/// One of `BLOCKS` blocks that share a tile.
pub(super) struct Cluster<const BLOCKS: u32> {
    /// The block's number in its cluster.
    block: u32,
    /// Its first step along K.
    pub(super) first: u32,
    /// Its steps; there may be none.
    pub(super) steps: u32,
}

impl<const BLOCKS: u32> Cluster<BLOCKS> {
    /// Of `steps` steps, the part of block `block` of its cluster.
    #[inline(always)]
    pub(super) fn new(block: u32, steps: u32) -> Self {
        // Not more than 2³² columns in steps of 128.
        let first = block * steps / BLOCKS;
        Self { block, first, steps: (block + 1) * steps / BLOCKS - first }
    }

    /// Adds the accumulators, of `consumers` warps, into those of the first block, block after block. They pass through its shared memory, where its
    /// stages were. Gives whether this is the first block. All threads come here.
    ///
    /// # Safety
    /// The caller's products have ended, and consumers' accumulators are initialised.
    #[inline(always)]
    pub(super) unsafe fn join<G: Gpu, const L: usize>(
        &self,
        gpu: G,
        warp: u32,
        consumers: u32,
        accumulators: &mut MaybeUninit<[f32; L]>,
    ) -> bool {
        if BLOCKS == 1 {
            return true;
        }
        let own = (warp * (L as u32 / 4) * WARP + gpu.lane_id()) * 16;
        let accumulator_bytes = consumers * WARP * 4 * L as u32;
        let place = |block: u32, i: usize| {
            SharedPtr::<f32>::from_offset(own + (block - 1) * accumulator_bytes + i as u32 * WARP * 16)
        };
        let is_consumer = warp < consumers;
        // SAFETY: each lane of each block has its own places, which are stored to once nobody reads stages any more, and read
        // once all have stored. Consumers' accumulators are initialised, as promised by the caller.
        unsafe {
            gpu.cluster_arrive();
            gpu.cluster_wait();
            if self.block > 0 && is_consumer {
                for (i, accumulators) in accumulators.assume_init_ref().as_chunks().0.iter().enumerate() {
                    gpu.cluster_store::<f32, 4>(0, place(self.block, i), *accumulators);
                }
            }
            gpu.cluster_arrive();
            gpu.cluster_wait();
            if self.block == 0 && is_consumer {
                for block in 1..BLOCKS {
                    for (i, accumulators) in
                        accumulators.assume_init_mut().as_chunks_mut::<4>().0.iter_mut().enumerate()
                    {
                        let more: [f32; 4] = gpu.shared_load(place(block, i));
                        for (sum, more) in accumulators.iter_mut().zip(&more) {
                            *sum += more;
                        }
                    }
                }
            }
        }
        self.block == 0
    }
}
