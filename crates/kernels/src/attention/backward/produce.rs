//! The warps that fill stages, one each.
use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr, WARP};

use super::super::wgmma::{BITMAP_WORDS, BLOCK, BlockEntry, BlockMask};
use super::{BackwardTiles, TERMS, WARPGROUP, Work};
use crate::HalfValue;
use crate::common::strided;

impl<
    T: HalfValue,
    const KEYS: bool,
    const L: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> BackwardTiles<T, KEYS, L, GROUPS, STAGES, MODIFIES>
{
    /// Copies what streams, with its terms and bitmaps, into this warp's stage, for every step that is the stage's.
    ///
    /// # Safety
    /// The whole warp is here; operands and entries are live.
    #[inline(always)]
    pub(super) unsafe fn produce<G: Gpu>(work: &Work<T, G>, stage: u32) {
        let (gpu, count) = (work.gpu, work.count);
        if count == 0 {
            return;
        }
        let (mut head, mut index, mut is_first) = (0, stage, true);
        // SAFETY: as promised by the caller; a stage is filled when all groups have left it.
        unsafe {
            loop {
                while index >= count {
                    index -= count;
                    head += 1;
                }
                if head >= work.heads {
                    return;
                }
                let entry = BlockEntry::load(gpu, work.entries, index, count);
                if !is_first {
                    gpu.barrier_sync(Self::EMPTY + stage, GROUPS * WARPGROUP + WARP);
                }
                Self::copy_block(work, stage, head, &entry);
                gpu.copy_async_commit();
                gpu.copy_async_wait::<0>();
                gpu.fence_async_proxy();
                for group in 0..GROUPS {
                    gpu.barrier_arrive(Self::FULL + stage * GROUPS + group, WARPGROUP + WARP);
                }
                is_first = false;
                index += STAGES;
            }
        }
    }

    /// Starts copying the 64 rows of an entry.
    ///
    /// # Safety
    /// As for [`produce`](Self::produce); the stage is empty.
    #[inline(always)]
    unsafe fn copy_block<G: Gpu>(work: &Work<T, G>, stage: u32, head: u32, entry: &BlockEntry) {
        let (gpu, lane) = (work.gpu, work.gpu.lane_id());
        let (side, first) = (work.streamed::<KEYS>(head), entry.key_block * BLOCK);
        let place = (stage * Self::PAIR, Self::PANELS);
        // SAFETY: as promised by the caller; nothing is read of queries that are not there.
        unsafe {
            side.copy(gpu, (first, work.operands.shape.dim), place, (lane, WARP));
            if KEYS {
                let terms = GlobalPtr::<f32>::from_address(work.terms::<KEYS>(head).address());
                strided(lane, BLOCK, WARP, |at| {
                    let from = terms.add((first + at) as usize * TERMS);
                    let to = Self::TERMS + stage * Self::TERM_BYTES + at * TERMS as u32 * 4;
                    let is_there = first + at < side.rows;
                    gpu.copy_async_or_zero::<f32, TERMS>(SharedPtr::from_offset(to), from, is_there);
                });
            }
            for group in 0..GROUPS {
                let mask = entry.masks[group as usize];
                if mask < BlockMask::FULL {
                    let from = work.bitmaps.add(mask as usize * BITMAP_WORDS as usize + 4 * lane as usize);
                    let to = Self::bitmap(stage, group) + lane * 16;
                    gpu.copy_async::<u32, 4>(SharedPtr::from_offset(to), from);
                }
            }
        }
    }
}
