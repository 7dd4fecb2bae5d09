//! Cluster split-K: the blocks of a cluster share a tile of C. Each multiplies a part of K, and adds up a part of the tile.
//!
//! ```text
//!              block 0      block 1
//!   warp 0    ┌───────┐    ┌───────┐    Consumer warps of a tile in two blocks: each block adds up
//!   warp 1    │ sums  │ ◄─ │       │    what the warps of its half have in all blocks, and stores that.
//!   warp 2    │       │ ─► │ sums  │
//!   warp 3    └───────┘    └───────┘
//! ```
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

    /// The first of the consumer warps, of `consumers`, whose sums are this block's.
    #[inline(always)]
    pub(super) fn first_own(&self, consumers: u32) -> u32 {
        self.block * (consumers / BLOCKS)
    }

    /// Whether consumer warp `warp`, of `consumers`, has sums of the tile now: those of this block's part.
    #[inline(always)]
    pub(super) fn has_sums(&self, warp: u32, consumers: u32) -> bool {
        warp < consumers && (BLOCKS == 1 || warp / (consumers / BLOCKS) == self.block)
    }

    /// Tells the other blocks that this one has begun, so that they may store to its shared memory. The first thing that a thread
    /// does.
    #[inline(always)]
    pub(super) fn begin<G: Gpu>(gpu: G) {
        if BLOCKS > 1 {
            gpu.cluster_arrive_relaxed();
        }
    }

    /// Adds the accumulators of each of `consumers` warps into those of the same warp in the block whose part it is. They pass
    /// through that block's shared memory, from `sums` on, which has no other use: so nobody waits for the last products of
    /// another block before it stores. All threads come here, and have [begun](Self::begin).
    ///
    /// # Safety
    /// The caller's products have ended, and consumers' accumulators are initialised.
    #[inline(always)]
    pub(super) unsafe fn join<G: Gpu, const L: usize>(
        &self,
        gpu: G,
        warp: u32,
        consumers: u32,
        sums: u32,
        accumulators: &mut MaybeUninit<[f32; L]>,
    ) {
        if BLOCKS == 1 {
            return;
        }
        let of_a_block = consumers / BLOCKS;
        let owner = warp / of_a_block;
        let own = sums + (warp % of_a_block * (L as u32 / 4) * WARP + gpu.lane_id()) * 16;
        let part_bytes = of_a_block * WARP * 4 * L as u32;
        // Of the other blocks, in their order.
        let place = |other: u32, i: usize| {
            SharedPtr::<f32>::from_offset(own + other * part_bytes + i as u32 * WARP * 16)
        };
        let is_consumer = warp < consumers;
        // SAFETY: each lane of each block has its own places, which are stored to once the block has begun, and read once all have
        // stored. Consumers' accumulators are initialised, as promised by the caller.
        unsafe {
            gpu.cluster_wait();
            if is_consumer && owner != self.block {
                let other = if self.block < owner { self.block } else { self.block - 1 };
                for (i, accumulators) in accumulators.assume_init_ref().as_chunks().0.iter().enumerate() {
                    gpu.cluster_store::<f32, 4>(owner, place(other, i), *accumulators);
                }
            }
            gpu.cluster_arrive();
            gpu.cluster_wait();
            if is_consumer && owner == self.block {
                // Block after block would take more registers.
                for (i, accumulators) in
                    accumulators.assume_init_mut().as_chunks_mut::<4>().0.iter_mut().enumerate()
                {
                    for other in 0..BLOCKS - 1 {
                        let more: [f32; 4] = gpu.shared_load(place(other, i));
                        for (sum, more) in accumulators.iter_mut().zip(&more) {
                            *sum += more;
                        }
                    }
                }
            }
        }
    }
}
