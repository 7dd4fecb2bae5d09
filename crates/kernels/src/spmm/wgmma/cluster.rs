//! Cluster split-K: the blocks of a cluster share a tile of C. Each multiplies a part of K, and the first adds up.
use lacuna_gpu::{Gpu, SharedPtr, WARP};

use super::{CONSUMERS, ROWS};

/// One of `BLOCKS` blocks that share a tile of 2·`L` columns.
pub(super) struct Cluster<const L: usize, const BLOCKS: u32> {
    /// The block's number in its cluster.
    block: u32,
    /// Its first step along K.
    pub(super) first: u32,
    /// Its steps; there may be none.
    pub(super) steps: u32,
}

impl<const L: usize, const BLOCKS: u32> Cluster<L, BLOCKS> {
    /// Bytes of a block's accumulators.
    const ACCUMULATOR_BYTES: u32 = ROWS * 2 * L as u32 * 4;
    /// Bytes of shared memory, of the first block, for the accumulators of the others.
    pub(super) const BYTES: u32 = (BLOCKS - 1) * Self::ACCUMULATOR_BYTES;

    /// Of `steps` steps, the part of block `block` of its cluster.
    #[inline(always)]
    pub(super) fn new(block: u32, steps: u32) -> Self {
        // Not more than 2³² columns in steps of 128.
        let first = block * steps / BLOCKS;
        Self { block, first, steps: (block + 1) * steps / BLOCKS - first }
    }

    /// Tells the others that this block has begun. All threads come here.
    #[inline(always)]
    pub(super) fn begin<G: Gpu>(&self, gpu: G) {
        if BLOCKS > 1 {
            gpu.cluster_arrive();
        }
    }

    /// Adds the blocks' accumulators into those of the first, block after block. They pass through its shared memory from `at` on.
    /// Gives whether this is the first block. All threads come here.
    ///
    /// # Safety
    /// Nothing else lies there.
    #[inline(always)]
    pub(super) unsafe fn join<G: Gpu>(
        &self,
        gpu: G,
        at: u32,
        warp: u32,
        accumulators: &mut [f32; L],
    ) -> bool {
        if BLOCKS == 1 {
            return true;
        }
        let own = at + (warp * (L as u32 / 4) * WARP + gpu.lane_id()) * 16;
        let place = |block: u32, i: usize| {
            SharedPtr::<f32>::from_offset(own + (block - 1) * Self::ACCUMULATOR_BYTES + i as u32 * WARP * 16)
        };
        let is_consumer = warp < CONSUMERS;
        // SAFETY: each lane of each block has its own places, which are stored to once all blocks have begun, and read once all
        // have stored.
        unsafe {
            gpu.cluster_wait();
            if self.block > 0 && is_consumer {
                for (i, accumulators) in accumulators.as_chunks().0.iter().enumerate() {
                    gpu.cluster_store::<f32, 4>(0, place(self.block, i), *accumulators);
                }
            }
            gpu.cluster_arrive();
            gpu.cluster_wait();
            if self.block == 0 && is_consumer {
                for block in 1..BLOCKS {
                    for (i, accumulators) in accumulators.as_chunks_mut::<4>().0.iter_mut().enumerate() {
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
