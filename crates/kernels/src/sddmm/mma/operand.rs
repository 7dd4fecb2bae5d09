//! How a warp multiplies operands of each type.
//!
//! A lane has 16 bytes of each row: of `f32` the columns 4t to 4t+3 of 16, of 16-bit values 8t to 8t+7 of 32. mma accumulators over
//! K, so any order of it will do if both sides agree.
use lacuna_gpu::{Gpu, Scalar};

use super::NT;
use crate::common::{pack, pack_lo};
use crate::{Half, HalfValue, Operand, Products, Single};

/// Operands of [`MmaTiles`](super::MmaTiles), and how warps multiply them.
pub trait TileOperand: Operand {
    /// What registers hold: a value, or two of 16 bits.
    type Word: Scalar + Default;
    /// Values of K that a stage has.
    const STEP: u32 = 8 * Self::VECTOR;
    /// Whether tensor cores truncate values: `f32` to TF32.
    const TRUNCATES: bool;

    /// Adds the products of 64 bytes of `8·RT` rows of A and 32 rows of B; `w[n]` is a lane's part of B's rows g and g+8 of
    /// sixteen.
    fn multiply<G: Gpu, const RT: usize>(
        gpu: G,
        x: &[[Self::Word; 4]; RT],
        w: &[[[Self::Word; 4]; 2]; NT],
        accumulators: &mut [[[f32; 4]; NT]; RT],
    );
}

impl<P: Products> TileOperand for Single<P> {
    type Word = f32;
    const TRUNCATES: bool = true;

    #[inline(always)]
    fn multiply<G: Gpu, const RT: usize>(
        gpu: G,
        x: &[[f32; 4]; RT],
        w: &[[[f32; 4]; 2]; NT],
        accumulators: &mut [[[f32; 4]; NT]; RT],
    ) {
        for (n, [low, high]) in w.iter().enumerate() {
            for h in 0..2 {
                let w = [low[2 * h], high[2 * h], low[2 * h + 1], high[2 * h + 1]];
                for (x, accumulators) in x.iter().zip(accumulators.iter_mut()) {
                    accumulators[n] = gpu.mma_tf32(w, [x[2 * h], x[2 * h + 1]], accumulators[n]);
                }
            }
        }
        if !P::SPLIT {
            return;
        }
        let mut whole = [[0; 2]; RT];
        let mut left = [[0; 2]; RT];
        for (r, x) in x.iter().enumerate() {
            whole[r] = [pack(gpu, x[0], x[1]), pack(gpu, x[2], x[3])];
            left[r] = [pack_lo(gpu, x[0], x[1]), pack_lo(gpu, x[2], x[3])];
        }
        for (n, [low, high]) in w.iter().enumerate() {
            let lo = [
                pack_lo(gpu, low[0], low[1]),
                pack_lo(gpu, high[0], high[1]),
                pack_lo(gpu, low[2], low[3]),
                pack_lo(gpu, high[2], high[3]),
            ];
            for (whole, accumulators) in whole.iter().zip(accumulators.iter_mut()) {
                accumulators[n] = gpu.mma_bf16(lo, *whole, accumulators[n]);
            }
            let hi = [
                pack(gpu, low[0], low[1]),
                pack(gpu, high[0], high[1]),
                pack(gpu, low[2], low[3]),
                pack(gpu, high[2], high[3]),
            ];
            for (left, accumulators) in left.iter().zip(accumulators.iter_mut()) {
                accumulators[n] = gpu.mma_bf16(hi, *left, accumulators[n]);
            }
        }
    }
}

impl<T: HalfValue> TileOperand for Half<T> {
    type Word = u32;
    const TRUNCATES: bool = false;

    #[inline(always)]
    fn multiply<G: Gpu, const RT: usize>(
        gpu: G,
        x: &[[u32; 4]; RT],
        w: &[[[u32; 4]; 2]; NT],
        accumulators: &mut [[[f32; 4]; NT]; RT],
    ) {
        for (n, [low, high]) in w.iter().enumerate() {
            for h in 0..2 {
                let w = [low[2 * h], high[2 * h], low[2 * h + 1], high[2 * h + 1]];
                for (x, accumulators) in x.iter().zip(accumulators.iter_mut()) {
                    accumulators[n] = T::mma(gpu, w, [x[2 * h], x[2 * h + 1]], accumulators[n]);
                }
            }
        }
    }
}
