//! Values of `f32` in TF32: Cᵀ += Bᵀ·Aᵀ, with 64 columns of B by each warpgroup, from registers.
//!
//! Of TF32, tensor cores read from shared memory only what lies along K. A does, in panels of 128 rows by 32 columns; B's rows lie
//! across. So B comes first, through registers: a lane loads two neighbouring columns of a row at a time, which stand for rows
//! `g` and `g + 8` of the product.
//!
//! ```text
//!              A, a panel          B, rows of a stage, swizzled by 8 columns from row to row
//!            32 columns of K         k   ┌──────────────────┐   lane 4·g + t:
//!           ┌──────────────┐         ▼   │  . . g g . . . . │ ◄── row t      (2 columns)
//!  128 rows │ . 5 . . 7 .  │             │  . . g g . . . . │ ◄── row t + 4  (2 columns)
//!           │ . . 1 . . .  │             └──────────────────┘
//!           └──────────────┘              64 columns a warpgroup, 16 a warp
//! ```
//!
//! Where all three products are wanted ([`SplitTf32`](crate::SplitTf32)), what TF32 leaves out of A lies behind the panel, and of B
//! it is worked out in registers.
use core::marker::PhantomData;

use lacuna_gpu::{Gpu, SharedPtr};

use super::{PackShape, ROWS, WARP_PART, WARPS, WarpgroupOperand, WidePack};
use crate::common::{nearest_tf32, swap, tf32_rest};
use crate::spmm::mma::{Stages, TileArgs};
use crate::{Arithmetic, Products};

/// Columns of A in a chunk.
const CHUNK: u32 = 32;
/// Columns of A that a product takes.
const DEPTH: u32 = 8;
/// Accumulators of a thread: half as many as a tile has rows.
const L: usize = 64;

/// Tiles of 128 rows and 64·`M` columns.
#[derive(Debug)]
pub struct Singles<P, const M: u32>(PhantomData<P>);

impl<P: Products, const M: u32> Singles<P, M> {
    /// Bytes of a row of B in a stage.
    const B_ROW: u32 = M * ROWS * 4;

    /// What a lane has of 8 rows of B, of its two columns: of the first rows both, and of those four later.
    ///
    /// # Safety
    /// The rows lie in the stage.
    #[inline(always)]
    unsafe fn load<G: Gpu>(gpu: G, own: u32, rows: u32) -> [f32; 4] {
        let [upper, lower] =
            [0, 4].map(|row| SharedPtr::<f32>::from_offset(own + (rows + row) * Self::B_ROW));
        // SAFETY: as promised by the caller.
        unsafe {
            let ([a, b], [c, d]) = (gpu.shared_load(upper), gpu.shared_load(lower));
            [a, b, c, d]
        }
    }

    /// What a lane has of the rows of a chunk.
    ///
    /// # Safety
    /// The rows lie in the stage.
    #[inline(always)]
    unsafe fn load_chunk<G: Gpu>(gpu: G, own: u32, rows: u32) -> [[f32; 4]; (CHUNK / DEPTH) as usize] {
        // SAFETY: as promised by the caller.
        let load = |eight: u32| unsafe { Self::load(gpu, own, rows + eight * DEPTH) };
        [load(0), load(1), load(2), load(3)]
    }

    /// Starts the products of a chunk, whose part of A lies at `a`. No loop: it would be too long to unroll.
    ///
    /// # Safety
    /// The chunk lies in the stage; the whole warpgroup is here.
    #[inline(always)]
    unsafe fn start_chunk<G: Gpu>(
        gpu: G,
        a: u32,
        rows: &[[f32; 4]; (CHUNK / DEPTH) as usize],
        accumulators: &mut [f32; L],
    ) {
        // SAFETY: as promised by the caller.
        unsafe {
            Self::start(gpu, a, rows[0], accumulators);
            Self::start(gpu, a + 4 * DEPTH, rows[1], accumulators);
            Self::start(gpu, a + 8 * DEPTH, rows[2], accumulators);
            Self::start(gpu, a + 12 * DEPTH, rows[3], accumulators);
        }
    }

    /// Starts the products of 8 rows of B with as many columns of A, which lie at `a`.
    ///
    /// # Safety
    /// The columns lie in the stage; the whole warpgroup is here.
    #[inline(always)]
    unsafe fn start<G: Gpu>(gpu: G, a: u32, rows: [f32; 4], accumulators: &mut [f32; L]) {
        let a = SharedPtr::from_offset(a);
        // SAFETY: as promised by the caller. The rest of A lies behind its panel.
        unsafe {
            if P::SPLIT {
                let [p, q, r, s] = rows;
                let upper = [nearest_tf32(p), nearest_tf32(q), nearest_tf32(r), nearest_tf32(s)];
                let lower = [tf32_rest(p), tf32_rest(q), tf32_rest(r), tf32_rest(s)];
                gpu.warpgroup_mma_tf32_registers(accumulators, lower, a);
                gpu.warpgroup_mma_tf32_registers(accumulators, upper, a.add(WidePack::<P>::PART_BYTES / 4));
                gpu.warpgroup_mma_tf32_registers(accumulators, upper, a);
            } else {
                gpu.warpgroup_mma_tf32_registers(accumulators, rows, a);
            }
        }
    }
}

impl<P: Products, const M: u32> WarpgroupOperand<L> for Singles<P, M> {
    type Value = f32;
    const ARITHMETIC: Arithmetic = P::ARITHMETIC;
    const ROWS: u32 = 2 * L as u32;
    const COLUMNS: u32 = M * ROWS;
    const VECTOR: u32 = 4;
    const WARPGROUPS: u32 = M;
    const WARPS_ALONG_ROWS: bool = false;
    const CHUNK_BYTES: u32 = WidePack::<P>::UNIT_BYTES;
    const PANEL_ROW: u32 = Self::B_ROW;
    const OVERLAPS: bool = false;

    #[inline(always)]
    fn swizzle(row: u32) -> u32 {
        row % 4 * 32
    }

    #[inline(always)]
    unsafe fn multiply<G: Gpu, S: Stages>(gpu: G, [a, b]: [u32; 2], part: u32, accumulators: &mut [f32; L]) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        let column = part * ROWS + gpu.thread_idx_x() / 32 % WARPS * WARP_PART + 2 * g;
        let own = b + t * Self::B_ROW + ((column * 4) ^ Self::swizzle(t));
        // SAFETY: rows of A and B lie in the stage.
        unsafe {
            // All loads come before the first product.
            let first = Self::load_chunk(gpu, own, 0);
            let second = if S::CHUNKS > 1 { Self::load_chunk(gpu, own, CHUNK) } else { first };
            gpu.warpgroup_arrive();
            Self::start_chunk(gpu, a, &first, accumulators);
            if S::CHUNKS > 1 {
                Self::start_chunk(gpu, a + Self::CHUNK_BYTES, &second, accumulators);
            }
        }
        gpu.warpgroup_commit();
    }

    /// A lane has two neighbouring columns, and of each 8 rows two neighbours. Two lanes exchange columns for rows, and four write 64
    /// bytes of a row together.
    #[inline(always)]
    unsafe fn store<G: Gpu>(
        gpu: G,
        args: &TileArgs<f32>,
        batch: u32,
        [row, column]: [u32; 2],
        warp: u32,
        accumulators: &[f32; L],
    ) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        let row = row + 2 * t + g % 2;
        let column = column + warp * WARP_PART + g / 2 * 4;
        for (eight, accumulators) in accumulators.as_chunks::<4>().0.iter().enumerate() {
            let [a, b, c, d] = *accumulators;
            let [left, right] = swap::<G, 4, _, _>(gpu, [a, c], [b, d]);
            let row = row + eight as u32 * 8;
            if row < args.rows && column < args.n {
                let neighbours = [left[0], left[1], right[0], right[1]];
                // SAFETY: as promised by the caller.
                unsafe { args.output.store(gpu, row, column, batch, neighbours) };
            }
        }
    }
}
