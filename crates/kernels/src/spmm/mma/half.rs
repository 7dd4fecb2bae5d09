//! Tiles of 16-bit values.
//!
//! A stage holds BM rows of A ([`rows`](super::rows)), each WK chunks of 64 values, and 64·WK rows of BN values of B. Those
//! of A are swizzled, and those of B 16 bytes longer than that, so that the eight rows of a matrix load lie in different
//! banks.
use lacuna_gpu::{Gpu, SharedPtr};

use super::TileArgs;
use super::operand::{Consumer, Stage, TileOperand};
use super::reduction::Accumulators;
use super::value::{TILE_ROW, TileValue};
use crate::{Half, HalfValue};

impl<T: HalfValue + TileValue> TileOperand for Half<T> {
    const B_PADDING: u32 = 8;
    const LOADS_TWO_AHEAD: bool = false;

    #[inline(always)]
    fn b_column(_: u32, column: u32) -> u32 {
        column
    }

    #[inline(always)]
    unsafe fn consume<G: Gpu, S: Stage, const RT: usize, const NT: usize>(
        gpu: G,
        cols: u32,
        at: Consumer,
        accumulators: &mut Accumulators<RT, NT>,
    ) {
        let lane = gpu.lane_id();
        let first = at.m * RT as u32 * 8 + lane % 8;
        let a = first * S::SLICES * TILE_ROW + at.k * TILE_ROW + ((lane / 8 * 16) ^ T::swizzle(lane % 8));
        let row = at.k * S::CHUNK + lane % 8 + lane / 16 * 8;
        let b = row * S::B_ROW + at.n * NT as u32 * 16 + lane / 8 % 2 * 8;
        let mut pipeline = S::pipeline(cols);
        if pipeline.is_done() {
            return;
        }
        pipeline.wait_full(gpu);
        loop {
            let stage = pipeline.stage;
            let start = stage * S::BYTES;
            let a = start + a;
            let b = SharedPtr::<u16>::from_offset(start + S::A_BYTES).add(b);
            // SAFETY: the stage is full.
            unsafe {
                multiply::<_, T, S, RT, NT>(gpu, a, b, accumulators);
                multiply::<_, T, S, RT, NT>(
                    gpu,
                    a ^ (TILE_ROW / 2),
                    b.add(S::CHUNK / 2 * S::B_ROW),
                    accumulators,
                );
            }
            pipeline.next(gpu);
            pipeline.release(gpu, stage);
            if pipeline.is_done() {
                return;
            }
        }
    }

    /// A lane has, of each 8 rows, two, and of each 16 columns two, eight apart.
    #[inline(always)]
    unsafe fn store<G: Gpu, const RT: usize, const NT: usize>(
        gpu: G,
        args: &TileArgs<T>,
        batch: u32,
        [row, column]: [u32; 2],
        accumulators: &Accumulators<RT, NT>,
    ) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        for (r, accumulators) in accumulators.iter().enumerate() {
            for (n, sum) in accumulators.iter().enumerate() {
                for (i, sum) in sum.iter().enumerate() {
                    let row = row + r as u32 * 8 + 2 * t + i as u32 % 2;
                    let column = column + n as u32 * 16 + i as u32 / 2 * 8 + g;
                    if row < args.rows && column < args.n {
                        // SAFETY: as promised by the caller.
                        unsafe { args.output.store(gpu, row, column, batch, [*sum]) };
                    }
                }
            }
        }
    }
}

/// Adds the products of 32 columns of A.
///
/// # Safety
/// The stage is full.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "accumulators are indexed by rows first")]
unsafe fn multiply<G: Gpu, T: HalfValue, S: Stage, const RT: usize, const NT: usize>(
    gpu: G,
    a: u32,
    b: SharedPtr<u16>,
    accumulators: &mut Accumulators<RT, NT>,
) {
    let mut x = [[0; 4]; RT];
    // SAFETY: rows of A and B lie in the stage.
    unsafe {
        for (r, x) in x.iter_mut().enumerate() {
            let from = SharedPtr::from_offset(a + r as u32 * 8 * S::SLICES * TILE_ROW);
            *x = gpu.shared_load_matrices::<false>(from);
        }
        for half in 0..2 {
            for n in 0..NT {
                let from = b.add(half as u32 * 16 * S::B_ROW + n as u32 * 16);
                let w = gpu.shared_load_matrices::<true>(from);
                for r in 0..RT {
                    accumulators[r][n] =
                        T::mma(gpu, w, [x[r][2 * half], x[r][2 * half + 1]], accumulators[r][n]);
                }
            }
        }
    }
}
