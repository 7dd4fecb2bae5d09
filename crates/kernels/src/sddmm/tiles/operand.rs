//! What is multiplied, and how.
//!
//! A lane has 16 bytes of each row: of `f32` the columns 4t to 4t+3 of 16, of 16-bit values 8t to 8t+7 of 32. mma sums over
//! K, so any order of it will do if both sides agree.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, Scalar, SharedPtr};

use super::NT;
use crate::common::{pack, pack_lo};
use crate::{Arithmetic, DeviceValue, HalfValue, Products};

/// The operands of [`Tiles`](super::Tiles): the type of their values, and how tensor cores multiply it.
pub trait Operand: Send + Sync + 'static {
    /// Type of A's, B's and D's values.
    type Value: DeviceValue;
    /// What registers hold: a value, or two of 16 bits.
    type Word: Scalar + Default;
    /// Which arithmetic this is.
    const ARITHMETIC: Arithmetic;
    /// Values of 16 bytes.
    const PIECE: u32;
    /// Values of K that a stage has.
    const STEP: u32 = 8 * Self::PIECE;
    /// Whether tensor cores take less than the whole of a value.
    const CUTS: bool;

    /// Starts copying 16 bytes, or zeros.
    ///
    /// # Safety
    /// As [`Gpu::copy_async_or_zero`].
    unsafe fn copy<G: Gpu>(gpu: G, to: SharedPtr<Self::Value>, from: GlobalPtr<Self::Value>, valid: bool);

    /// Adds the products of 64 bytes of `8·RT` rows of A and 32 rows of B; `w[n]` is a lane's part of B's rows g and g+8 of
    /// sixteen.
    fn multiply<G: Gpu, const RT: usize>(
        gpu: G,
        x: &[[Self::Word; 4]; RT],
        w: &[[[Self::Word; 4]; 2]; NT],
        sums: &mut [[[f32; 4]; NT]; RT],
    );
}

/// `f32` values, with products `P`: [`Split`](crate::Split) or [`Tf32`](crate::Tf32).
#[derive(Debug)]
pub struct Single<P>(PhantomData<P>);

impl<P: Products> Operand for Single<P> {
    type Value = f32;
    type Word = f32;
    const ARITHMETIC: Arithmetic = P::ARITHMETIC;
    const PIECE: u32 = 4;
    const CUTS: bool = true;

    #[inline(always)]
    unsafe fn copy<G: Gpu>(gpu: G, to: SharedPtr<f32>, from: GlobalPtr<f32>, valid: bool) {
        // SAFETY: as promised by the caller.
        unsafe { gpu.copy_async_or_zero::<f32, 4>(to, from, valid) }
    }

    #[inline(always)]
    fn multiply<G: Gpu, const RT: usize>(
        gpu: G,
        x: &[[f32; 4]; RT],
        w: &[[[f32; 4]; 2]; NT],
        sums: &mut [[[f32; 4]; NT]; RT],
    ) {
        for (n, [low, high]) in w.iter().enumerate() {
            for h in 0..2 {
                let w = [low[2 * h], high[2 * h], low[2 * h + 1], high[2 * h + 1]];
                for (x, sums) in x.iter().zip(sums.iter_mut()) {
                    sums[n] = gpu.mma_tf32(w, [x[2 * h], x[2 * h + 1]], sums[n]);
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
            for (whole, sums) in whole.iter().zip(sums.iter_mut()) {
                sums[n] = gpu.mma_bf16(lo, *whole, sums[n]);
            }
            let hi = [
                pack(gpu, low[0], low[1]),
                pack(gpu, high[0], high[1]),
                pack(gpu, low[2], low[3]),
                pack(gpu, high[2], high[3]),
            ];
            for (left, sums) in left.iter().zip(sums.iter_mut()) {
                sums[n] = gpu.mma_bf16(hi, *left, sums[n]);
            }
        }
    }
}

/// 16-bit values: [`F16`](crate::F16) or [`Bf16`](crate::Bf16).
#[derive(Debug)]
pub struct Half<T>(PhantomData<T>);

impl<T: HalfValue> Operand for Half<T> {
    type Value = T;
    type Word = u32;
    const ARITHMETIC: Arithmetic = Arithmetic::Half;
    const PIECE: u32 = 8;
    const CUTS: bool = false;

    #[inline(always)]
    unsafe fn copy<G: Gpu>(gpu: G, to: SharedPtr<T>, from: GlobalPtr<T>, valid: bool) {
        // SAFETY: as promised by the caller.
        unsafe { gpu.copy_async_or_zero::<T, 8>(to, from, valid) }
    }

    #[inline(always)]
    fn multiply<G: Gpu, const RT: usize>(
        gpu: G,
        x: &[[u32; 4]; RT],
        w: &[[[u32; 4]; 2]; NT],
        sums: &mut [[[f32; 4]; NT]; RT],
    ) {
        for (n, [low, high]) in w.iter().enumerate() {
            for h in 0..2 {
                let w = [low[2 * h], high[2 * h], low[2 * h + 1], high[2 * h + 1]];
                for (x, sums) in x.iter().zip(sums.iter_mut()) {
                    sums[n] = T::mma(gpu, w, [x[2 * h], x[2 * h + 1]], sums[n]);
                }
            }
        }
    }
}
