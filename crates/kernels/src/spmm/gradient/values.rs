//! The gradient of A's values: SDDMM along the nonzeros that won.
//!
//! ```text
//!   gradient, winners  M×N      B  K×N      A group of LANES lanes has nonzero p, in row i and column k. It goes along row i
//!  ┌─────────────────────┐   ┌───────┐      of the winners, which other nonzeros of the row read too, so that L1 has it. Where
//! i│ p . p q . p . q p p │  k│ ▒ ▒ ▒ │      p stands there, the gradient times B's element of row k is added. The lanes add up by
//!  └─────────────────────┘   └───────┘      shuffles, always in the same order. Rows of any length are alike: a nonzero is a
//!                                           group's work.
//! ```
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, WARP};

use super::Winning;
use crate::common::add_across_lanes;
use crate::spmm::{NO_WINNER, Scheme, Tile};
use crate::{DeviceIndex, DeviceValue, Kernel};

/// The gradient of A's values, a group of lanes a nonzero.
#[derive(Debug)]
pub struct ValuesGradient<T, I>(PhantomData<(T, I)>);

/// What [`ValuesGradient`] takes. The grid's x is [`Tile::block_rows`] nonzeros a block, its z the batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ValuesGradientArgs<T, I> {
    /// The row of each nonzero.
    pub rows: GlobalPtr<u32>,
    /// Its column.
    pub columns: GlobalPtr<I>,
    /// C's gradient and winners.
    pub winning: Winning<T>,
    /// B, K×N.
    pub b: GlobalPtr<T>,
    /// Elements from one B of the batch to the next.
    pub b_batch: u64,
    /// A gradient for each nonzero.
    pub out: GlobalMut<T>,
    /// Elements from those of one product to the next.
    pub out_batch: u64,
    /// Nonzeros.
    pub nonzeros: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Bytes from one row of B to the next.
    pub b_stride_bytes: u32,
}

/// Lanes of a nonzero.
const LANES: u32 = 16;
/// Warps of a block.
const WARPS: u32 = 8;
/// Winners that a lane has under way together.
const AT_ONCE: usize = 4;

impl<T: DeviceValue, I: DeviceIndex> Kernel for ValuesGradient<T, I> {
    type Args = ValuesGradientArgs<T, I>;
    type Tile = Tile;

    const TILE: Tile = Tile {
        value: T::TYPE,
        index: I::TYPE,
        vector: 1,
        block_rows: WARPS * WARP / LANES,
        block_columns: 1,
        scheme: Scheme::Gradient,
    };
    const THREADS: u32 = WARPS * WARP;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ValuesGradientArgs<T, I>) {
        let (lane, group) = (gpu.thread_idx_x() % LANES, gpu.thread_idx_x() / LANES);
        let at = gpu.block_idx_x() * Self::TILE.block_rows + group;
        let batch = gpu.block_idx_z();
        let winning = args.winning.of_product(batch);
        let mut sum = 0.0;
        if at < args.nonzeros {
            // SAFETY: each nonzero has a row and a column, of which C and B have elements in `n` columns.
            unsafe {
                let [row] = gpu.load_readonly(args.rows.add(at as usize));
                let [column]: [I; 1] = gpu.load_readonly(args.columns.add(at as usize));
                let b = args.b.add((u64::from(batch) * args.b_batch) as usize);
                let b = b.add_rows(column.widen(), args.b_stride_bytes);
                let winners = winning.winners_of(row);
                let mut first = lane;
                while first < args.n {
                    let mut won = [NO_WINNER; AT_ONCE];
                    for (i, won) in won.iter_mut().enumerate() {
                        let column = first + i as u32 * LANES;
                        if column < args.n {
                            [*won] = gpu.load_readonly(winners.add(column as usize));
                        }
                    }
                    for (i, &won) in won.iter().enumerate() {
                        if won == at {
                            let column = first + i as u32 * LANES;
                            let [x]: [T; 1] = gpu.load_readonly(b.add(column as usize));
                            sum = gpu.fma(winning.gradient_at(gpu, row, column), x.to_f32(gpu), sum);
                        }
                    }
                    first += AT_ONCE as u32 * LANES;
                }
            }
        }
        // All lanes are here again, those past the last nonzero too.
        let sum = add_across_lanes(gpu, FULL_WARP, [1, LANES], sum);
        if at < args.nonzeros && lane == 0 {
            let to = args.out.add((u64::from(batch) * args.out_batch) as usize + at as usize);
            // SAFETY: the nonzero is this group's alone.
            unsafe { gpu.store(to, [T::from_f32(gpu, sum)]) };
        }
    }
}
