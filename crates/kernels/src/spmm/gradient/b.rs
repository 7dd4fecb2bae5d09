//! The gradient of B: the rows of Aᵀ times C's gradient, along the nonzeros that won.
//!
//! ```text
//!   row k of Aᵀ: nonzeros (i, p)            A warp computes row k of the gradient of B over 32 columns, a lane each. It loads 32
//!  ┌──────────────────────────┐             nonzeros of column k of A at a time, a lane each: row i, index p among A's nonzeros,
//!  │ (i₀,p₀) (i₁,p₁) (i₂,p₂)  │             and A's value. Each goes to all lanes by shuffles, four at a time. A lane reads its
//!  └──────────────────────────┘             winner of row i of C: where p stands there, the gradient times A's value is added.
//!        gradient, winners  M×N             Terms are added in the order of i, so that results do not depend on timing.
//! ```
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, WARP};

use super::Winning;
use crate::spmm::{NO_WINNER, Scheme, Tile};
use crate::{DeviceIndex, DeviceValue, Kernel, RowRecord};

/// The gradient of B, a warp a row and 32 columns.
#[derive(Debug)]
pub struct BGradient<T, I>(PhantomData<(T, I)>);

/// What [`BGradient`] takes. The grid is [`Tile::block_rows`] rows of B by [`Tile::block_columns`] columns, its z the batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BGradientArgs<T, I> {
    /// [`RowRecord`]s of Aᵀ's rows.
    pub row_table: GlobalPtr<u32>,
    /// The columns of Aᵀ's nonzeros: rows of A.
    pub rows_of_a: GlobalPtr<I>,
    /// For each nonzero of Aᵀ its index among A's.
    pub permutation: GlobalPtr<u32>,
    /// Values of A.
    pub values: GlobalPtr<T>,
    /// C's gradient and winners.
    pub winning: Winning<T>,
    /// The gradient of B, K×N.
    pub out: GlobalMut<T>,
    /// Elements from one of the batch to the next.
    pub out_batch: u64,
    /// Rows of B.
    pub rows: u32,
    /// Columns of B and C that this launch computes.
    pub n: u32,
    /// Bytes from one row of the gradient of B to the next.
    pub out_stride_bytes: u32,
    /// Elements from the values of one A of the batch to the next. Times the batch, it has 32 bits.
    pub values_batch: u32,
}

/// Warps of a block.
const WARPS: u32 = 8;
/// Nonzeros whose winners a lane has under way together.
const AT_ONCE: usize = 4;

impl<T: DeviceValue, I: DeviceIndex> Kernel for BGradient<T, I> {
    type Args = BGradientArgs<T, I>;
    type Tile = Tile;

    const TILE: Tile = Tile {
        value: T::TYPE,
        index: I::TYPE,
        vector: 1,
        block_rows: WARPS,
        block_columns: WARP,
        scheme: Scheme::Gradient,
    };
    const THREADS: u32 = WARPS * WARP;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: BGradientArgs<T, I>) {
        let index = gpu.block_idx_x() * WARPS + gpu.thread_idx_x() / WARP;
        if index >= args.rows {
            return;
        }
        let (lane, batch) = (gpu.lane_id(), gpu.block_idx_z());
        let column = gpu.block_idx_y() * WARP + lane;
        let winning = args.winning.of_product(batch);
        let skip = (batch * args.values_batch) as usize;
        // SAFETY: the table has a record for each row; Aᵀ's nonzeros are A's, which have values, and rows in C.
        let (row, sum) = unsafe {
            let RowRecord { row, start, end } = RowRecord::load(gpu, args.row_table, index as usize);
            let mut sum = 0.0;
            let mut base = start;
            while base < end {
                let (mut i, mut p, mut value) = (0, NO_WINNER, 0.0);
                let at = (base + lane) as usize;
                if base + lane < end {
                    let [of_a]: [I; 1] = gpu.load_readonly(args.rows_of_a.add(at));
                    [p] = gpu.load_readonly(args.permutation.add(at));
                    let [x]: [T; 1] = gpu.load_readonly(args.values.add(p as usize + skip));
                    (i, value) = (of_a.widen(), x.to_f32(gpu));
                }
                let mut first = 0;
                while first < WARP && base + first < end {
                    let (mut rows, mut nonzeros) = ([0; AT_ONCE], [NO_WINNER; AT_ONCE]);
                    let (mut values, mut won) = ([0.0; AT_ONCE], [NO_WINNER; AT_ONCE]);
                    for j in 0..AT_ONCE {
                        let from = first + j as u32;
                        rows[j] = gpu.warp_shuffle_idx(FULL_WARP, i, from, WARP);
                        nonzeros[j] = gpu.warp_shuffle_idx(FULL_WARP, p, from, WARP);
                        values[j] = gpu.warp_shuffle_idx(FULL_WARP, value, from, WARP);
                        if nonzeros[j] != NO_WINNER && column < args.n {
                            [won[j]] = gpu.load_readonly(winning.winners_of(rows[j]).add(column as usize));
                        }
                    }
                    for j in 0..AT_ONCE {
                        // Where there is no nonzero, nothing was loaded, and both are `NO_WINNER`.
                        if won[j] != NO_WINNER && won[j] == nonzeros[j] {
                            sum = gpu.fma(values[j], winning.gradient_at(gpu, rows[j], column), sum);
                        }
                    }
                    first += AT_ONCE as u32;
                }
                base += WARP;
            }
            (row, sum)
        };
        if column < args.n {
            let out = args.out.add((u64::from(batch) * args.out_batch) as usize);
            // SAFETY: the element is this lane's alone.
            unsafe {
                gpu.store(
                    out.add_rows(row, args.out_stride_bytes).add(column as usize),
                    [T::from_f32(gpu, sum)],
                );
            }
        }
    }
}
