//! Gradients by warps (mma.sync of sm_80), for values of 16 bits.
//!
//! ```text
//!   a step: 64 rows of K and V,             warps 0–3   S = A₀·B₀ᵀ ─ mask ─ exp ─► P ────────────────► dV += P·B₁
//!   or of Q and dO, in a stage              warps 4–7            A₁·B₁ᵀ ─► dS = P ⊙ (A₁·B₁ᵀ − delta) ─► dQ or dK += dS·B₀
//!
//!             B₀   B₁                       A₀, A₁: what is owned, 16 rows a warp, Q and dO or K and V
//!            ┌──┐ ┌──┐                      B₀, B₁: what streams, K and V or Q and dO
//!   64 rows  │  │ │  │                      all warps copy B some steps ahead
//!            └──┘ └──┘
//! ```
//! A thread block owns `GROUPS` × 64 rows, as [`BackwardTiles`](super::BackwardTiles) do, by the same lists; what becomes of products is the same
//! code. What a warp owns stays in registers; but with two gradients of long rows, which have these, it is loaded from panels each step.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, Gpu, WARP};

use super::super::tile_rows::seen;
use super::super::warp_mask::Seen;
use super::super::warp_products::{
    PANEL, ROW, WARP_ROWS, load_rows, load_slice, multiply_columns, multiply_rows,
};
use super::super::wgmma::{BLOCK, BlockArgs, BlockEntry, BlockMask, WgmmaValue};
use super::super::{Scheme, Tile};
use super::begin::RowTerms;
use super::modified::ScoreBlock;
use super::weights::{slope, weigh};
use super::write::Gradient;
use super::{BackwardOperands, SCORES, TERMS, WARPGROUP, Work};
use crate::{Bounds, HalfValue, Kernel};

/// Gradients by tiles of `GROUPS` × 64 rows of up to 2·`L` elements, which are `SLICES` of sixteen: of K and V if `KEYS`, by the blocks of the
/// transposed mask; of Q if not. Scores may be changed if it `MODIFIES`, as forward.
#[derive(Debug)]
pub struct BackwardMmaTiles<
    T,
    const KEYS: bool,
    const L: usize,
    const SLICES: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
>(PhantomData<T>);

/// Where a thread block is among its blocks: at an entry of the tile, for one of the heads that are gone through with all entries each; where
/// queries are owned, there is one.
#[derive(Clone, Copy)]
struct Cursor<const KEYS: bool> {
    index: u32,
    head: u32,
}

impl<const KEYS: bool> Cursor<KEYS> {
    const FIRST: Self = Self { index: 0, head: 0 };

    #[inline(always)]
    const fn next(self, count: u32) -> Self {
        if KEYS && self.index + 1 == count {
            Self { index: 0, head: self.head + 1 }
        } else {
            Self { index: self.index + 1, ..self }
        }
    }

    /// Whether there is one.
    #[inline(always)]
    const fn exists(self, count: u32, heads: u32) -> bool {
        self.index < count && (!KEYS || self.head < heads)
    }
}

impl<
    T: HalfValue + WgmmaValue<Part = T>,
    const KEYS: bool,
    const L: usize,
    const SLICES: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> Kernel for BackwardMmaTiles<T, KEYS, L, SLICES, GROUPS, STAGES, MODIFIES>
{
    type Args = BlockArgs<BackwardOperands<T>>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(L.is_multiple_of(32) && 8 * SLICES == L && GROUPS <= 2 && (STAGES == 2 || STAGES == 3));
        // Some GPUs of sm_8x have no more.
        assert!(Self::SHARED_BYTES <= 99 * 1024, "a block of sm_86 has 99 KiB");
        Tile {
            value: T::TYPE,
            vector: 8,
            lanes: L as u32 / 4,
            dimension: 2 * L as u32,
            block_rows: GROUPS * BLOCK,
            scheme: if MODIFIES {
                Scheme::ModifiedBackwardMmaTile { owns_keys: KEYS }
            } else {
                Scheme::BackwardMmaTile { owns_keys: KEYS }
            },
        }
    };
    const THREADS: u32 = GROUPS * WARPGROUP;
    const SHARED_BYTES: u32 = Self::TERMS + STAGES * Self::TERM_BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 0 };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        // SAFETY: the table has a record for each tile of the grid, and describes live memory.
        unsafe {
            let work = Work::of::<KEYS>(gpu, &args);
            Self::differentiate(&work, warp);
        }
    }
}

impl<
    T: HalfValue + WgmmaValue<Part = T>,
    const KEYS: bool,
    const L: usize,
    const SLICES: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> BackwardMmaTiles<T, KEYS, L, SLICES, GROUPS, STAGES, MODIFIES>
{
    /// Panels of a row, and bytes of 64 rows of a matrix, and of two.
    const PANELS: u32 = L as u32 / 32;
    const MATRIX: u32 = Self::PANELS * PANEL;
    const PAIR: u32 = 2 * Self::MATRIX;
    /// Whether what is owned stays in registers; if not, it lies behind what streams.
    const HOLDS: bool = !KEYS || L == 32;
    /// Whether scores of half a block are made at a time, as gradients of long rows leave few registers.
    const HALVES: bool = L > 32 && (KEYS || MODIFIES);
    const OWNED: u32 = STAGES * Self::PAIR;
    /// The terms of a stage's queries, where keys are owned.
    const TERM_BYTES: u32 = if KEYS { BLOCK * TERMS as u32 * 4 } else { 0 };
    const TERMS: u32 = Self::OWNED + if Self::HOLDS { 0 } else { GROUPS * Self::PAIR };

    /// Works out the gradients of the warp's 16 rows, and writes them.
    ///
    /// # Safety
    /// The whole thread block is here; operands and entries are live.
    #[inline(always)]
    unsafe fn differentiate<G: Gpu>(work: &Work<T, G>, warp: u32) {
        let (gpu, group) = (work.gpu, warp / 4);
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
                place = place.next(work.count);
                next = Seen::load(gpu, masks, (place.index, work.count), group);
                if now.mask != BlockMask::EMPTY {
                    let block = ScoreBlock {
                        head: here.head,
                        index: here.index,
                        warp,
                        column: 0,
                        bits: now.word,
                        terms: Self::TERMS + stage * Self::TERM_BYTES,
                    };
                    let is_full = now.mask == BlockMask::FULL;
                    let sums = (&mut sums[0], &mut values[0]);
                    if Self::HALVES {
                        let block = (&block, is_full, stage);
                        Self::multiply_halves(work, block, &held, &terms, sums);
                    } else {
                        Self::multiply::<G, SCORES>(work, (&block, is_full, stage), &held, &terms, sums);
                    }
                }
                stage = if stage + 1 == STAGES { 0 } else { stage + 1 };
            }
            // Nothing is under way when the thread block ends.
            gpu.copy_async_wait::<0>();
            let [by_slopes, of_values] = work.gradients::<KEYS>();
            let by_slopes = Gradient { sums: &sums, factor: work.operands.factor, matrix: by_slopes };
            let of_values = Gradient { sums: &values, factor: 1.0, matrix: of_values };
            let again = work.write::<KEYS, L, 1>(warp, &by_slopes, KEYS.then_some(&of_values));
            work.work_out_anew::<KEYS, MODIFIES>((warp, again, Self::PANELS), [true, KEYS], &terms);
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
        let (gpu, dim) = (work.gpu, work.operands.shape.dim);
        let threads = (gpu.thread_idx_x() % WARPGROUP, WARPGROUP);
        for matrix in 0..2 {
            let to = Self::OWNED + group * Self::PAIR + matrix as u32 * Self::MATRIX;
            let first = work.first + group * BLOCK;
            // SAFETY: as promised by the caller.
            unsafe {
                work.owned::<KEYS>().copy(gpu, matrix, (first, dim), (to, Self::PANELS), threads);
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
                let first = BlockEntry::load_key_block(gpu, work.entries, place.index, work.count) * BLOCK;
                let (side, threads) =
                    (work.streamed::<KEYS>(place.head), (gpu.thread_idx_x(), Self::THREADS));
                for matrix in 0..2 {
                    let to = stage * Self::PAIR + matrix as u32 * Self::MATRIX;
                    side.copy(gpu, matrix, (first, dim), (to, Self::PANELS), threads);
                }
                if KEYS {
                    work.copy_terms(
                        place.head,
                        (first, BLOCK),
                        Self::TERMS + stage * Self::TERM_BYTES,
                        threads,
                    );
                }
                *place = place.next(work.count);
            }
        }
        gpu.copy_async_commit();
    }

    /// Adds what a block gives: one half of its columns after the other.
    ///
    /// # Safety
    /// As for [`multiply`](Self::multiply).
    #[inline(always)]
    unsafe fn multiply_halves<G: Gpu>(
        work: &Work<T, G>,
        (block, is_full, stage): (&ScoreBlock, bool, u32),
        held: &[[[u32; 4]; SLICES]; 2],
        terms: &RowTerms,
        (sums, values): (&mut [f32; L], &mut [f32; L]),
    ) {
        // The compiler is not to see how many they are: it would mix both.
        for half in 0..work.gpu.warp_shuffle_idx(FULL_WARP, 2, 0, WARP) {
            let column = half * BLOCK / 2;
            let half = ScoreBlock {
                column,
                bits: block.bits >> (half * SCORES as u32 / 2),
                terms: block.terms + column * TERMS as u32 * 4,
                ..*block
            };
            // SAFETY: as promised by the caller.
            unsafe {
                Self::multiply::<G, { SCORES / 2 }>(
                    work,
                    (&half, is_full, stage),
                    held,
                    terms,
                    (sums, values),
                );
            }
        }
    }

    /// Adds what 2·`N` columns of a block give.
    ///
    /// # Safety
    /// The stage is full; the whole warp is here.
    #[inline(always)]
    unsafe fn multiply<G: Gpu, const N: usize>(
        work: &Work<T, G>,
        (block, is_full, stage): (&ScoreBlock, bool, u32),
        held: &[[[u32; 4]; SLICES]; 2],
        terms: &RowTerms,
        (sums, values): (&mut [f32; L], &mut [f32; L]),
    ) {
        let gpu = work.gpu;
        // With long rows, or changed scores, by way of a shuffle, so that no register holds through all steps the places that are made of it.
        let lane = if L > 32 || MODIFIES {
            gpu.warp_shuffle_idx(FULL_WARP, gpu.lane_id(), gpu.lane_id(), WARP)
        } else {
            gpu.lane_id()
        };
        let streamed = [0, 1].map(|matrix| stage * Self::PAIR + matrix * Self::MATRIX + block.column * ROW);
        let owned = Self::OWNED + block.warp / 4 * Self::PAIR;
        let own = |matrix: usize| {
            move |slice: usize| {
                if Self::HOLDS {
                    return held[matrix][slice];
                }
                let first = block.warp % 4 * WARP_ROWS;
                // SAFETY: as promised by the caller: it came with the first stage.
                unsafe { load_slice(gpu, lane, owned + matrix as u32 * Self::MATRIX, first, slice) }
            }
        };
        // SAFETY: as promised by the caller.
        unsafe {
            let mut s = [0.0; N];
            if !is_full {
                s = seen([block.bits, 0]);
            }
            multiply_rows::<G, T, N>(gpu, lane, SLICES, own(0), streamed[0], &mut s);
            let mut weights = [[0; 2]; SCORES / 2];
            if MODIFIES {
                work.weigh_modified::<KEYS, N>(block, terms, &mut s, &mut weights);
            } else {
                let scale = work.operands.shape.scale;
                weigh::<G, T, KEYS, N>(gpu, scale, block.terms, terms, &mut s, &mut weights);
            }
            if KEYS {
                multiply_columns::<G, T, L>(gpu, lane, &weights[..N / 2], streamed[1], values);
            }
            let mut products = [0.0; N];
            multiply_rows::<G, T, N>(gpu, lane, SLICES, own(1), streamed[1], &mut products);
            let slopes = slope::<G, T, KEYS, N>(gpu, block.terms, terms, &s, &mut products);
            multiply_columns::<G, T, L>(gpu, lane, &slopes[..N / 2], streamed[0], sums);
        }
    }
}
