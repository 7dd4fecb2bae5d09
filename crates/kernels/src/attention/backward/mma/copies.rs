//! What streams in 16 bits: by copies, some steps ahead.
use lacuna_gpu::Gpu;

use super::super::super::warp_mask::Seen;
use super::super::super::warp_products::{WARP_ROWS, load_rows};
use super::super::super::wgmma::{BLOCK, BlockEntry, BlockMask, WgmmaValue};
use super::super::begin::RowTerms;
use super::super::modified::ScoreBlock;
use super::super::{SCORES, WARPGROUP, Work};
use super::{BackwardMmaTiles, Cursor};

impl<
    T: WgmmaValue,
    const KEYS: bool,
    const L: usize,
    const SLICES: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> BackwardMmaTiles<T, KEYS, L, SLICES, GROUPS, STAGES, MODIFIES>
{
    /// Works out the gradients of the warp's 16 rows, and writes them.
    ///
    /// # Safety
    /// The whole thread block is here; operands and entries are live.
    #[inline(always)]
    pub(super) unsafe fn differentiate<G: Gpu>(work: &Work<T, G>, warp: u32) {
        let gpu = work.gpu;
        // Where two divide the work, both have the same rows.
        let (warp, group) = if Self::DIVIDES { (warp % 4, 0) } else { (warp, warp / 4) };
        let (mut sums, mut values) = ([[0.0; L]; 1], [[0.0; L]; 1]);
        // SAFETY: as promised by the caller; a stage is read when all copies of it have landed, and written when all warps have left it.
        unsafe {
            let mut ahead = Cursor::<KEYS>::FIRST;
            for stage in 0..STAGES - 1 {
                if !Self::HOLDS && stage == 0 {
                    Self::copy_owned(work, group);
                }
                Self::copy(work, &mut ahead, stage);
            }
            let (held, terms) = Self::begin(work, warp);
            let masks = (work.entries, work.bitmaps);
            let (mut stage, mut place) = (0, Cursor::<KEYS>::FIRST);
            let mut next = Seen::load(gpu, masks, (0, work.count), group);
            while place.exists(work.count, work.heads) {
                let now = next;
                if STAGES == 3 {
                    gpu.copy_async_wait::<1>();
                } else {
                    gpu.copy_async_wait::<0>();
                }
                gpu.sync_threads();
                Self::copy(work, &mut ahead, if stage == 0 { STAGES - 1 } else { stage - 1 });
                let here = place;
                place = place.next(work.count, Self::STEPS);
                next = Seen::load(gpu, masks, (place.index, work.count), group);
                if now.mask != BlockMask::EMPTY {
                    let block = ScoreBlock {
                        head: here.head,
                        index: here.index,
                        warp,
                        column: here.part * Self::ROWS,
                        bits: now.word >> (here.part * Self::ROWS / 2),
                        terms: Self::TERMS + stage * Self::TERM_BYTES,
                    };
                    let is_full = now.mask == BlockMask::FULL;
                    let (block, sums) = ((&block, is_full, stage), (&mut sums[0], &mut values[0]));
                    if Self::STEPS == 4 {
                        Self::multiply::<G, { SCORES / 4 }>(work, block, &held, &terms, sums);
                    } else if Self::HALVES {
                        Self::multiply_halves::<G, { SCORES / 2 }>(work, block, &held, &terms, sums);
                    } else {
                        Self::multiply::<G, SCORES>(work, block, &held, &terms, sums);
                    }
                }
                stage = if stage + 1 == STAGES { 0 } else { stage + 1 };
            }
            // Nothing is under way when the thread block ends.
            gpu.copy_async_wait::<0>();
            Self::write(work, warp, &terms, (&sums, &values));
        }
    }

    /// What the warp holds of the two matrices that are owned, and the terms of its queries.
    ///
    /// # Safety
    /// As for [`differentiate`](Self::differentiate).
    #[inline(always)]
    unsafe fn begin<G: Gpu>(work: &Work<T, G>, warp: u32) -> ([[[u32; 4]; SLICES]; 2], RowTerms) {
        let (gpu, side, dim) = (work.gpu, work.owned::<KEYS>(), work.operands.shape.dim);
        let (mut held, mut terms) = ([[[0; 4]; SLICES]; 2], RowTerms::NONE);
        // SAFETY: as promised by the caller.
        unsafe {
            if Self::HOLDS {
                for (matrix, held) in held.iter_mut().enumerate() {
                    *held = load_rows(gpu, &side.rows(matrix, work.first + warp * WARP_ROWS), dim);
                }
            }
            if !KEYS {
                let first = work.first + warp / 4 * BLOCK;
                terms = work.row_terms(&side, first, gpu.thread_idx_x() % WARPGROUP);
            }
        }
        (held, terms)
    }

    /// Starts copying the 64 rows of a group of what is owned, by its warps.
    ///
    /// # Safety
    /// As for [`differentiate`](Self::differentiate).
    #[inline(always)]
    unsafe fn copy_owned<G: Gpu>(work: &Work<T, G>, group: u32) {
        let gpu = work.gpu;
        let threads = Self::WARPGROUPS / GROUPS * WARPGROUP;
        let rows = (work.first + group * BLOCK, BLOCK, work.operands.shape.dim);
        for matrix in 0..2 {
            let to = (Self::OWNED + group * Self::PAIR + matrix as u32 * Self::MATRIX, Self::PANELS);
            // SAFETY: as promised by the caller.
            unsafe {
                work.owned::<KEYS>().copy(gpu, matrix, rows, to, (gpu.thread_idx_x() % threads, threads));
            }
        }
    }

    /// Starts copying a block of what streams to a stage, by all warps, if there is one more, and ends a group of copies in any case.
    ///
    /// # Safety
    /// Nobody uses the stage; operands and entries are live.
    #[inline(always)]
    unsafe fn copy<G: Gpu>(work: &Work<T, G>, place: &mut Cursor<KEYS>, stage: u32) {
        let (gpu, dim) = (work.gpu, work.operands.shape.dim);
        // SAFETY: as promised by the caller.
        unsafe {
            if place.exists(work.count, work.heads) {
                let block = BlockEntry::load_key_block(gpu, work.entries, place.index, work.count);
                let first = block * BLOCK + place.part * Self::ROWS;
                let (side, threads) =
                    (work.streamed::<KEYS>(place.head), (gpu.thread_idx_x(), Self::WARPGROUPS * WARPGROUP));
                for matrix in 0..2 {
                    let to = (Self::streamed(stage, matrix as u32), Self::PANELS);
                    side.copy(gpu, matrix, (first, Self::ROWS, dim), to, threads);
                }
                if KEYS {
                    let terms = Self::TERMS + stage * Self::TERM_BYTES;
                    work.copy_terms(place.head, (first, Self::ROWS), terms, threads);
                }
                *place = place.next(work.count, Self::STEPS);
            }
        }
        gpu.copy_async_commit();
    }
}
