//! What is multiplied, and how.
//!
//! A lane has 16 bytes of each row: of `f32` the columns 4t to 4t+3 of 16, of 16-bit values 8t to 8t+7 of 32. mma accumulators over
//! K, so any order of it will do if both sides agree.
use lacuna_gpu::{Gpu, Scalar};

use super::NT;
use crate::common::Corrections;
use crate::{Half, HalfValue, Operand, Products, Single};

/// Operands of [`MmaTiles`](super::MmaTiles), and how warps multiply them.
pub trait TileOperand: Operand {
    /// What registers hold: a value, or two of 16 bits.
    type Word: Scalar + Default;
    /// Values of K that a stage has.
    const STEP: u32 = 8 * Self::PIECE;
    /// Whether tensor cores take less than the whole of a value.
    const CUTS: bool;

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
    const CUTS: bool = true;

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
        let corrections = Corrections::of(gpu, x);
        for (n, [low, high]) in w.iter().enumerate() {
            let w = [[low[0], low[1]], [high[0], high[1]], [low[2], low[3]], [high[2], high[3]]];
            corrections.add(gpu, w, n, accumulators);
        }
    }
}

impl<T: HalfValue> TileOperand for Half<T> {
    type Word = u32;
    const CUTS: bool = false;

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
