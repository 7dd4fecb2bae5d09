//! The warps that fill stages: one each, or, of numbers in parts, all of them every stage.
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::super::wgmma::{BITMAP_WORDS, BLOCK, BlockEntry, BlockMask, WgmmaValue};
use super::{BackwardTiles, PANEL, TERMS, WARPGROUP, Work};
use crate::common::{PASSES, Rows, strided};

/// Half a block among those that producers split.
#[derive(Clone, Copy)]
struct Half {
    index: u32,
    head: u32,
    half: u32,
    entry: BlockEntry,
}

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
                    let to = (stage * Self::STREAMED_PAIR + matrix as u32 * Self::STREAMED, Self::PANELS);
                    let first = entry.key_block * BLOCK;
                    let rows = (first, BLOCK, work.operands.shape.dim);
                    side.copy(gpu, matrix, rows, to, (gpu.lane_id(), WARP));
                }
                Self::copy_terms(work, stage, (head, &entry, 0), (gpu.lane_id(), WARP));
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
                T::load::<G, PASSES>(gpu, &Rows { end, ..rows }, [64 * panel, dim])
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
                let slot = Self::slot(step, stage);
                Self::copy_terms(work, slot, (here.0, &here.1, 0), (thread, WARPGROUP));
                for panel in 0..panels {
                    let next =
                        if panel + 1 < panels { (here.0, &here.1, panel + 1) } else { (head, &entry, 0) };
                    let is_there = panel + 1 < panels || has_next;
                    let to = stage * Self::STREAMED_PAIR + panel * PANEL;
                    T::store::<G, PASSES>(gpu, &first, to, Self::STREAMED_PART);
                    if Self::LOADS_LATE {
                        second = load(1, (here.0, &here.1, panel), true);
                    }
                    first = load(0, next, is_there);
                    T::store::<G, PASSES>(gpu, &second, to + Self::STREAMED, Self::STREAMED_PART);
                    if !Self::LOADS_LATE {
                        second = load(1, next, is_there);
                    }
                }
                Self::fill_ends(gpu, stage);
                (step, stage) = (step + 1, if stage + 1 == STAGES { 0 } else { stage + 1 });
            }
        }
    }

    /// Splits half a block into the only stage, by all producers. `AHEAD` / 2 panels of both matrices are loaded ahead.
    ///
    /// # Safety
    /// As for [`produce_parts`](Self::produce_parts).
    #[inline(always)]
    pub(super) unsafe fn produce_halves<G: Gpu, const AHEAD: usize>(work: &Work<T, G>) {
        let (gpu, dim) = (work.gpu, work.operands.shape.dim);
        let thread = gpu.thread_idx_x() % WARPGROUP;
        // The compiler is not to see how many panels there are: it would keep addresses of all.
        let panels = gpu.warp_shuffle_idx(FULL_WARP, Self::PANELS, 0, WARP);
        if work.count == 0 {
            return;
        }
        // SAFETY: as promised by the caller; the stage is filled when all groups have left it.
        unsafe {
            let load = |half: &Half, panel: u32, matrix: usize| {
                let first = half.entry.key_block * BLOCK + half.half * Self::ROWS;
                let rows = work.streamed::<KEYS>(half.head).rows(matrix, first);
                let end = if half.head < work.heads { rows.end } else { 0 };
                T::load::<G, { PASSES / 2 }>(gpu, &Rows { end, ..rows }, [64 * panel, dim])
            };
            let entry = BlockEntry::load(gpu, work.entries, 0, work.count);
            let (mut here, mut is_first) = (Half { index: 0, head: 0, half: 0, entry }, true);
            let mut ahead: [_; AHEAD] = core::array::from_fn(|i| load(&here, i as u32 / 2, i % 2));
            while here.head < work.heads {
                let mut next = Half { half: 1 - here.half, ..here };
                if here.half == 1 {
                    let is_last = here.index + 1 == work.count;
                    (next.index, next.head) =
                        if is_last { (0, here.head + 1) } else { (here.index + 1, here.head) };
                    next.entry = BlockEntry::load(gpu, work.entries, next.index, work.count);
                }
                if !is_first {
                    gpu.barrier_sync(Self::EMPTY, Self::AT_EMPTY);
                }
                Self::copy_terms(work, here.half, (here.head, &here.entry, here.half), (thread, WARPGROUP));
                let mut first = 0;
                while first < panels {
                    let later = first + AHEAD as u32 / 2;
                    let (of, later) = if later < panels { (&here, later) } else { (&next, 0) };
                    for (i, ahead) in ahead.iter_mut().enumerate() {
                        let (panel, matrix) = (i as u32 / 2, i % 2);
                        let to = (first + panel) * Self::STREAMED_PANEL + matrix as u32 * Self::STREAMED;
                        T::store::<G, { PASSES / 2 }>(gpu, ahead, to, Self::STREAMED_PART);
                        *ahead = load(of, later + panel, matrix);
                    }
                    first += AHEAD as u32 / 2;
                }
                Self::fill_ends(gpu, 0);
                (here, is_first) = (next, false);
            }
        }
    }

    /// Gives a stage to all warpgroups that multiply, once the copies have landed.
    #[inline(always)]
    fn fill_ends<G: Gpu>(gpu: G, stage: u32) {
        gpu.copy_async_commit();
        gpu.copy_async_wait::<0>();
        gpu.fence_async_proxy();
        for warpgroup in 0..Self::WARPGROUPS {
            gpu.barrier_arrive(Self::FULL + stage * Self::WARPGROUPS + warpgroup, Self::AT_FULL);
        }
    }

    /// Starts copying the terms of an entry's queries, where keys are owned, and its bitmaps, by thread `thread` of `threads`.
    ///
    /// # Safety
    /// As for [`produce`](Self::produce); nobody uses the slot.
    #[inline(always)]
    unsafe fn copy_terms<G: Gpu>(
        work: &Work<T, G>,
        slot: u32,
        (head, entry, half): (u32, &BlockEntry, u32),
        (thread, threads): (u32, u32),
    ) {
        let (gpu, first) = (work.gpu, entry.key_block * BLOCK + half * Self::ROWS);
        // SAFETY: as promised by the caller.
        unsafe {
            if KEYS {
                work.copy_terms(head, (first, Self::ROWS), Self::terms(slot), (thread, threads));
            }
            for group in 0..GROUPS {
                let mask = entry.masks[group as usize];
                if mask < BlockMask::FULL && thread < WARP {
                    let from = work.bitmaps.add(mask as usize * BITMAP_WORDS as usize + 4 * thread as usize);
                    let to = Self::bitmap(slot, group) + thread * 16;
                    gpu.copy_async::<u32, 4>(SharedPtr::from_offset(to), from);
                }
            }
        }
    }
}

impl<T: WgmmaValue, G: Gpu> Work<T, G> {
    /// Starts copying the terms of so many queries, from query `first` of a head on, where keys are owned, by thread `thread` of `threads`.
    ///
    /// # Safety
    /// The terms are live, and nobody touches the place.
    #[inline(always)]
    pub(super) unsafe fn copy_terms(
        &self,
        head: u32,
        (first, queries): (u32, u32),
        to: u32,
        (thread, threads): (u32, u32),
    ) {
        let terms = GlobalPtr::<f32>::from_address(self.terms::<true>(head).address());
        strided(thread, queries, threads, |at| {
            let from = terms.add((first + at) as usize * TERMS);
            let to = SharedPtr::from_offset(to + at * TERMS as u32 * 4);
            let is_there = first + at < self.operands.shape.rows;
            // SAFETY: as promised by the caller; nothing is read of queries that are not there.
            unsafe { self.gpu.copy_async_or_zero::<f32, TERMS>(to, from, is_there) };
        });
    }
}
