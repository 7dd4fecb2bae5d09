//! What streams in `f32`: by way of registers, in which a number becomes two of bfloat16.
//!
//! ```text
//!   registers: half a block of the next step       shared memory: half a block of this step, a panel of both parts
//!
//!   next of B₀, B₁  ──► parts ──► a stage ─ barrier ─► products, while what comes next is loaded
//! ```
//! With one stage there is a barrier more, before it is filled anew.
use core::array;

use lacuna_gpu::{FULL_WARP, Gpu, WARP};

use super::super::super::warp_mask::Seen;
use super::super::super::warp_products::PANEL;
use super::super::super::wgmma::{BLOCK, BlockEntry, BlockMask, WgmmaValue};
use super::super::begin::RowTerms;
use super::super::modified::ScoreBlock;
use super::super::{SCORES, WARPGROUP, Work};
use super::{BackwardMmaTiles, Cursor};
use crate::common::{PASSES, Rows};

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
    /// Whether the first panels of a step are loaded while the one before is multiplied: two gradients of long rows leave no registers.
    const LOADS_AHEAD: bool = !(KEYS && L > 32);

    /// As [`differentiate`](Self::differentiate), of numbers in parts.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn differentiate_parts<G: Gpu>(work: &Work<T, G>, warp: u32) {
        // There is one group.
        let (gpu, group) = (work.gpu, 0);
        let (mut sums, mut values) = ([[0.0; L]; 1], [[0.0; L]; 1]);
        let held = [[[0; 4]; SLICES]; 2];
        // SAFETY: as promised by the caller; a stage is read when all have filled it, and filled when all warps have left it.
        unsafe {
            let mut place = Cursor::<KEYS>::FIRST;
            let mut ahead: [T::Loaded<{ PASSES / 2 }>; 2] =
                array::from_fn(|matrix| Self::load(work, place, 0, matrix));
            Self::copy_terms(work, place, 0);
            Self::split_owned(work);
            let mut terms = RowTerms::NONE;
            if !KEYS {
                let (side, first) = (work.owned::<KEYS>(), work.first);
                terms = work.row_terms(&side, first, gpu.thread_idx_x() % WARPGROUP);
            }
            while place.exists(work.count, work.heads) {
                // Steps are halves of blocks, so slots and stages are, too.
                let slot = place.part;
                let stage = if STAGES == 1 { 0 } else { slot };
                let masks = (work.entries, work.bitmaps);
                let seen = Seen::load(gpu, masks, (place.index, work.count), group);
                let next = place.next(work.count, Self::STEPS);
                if STAGES == 1 {
                    gpu.sync_threads();
                }
                Self::fill(work, (place, next), stage, &mut ahead);
                gpu.copy_async_wait::<0>();
                gpu.sync_threads();
                Self::copy_terms(work, next, 1 - slot);
                if seen.mask != BlockMask::EMPTY {
                    let column = place.part * Self::ROWS;
                    let block = ScoreBlock {
                        head: place.head,
                        index: place.index,
                        warp,
                        column,
                        bits: seen.word >> (column / 2),
                        terms: Self::TERMS + slot * Self::TERM_BYTES,
                    };
                    let block = (&block, seen.mask == BlockMask::FULL, stage);
                    let sums = (&mut sums[0], &mut values[0]);
                    if Self::HALVES {
                        Self::multiply_halves::<G, { SCORES / 4 }>(work, block, &held, &terms, sums);
                    } else {
                        Self::multiply::<G, { SCORES / 2 }>(work, block, &held, &terms, sums);
                    }
                }
                place = next;
            }
            // Nothing is under way when the thread block ends.
            gpu.copy_async_wait::<0>();
            Self::write(work, warp, &terms, (&sums, &values));
        }
    }

    /// Splits the 64 rows of what is owned.
    ///
    /// # Safety
    /// As for [`differentiate`](Self::differentiate).
    #[inline(always)]
    unsafe fn split_owned<G: Gpu>(work: &Work<T, G>) {
        let (gpu, dim, side) = (work.gpu, work.operands.shape.dim, work.owned::<KEYS>());
        for matrix in 0..2 {
            let rows = side.rows(matrix, work.first);
            let to = Self::OWNED + matrix as u32 * T::PARTS * Self::MATRIX;
            for panel in 0..Self::PANELS {
                // SAFETY: as promised by the caller.
                unsafe {
                    let loaded = T::load::<G, PASSES>(gpu, &rows, [64 * panel, dim]);
                    T::store::<G, PASSES>(gpu, &loaded, to + panel * PANEL, Self::MATRIX);
                }
            }
        }
    }

    /// Loads what the thread has of a panel of a step's rows. Nothing is there after the last step.
    ///
    /// # Safety
    /// As for [`differentiate`](Self::differentiate).
    #[inline(always)]
    unsafe fn load<G: Gpu>(
        work: &Work<T, G>,
        place: Cursor<KEYS>,
        panel: u32,
        matrix: usize,
    ) -> T::Loaded<{ PASSES / 2 }> {
        let gpu = work.gpu;
        // SAFETY: as promised by the caller.
        unsafe {
            let block = BlockEntry::load_key_block(gpu, work.entries, place.index, work.count);
            let rows =
                work.streamed::<KEYS>(place.head).rows(matrix, block * BLOCK + place.part * Self::ROWS);
            let end = if place.exists(work.count, work.heads) { rows.end } else { 0 };
            let rows = Rows { end, ..rows };
            T::load::<G, { PASSES / 2 }>(gpu, &rows, [64 * panel, work.operands.shape.dim])
        }
    }

    /// Fills a stage with a step's rows, of which the first panels may have been loaded ahead, and then loads those of the next step.
    ///
    /// # Safety
    /// Nobody uses the stage; operands and entries are live.
    #[inline(always)]
    unsafe fn fill<G: Gpu>(
        work: &Work<T, G>,
        (here, next): (Cursor<KEYS>, Cursor<KEYS>),
        stage: u32,
        ahead: &mut [T::Loaded<{ PASSES / 2 }>; 2],
    ) {
        let gpu = work.gpu;
        // Of long rows the compiler is not to see how many panels there are: it would keep addresses of all.
        let panels =
            if Self::PANELS > 1 { gpu.warp_shuffle_idx(FULL_WARP, Self::PANELS, 0, WARP) } else { 1 };
        // SAFETY: as promised by the caller.
        unsafe {
            if !Self::LOADS_AHEAD {
                *ahead = array::from_fn(|matrix| Self::load(work, here, 0, matrix));
            }
            for panel in 0..panels {
                for (matrix, ahead) in ahead.iter_mut().enumerate() {
                    let to = Self::streamed(stage, matrix as u32) + panel * PANEL;
                    T::store::<G, { PASSES / 2 }>(gpu, ahead, to, Self::REST);
                    if panel + 1 < panels {
                        *ahead = Self::load(work, here, panel + 1, matrix);
                    } else if Self::LOADS_AHEAD {
                        *ahead = Self::load(work, next, 0, matrix);
                    }
                }
            }
        }
    }

    /// Starts copying the terms of a step's queries, where keys are owned and if there is such a step, and ends a group of copies in any case.
    ///
    /// # Safety
    /// Nobody uses the slot; operands and entries are live.
    #[inline(always)]
    unsafe fn copy_terms<G: Gpu>(work: &Work<T, G>, place: Cursor<KEYS>, slot: u32) {
        let gpu = work.gpu;
        if KEYS && place.exists(work.count, work.heads) {
            // SAFETY: as promised by the caller.
            unsafe {
                let block = BlockEntry::load_key_block(gpu, work.entries, place.index, work.count);
                let rows = (block * BLOCK + place.part * Self::ROWS, Self::ROWS);
                let threads = (gpu.thread_idx_x(), GROUPS * WARPGROUP);
                work.copy_terms(place.head, rows, Self::TERMS + slot * Self::TERM_BYTES, threads);
            }
        }
        gpu.copy_async_commit();
    }
}
