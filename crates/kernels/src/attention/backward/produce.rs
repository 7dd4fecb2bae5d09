//! The warps that fill stages: one each, or, of numbers in parts, all of them every stage.
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::super::wgmma::{BITMAP_WORDS, BLOCK, BlockEntry, BlockMask, WgmmaValue};
use super::{BackwardTiles, PANEL, TERMS, WARPGROUP, Work};
use crate::common::{Rows, strided};

impl<
    T: WgmmaValue,
    const KEYS: bool,
    const L: usize,
    const PARTS: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> BackwardTiles<T, KEYS, L, PARTS, GROUPS, STAGES, MODIFIES>
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
                    gpu.barrier_sync(Self::EMPTY + stage, Self::AT_EMPTY);
                }
                let side = work.streamed::<KEYS>(head);
                for matrix in 0..2 {
                    let to = (stage * Self::PAIR + matrix as u32 * Self::MATRIX, Self::PANELS);
                    let first = entry.key_block * BLOCK;
                    side.copy(gpu, matrix, (first, work.operands.shape.dim), to, (gpu.lane_id(), WARP));
                }
                Self::copy_terms(work, stage, (head, &entry), (gpu.lane_id(), WARP));
                Self::fill_ends(gpu, stage);
                is_first = false;
                index += STAGES;
            }
        }
    }

    /// Splits what streams into every stage, by all producers: a panel of one matrix, and one of the other. What comes next of one is loaded
    /// while the other is split.
    ///
    /// # Safety
    /// All producers are here, a warpgroup; operands and entries are live.
    #[inline(always)]
    pub(super) unsafe fn produce_parts<G: Gpu>(work: &Work<T, G>) {
        let (gpu, dim, steps) = (work.gpu, work.operands.shape.dim, work.count * work.heads);
        let thread = gpu.thread_idx_x() % WARPGROUP;
        let (mut step, mut stage, mut index, mut head) = (0, 0, 0, 0);
        // SAFETY: as promised by the caller; a stage is filled when all groups have left it.
        unsafe {
            let load = |matrix, (head, entry, panel): (u32, &BlockEntry, u32), is_there: bool| {
                let rows = work.streamed::<KEYS>(head).rows(matrix, entry.key_block * BLOCK);
                let end = if is_there { rows.end } else { 0 };
                T::load(gpu, &Rows { end, ..rows }, [64 * panel, dim])
            };
            // Of long rows the compiler is not to see how many panels there are: it would keep addresses of all.
            let panels =
                if Self::PANELS > 1 { gpu.warp_shuffle_idx(FULL_WARP, Self::PANELS, 0, WARP) } else { 1 };
            let mut entry = BlockEntry::load(gpu, work.entries, 0, work.count);
            let mut first = load(0, (0, &entry, 0), steps > 0);
            let mut second = load(1, (0, &entry, 0), steps > 0);
            while step < steps {
                let here = (head, entry);
                let has_next = step + 1 < steps;
                if has_next {
                    (index, head) = if index + 1 == work.count { (0, head + 1) } else { (index + 1, head) };
                    entry = BlockEntry::load(gpu, work.entries, index, work.count);
                }
                if step >= STAGES {
                    gpu.barrier_sync(Self::EMPTY + stage, Self::AT_EMPTY);
                }
                Self::copy_terms(work, stage, (here.0, &here.1), (thread, WARPGROUP));
                for panel in 0..panels {
                    let next =
                        if panel + 1 < panels { (here.0, &here.1, panel + 1) } else { (head, &entry, 0) };
                    let is_there = panel + 1 < panels || has_next;
                    let to = stage * Self::PAIR + panel * PANEL;
                    T::store(gpu, &first, to, Self::PART);
                    if MODIFIES {
                        second = load(1, (here.0, &here.1, panel), true);
                    }
                    first = load(0, next, is_there);
                    T::store(gpu, &second, to + Self::MATRIX, Self::PART);
                    if !MODIFIES {
                        second = load(1, next, is_there);
                    }
                }
                Self::fill_ends(gpu, stage);
                (step, stage) = (step + 1, if stage + 1 == STAGES { 0 } else { stage + 1 });
            }
        }
    }

    /// Gives a stage to all groups, once the copies have landed.
    #[inline(always)]
    fn fill_ends<G: Gpu>(gpu: G, stage: u32) {
        gpu.copy_async_commit();
        gpu.copy_async_wait::<0>();
        gpu.fence_async_proxy();
        for group in 0..GROUPS {
            gpu.barrier_arrive(Self::FULL + stage * GROUPS + group, Self::AT_FULL);
        }
    }

    /// Starts copying the terms of an entry's queries, where keys are owned, and its bitmaps, by thread `thread` of `threads`.
    ///
    /// # Safety
    /// As for [`produce`](Self::produce); the stage is empty.
    #[inline(always)]
    unsafe fn copy_terms<G: Gpu>(
        work: &Work<T, G>,
        stage: u32,
        (head, entry): (u32, &BlockEntry),
        (thread, threads): (u32, u32),
    ) {
        let (gpu, first) = (work.gpu, entry.key_block * BLOCK);
        // SAFETY: as promised by the caller; nothing is read of queries that are not there.
        unsafe {
            if KEYS {
                let terms = GlobalPtr::<f32>::from_address(work.terms::<KEYS>(head).address());
                strided(thread, BLOCK, threads, |at| {
                    let from = terms.add((first + at) as usize * TERMS);
                    let to = Self::TERMS + stage * Self::TERM_BYTES + at * TERMS as u32 * 4;
                    let is_there = first + at < work.operands.shape.rows;
                    gpu.copy_async_or_zero::<f32, TERMS>(SharedPtr::from_offset(to), from, is_there);
                });
            }
            for group in 0..GROUPS {
                let mask = entry.masks[group as usize];
                if mask < BlockMask::FULL && thread < WARP {
                    let from = work.bitmaps.add(mask as usize * BITMAP_WORDS as usize + 4 * thread as usize);
                    let to = Self::bitmap(stage, group) + thread * 16;
                    gpu.copy_async::<u32, 4>(SharedPtr::from_offset(to), from);
                }
            }
        }
    }
}
