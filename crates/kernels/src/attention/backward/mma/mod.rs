//! Gradients by warps (mma.sync of sm_80).
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
//! code. In 16 bits what a warp owns stays in registers; but where gradients of long rows have these, it is loaded from panels each step. So it
//! is in `f32`, of which a number becomes two of bfloat16, and a step is half a block: it streams by way of registers ([`parts`]). With more than
//! 128 elements a row a step is a quarter of a block, and warps 0–3 make dV of 64 keys, warps 4–7 dK of the same: both make P.
mod copies;
mod parts;

use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, Gpu, WARP};

use super::super::tile_rows::seen;
use super::super::warp_products::{PANEL, ROW, WARP_ROWS, load_slice, multiply_columns, multiply_rows};
use super::super::wgmma::{BLOCK, BlockArgs, WgmmaValue};
use super::super::{Scheme, Tile};
use super::begin::RowTerms;
use super::modified::ScoreBlock;
use super::weights::{slope, weigh};
use super::write::Gradient;
use super::{BackwardOperands, SCORES, TERMS, WARPGROUP, Work};
use crate::{Bounds, Kernel};

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

/// Where a thread block is among its blocks: at an entry of the tile, for one of the heads that are gone through with all entries each (where
/// queries are owned, there is one), and at one of the parts of its block that a step is of.
#[derive(Clone, Copy)]
struct Cursor<const KEYS: bool> {
    index: u32,
    head: u32,
    part: u32,
}

impl<const KEYS: bool> Cursor<KEYS> {
    const FIRST: Self = Self { index: 0, head: 0, part: 0 };

    /// The next of so many entries, which have so many steps each.
    #[inline(always)]
    const fn next(self, count: u32, steps: u32) -> Self {
        if self.part + 1 < steps {
            return Self { part: self.part + 1, ..self };
        }
        if KEYS && self.index + 1 == count {
            Self { index: 0, head: self.head + 1, part: 0 }
        } else {
            Self { index: self.index + 1, part: 0, ..self }
        }
    }

    /// Whether there is one.
    #[inline(always)]
    const fn exists(self, count: u32, heads: u32) -> bool {
        self.index < count && (!KEYS || self.head < heads)
    }
}

impl<
    T: WgmmaValue,
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
        assert!(L.is_multiple_of(32) && 8 * SLICES == L && GROUPS <= 2 && STAGES <= 3);
        assert!(T::PARTS > 1 || STAGES > 1, "copies are under way while a stage is read");
        assert!(
            L <= 64 || T::PARTS == 1 && GROUPS == 1 && STAGES == 2,
            "a panel has four quarters of blocks"
        );
        assert!(T::PARTS == 1 || GROUPS == 1 && STAGES <= Self::STEPS, "four warps split what streams");
        // Some GPUs of sm_8x have no more.
        assert!(Self::SHARED_BYTES <= 99 * 1024, "a block of sm_86 has 99 KiB");
        Tile {
            value: T::TYPE,
            vector: 16 / size_of::<T>() as u32,
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
    const THREADS: u32 = Self::WARPGROUPS * WARPGROUP;
    const SHARED_BYTES: u32 = Self::TERMS + Self::TERM_SLOTS * Self::TERM_BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 0 };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        // SAFETY: the table has a record for each tile of the grid, and describes live memory.
        unsafe {
            let work = Work::of::<KEYS>(gpu, &args);
            if T::PARTS > 1 {
                Self::differentiate_parts(&work, warp);
            } else {
                Self::differentiate(&work, warp);
            }
        }
    }
}

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
    /// Panels of a row, and bytes of 64 rows of a part of a matrix, and of two matrices.
    const PANELS: u32 = L as u32 / 32;
    const MATRIX: u32 = Self::PANELS * PANEL;
    const PAIR: u32 = 2 * Self::MATRIX;
    /// Warps, in fours.
    const WARPGROUPS: u32 = if Self::DIVIDES { 2 } else { GROUPS };
    /// Whether four warps make the gradient of V and four that of K, of the same 64 keys, as the rows are too long for both.
    const DIVIDES: bool = KEYS && L > 64;
    /// Parts of a block that a step each is of, and their rows: a quarter of long rows, and half of numbers in two parts.
    const STEPS: u32 = if L > 64 { 4 } else { T::PARTS };
    const ROWS: u32 = BLOCK / Self::STEPS;
    /// Bytes of a step's rows in a panel, after which come those of the second part.
    const REST: u32 = Self::ROWS * ROW;
    /// Whether what is owned stays in registers; if not, it lies behind what streams.
    const HOLDS: bool = T::PARTS == 1 && (L == 32 || !KEYS && L == 64);
    /// Whether scores of half a step are made at a time, as gradients of long rows leave few registers.
    const HALVES: bool = L == 64 && (KEYS || MODIFIES && T::PARTS == 1);
    const OWNED: u32 = if L > 64 { Self::MATRIX } else { STAGES * Self::PAIR };
    const OWNED_PAIR: u32 = T::PARTS * Self::PAIR;
    /// The terms of a step's queries, where keys are owned: as many as stages, but of numbers in parts two, for neighbouring steps.
    const TERM_BYTES: u32 = if KEYS { Self::ROWS * TERMS as u32 * 4 } else { 0 };
    const TERM_SLOTS: u32 = if T::PARTS > 1 { 2 } else { STAGES };
    const TERMS: u32 = Self::OWNED + if Self::HOLDS { 0 } else { GROUPS * Self::OWNED_PAIR };

    /// Where a stage has what streams of a matrix. Panels have 64 rows: those of a step of both parts; or, of quarters of blocks, of both matrices
    /// and stages.
    #[inline(always)]
    const fn streamed(stage: u32, matrix: u32) -> u32 {
        if L > 64 { (2 * stage + matrix) * Self::REST } else { stage * Self::PAIR + matrix * Self::MATRIX }
    }

    /// Writes the warp's 16 rows of gradients; those that are not finite it works out anew.
    ///
    /// # Safety
    /// As for [`differentiate`](Self::differentiate).
    #[inline(always)]
    unsafe fn write<G: Gpu>(
        work: &Work<T, G>,
        warp: u32,
        terms: &RowTerms,
        (sums, values): (&[[f32; L]; 1], &[[f32; L]; 1]),
    ) {
        let [by_slopes, of_values] = work.gradients::<KEYS>();
        let gradient = Gradient { sums, factor: work.operands.factor, matrix: by_slopes };
        let of_values = Gradient { sums: values, factor: 1.0, matrix: of_values };
        // SAFETY: as promised by the caller.
        unsafe {
            if !Self::DIVIDES {
                let again = work.write::<KEYS, L, 1>(warp, &gradient, KEYS.then_some(&of_values));
                work.work_out_anew::<KEYS, MODIFIES>((warp, again, Self::PANELS), [true, KEYS], terms);
            } else if Self::makes_values(work.gpu) {
                // What a warp makes is in the first sums.
                let again = work.write::<KEYS, L, 1>(warp, &Gradient { sums, ..of_values }, None);
                work.work_out_anew::<KEYS, MODIFIES>((warp, again, Self::PANELS), [false, true], terms);
            } else {
                let again = work.write::<KEYS, L, 1>(warp, &gradient, None);
                work.work_out_anew::<KEYS, MODIFIES>((warp, again, Self::PANELS), [true, false], terms);
            }
        }
    }

    /// Whether this warp makes the gradient of V, where the work is divided.
    #[inline(always)]
    fn makes_values<G: Gpu>(gpu: G) -> bool {
        gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP) < WARPGROUP / WARP
    }

    /// Adds what 4·`N` columns of a block give: one half of them after the other.
    ///
    /// # Safety
    /// As for [`multiply`](Self::multiply).
    #[inline(always)]
    unsafe fn multiply_halves<G: Gpu, const N: usize>(
        work: &Work<T, G>,
        (block, is_full, stage): (&ScoreBlock, bool, u32),
        held: &[[[u32; 4]; SLICES]; 2],
        terms: &RowTerms,
        (sums, values): (&mut [f32; L], &mut [f32; L]),
    ) {
        // The compiler is not to see how many they are: it would mix both.
        for half in 0..work.gpu.warp_shuffle_idx(FULL_WARP, 2, 0, WARP) {
            let column = half * 2 * N as u32;
            let half = ScoreBlock {
                column: block.column + column,
                bits: block.bits >> (half * N as u32),
                terms: block.terms + column * TERMS as u32 * 4,
                ..*block
            };
            // SAFETY: as promised by the caller.
            unsafe {
                Self::multiply::<G, N>(work, (&half, is_full, stage), held, terms, (sums, values));
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
        // A step that is part of a block has a stage of its own.
        let row = if Self::STEPS > 1 { block.column % Self::ROWS } else { block.column };
        let streamed = [0, 1].map(|matrix| (Self::streamed(stage, matrix) + row * ROW, Self::REST));
        let owned = if Self::STEPS > 1 {
            // There is one group. By way of a shuffle, as the lane.
            gpu.warp_shuffle_idx(FULL_WARP, Self::OWNED, 0, WARP)
        } else {
            Self::OWNED + block.warp / 4 * Self::OWNED_PAIR
        };
        let own = |matrix: usize| {
            move |slice: usize| {
                if Self::HOLDS {
                    return [held[matrix][slice], [0; 4]];
                }
                let first = block.warp % 4 * WARP_ROWS;
                let own = (owned + matrix as u32 * T::PARTS * Self::MATRIX, Self::MATRIX);
                // SAFETY: as promised by the caller: it came with the first stage.
                unsafe { load_slice::<G, T>(gpu, lane, own, first, slice) }
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
            if Self::DIVIDES && Self::makes_values(gpu) {
                multiply_columns::<G, T, L>(gpu, lane, &weights[..N / 2], streamed[1], sums);
                return;
            }
            if KEYS && !Self::DIVIDES {
                multiply_columns::<G, T, L>(gpu, lane, &weights[..N / 2], streamed[1], values);
            }
            let mut products = [0.0; N];
            multiply_rows::<G, T, N>(gpu, lane, SLICES, own(1), streamed[1], &mut products);
            let slopes = slope::<G, T, KEYS, N>(gpu, block.terms, terms, &s, &mut products);
            multiply_columns::<G, T, L>(gpu, lane, &slopes[..N / 2], streamed[0], sums);
        }
    }
}
