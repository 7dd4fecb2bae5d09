//! The warps that fill stages by copies, one each.
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::block::{BITMAP_WORDS, BLOCK, BlockEntry, BlockMask};
use super::{PANEL, PIECE, WgmmaTiles, WgmmaValue, Work};
use crate::common::strided;

impl<
    T: WgmmaValue,
    const L: usize,
    const PARTS: usize,
    const PIECES: usize,
    const SCORES: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> WgmmaTiles<T, L, PARTS, PIECES, SCORES, GROUPS, STAGES, MODIFIES>
{
    /// Copies K, V and bitmaps into this warp's stage, for every step that is the stage's.
    ///
    /// # Safety
    /// The whole warp is here; head and entries are live.
    #[inline(always)]
    pub(super) unsafe fn produce<G: Gpu>(work: &Work<T, G>, stage: u32) {
        let gpu = work.gpu;
        let mut first = stage * Self::UNITS;
        // SAFETY: as promised by the caller; a stage is filled when all groups have left it.
        unsafe {
            let entry = |index: u32| BlockEntry::load(gpu, work.entries, index, work.count);
            let mut next = [entry(first), entry(first + 1)];
            while first < work.count {
                let entries = next;
                let later = first + STAGES * Self::UNITS;
                next = [entry(later), entry(later + 1)];
                if first >= STAGES * Self::UNITS {
                    gpu.barrier_sync(Self::EMPTY + stage, Self::AT_EMPTY);
                }
                Self::copy_block(work, [stage, 0], &entries[0], true);
                if Self::UNITS == 2 {
                    Self::copy_block(work, [stage, 1], &entries[1], first + 1 < work.count);
                }
                Self::fill_ends(gpu, Self::FULL + stage * GROUPS);
                first = later;
            }
        }
    }

    /// Gives what was filled to all groups, at a barrier each from `full` on, once the copies have landed.
    #[inline(always)]
    pub(super) fn fill_ends<G: Gpu>(gpu: G, full: u32) {
        gpu.copy_async_commit();
        gpu.copy_async_wait::<0>();
        gpu.fence_async_proxy();
        for group in 0..GROUPS {
            gpu.barrier_arrive(full + group, Self::AT_FULL);
        }
    }

    /// Starts copying the 64 keys of an entry, and its bitmaps. Zeros stand for keys that are not there.
    ///
    /// # Safety
    /// As for [`produce`](Self::produce); the stage is empty.
    #[inline(always)]
    unsafe fn copy_block<G: Gpu>(
        work: &Work<T, G>,
        [stage, unit]: [u32; 2],
        entry: &BlockEntry,
        is_there: bool,
    ) {
        let (gpu, head, lane) = (work.gpu, &work.head, work.gpu.lane_id());
        let pieces = PIECES as u32;
        // A lane has one piece of each row that it copies.
        let (piece, row, rows) = (lane % pieces, lane / pieces, WARP / pieces);
        let has_piece = is_there && piece * 8 < head.dim;
        let key = entry.key_block * BLOCK + row;
        let column = if has_piece { piece as usize * 8 } else { 0 };
        let [mut k, mut v] = [head.k, head.v].map(|matrix| {
            GlobalPtr::<u16>::from_address(matrix.add_rows(key, head.kv_stride).address()).add(column)
        });
        let place = stage * Self::KV_BYTES + (piece / 8 * Self::UNITS + unit) * PANEL;
        // SAFETY: as promised by the caller; nothing is read of keys that are not there.
        unsafe {
            // Where a warp copies a row at a time, the compiler would keep an address for each of 64: it is not to see how many they are.
            let end = if rows == 1 { gpu.warp_shuffle_idx(FULL_WARP, BLOCK, 0, WARP) } else { BLOCK };
            strided(row, end, rows, |at| {
                let is_key = has_piece && entry.key_block * BLOCK + at < head.cols;
                // Copies that are neighbours in memory stay on one line of shared memory: else each would read a sector of its own.
                let to = place + (at * 8 + ((piece % 8) ^ (at % 8))) * PIECE;
                gpu.copy_async_or_zero::<u16, 8>(SharedPtr::from_offset(Self::K + to), k, is_key);
                gpu.copy_async_or_zero::<u16, 8>(SharedPtr::from_offset(to), v, is_key);
                let step = u64::from(rows) * u64::from(head.kv_stride);
                (k, v) = (k.add_bytes(step), v.add_bytes(step));
            });
            Self::copy_bitmaps(work, [stage, unit], entry, [0, 1]);
        }
    }

    /// Starts copying the bitmaps of an entry for one of so many producers, each of which has every so many-th group's.
    ///
    /// # Safety
    /// As for [`produce`](Self::produce); the stage is empty.
    #[inline(always)]
    pub(super) unsafe fn copy_bitmaps<G: Gpu>(
        work: &Work<T, G>,
        [stage, unit]: [u32; 2],
        entry: &BlockEntry,
        [producer, producers]: [u32; 2],
    ) {
        let (gpu, lane) = (work.gpu, work.gpu.lane_id());
        for group in 0..GROUPS {
            let (mask, slot) = (entry.masks[group as usize], Self::slot(stage, group, unit));
            if mask < BlockMask::FULL && group % producers == producer {
                let from = work.bitmaps.add(mask as usize * BITMAP_WORDS as usize + 4 * lane as usize);
                let to = Self::BITMAPS + slot * BITMAP_WORDS * 4 + lane * PIECE;
                // SAFETY: as promised by the caller; a bitmap is 32 pieces.
                unsafe { gpu.copy_async::<u32, 4>(SharedPtr::from_offset(to), from) };
            }
        }
    }
}
