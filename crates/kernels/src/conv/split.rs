//! The parts in which tensor cores multiply numbers.
use lacuna_gpu::{Bf16, CoreMatrices, F16, Gpu, SharedPtr};

use crate::DeviceValue;
use crate::common::bf16_parts;

/// Two numbers, in one or two parts each.
#[derive(Clone, Copy)]
pub struct Parts {
    /// Both, of 16 bits, the first in the lower half; `f32` rounded to bfloat16.
    pub(super) upper: u32,
    /// What that leaves of them, rounded to bfloat16.
    pub(super) lower: u32,
}

/// A value that tensor cores multiply: one of 16 bits as it is, `f32` in two parts.
pub trait MmaValue: DeviceValue {
    /// Parts of a number.
    const PARTS: u32;

    /// Two numbers in their parts; one part is `upper`.
    fn split<G: Gpu>(gpu: G, x: f32, y: f32) -> Parts;

    /// The same of two values, which are not changed where they have 16 bits.
    fn join<G: Gpu>(gpu: G, x: Self, y: Self) -> Parts;

    /// `A·B + C` of parts, by a warp: see [`Gpu::mma_f16`].
    fn mma<G: Gpu>(gpu: G, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];

    /// Starts `sums += A·B` of parts, by a warpgroup: see [`warpgroup_mma_f16_cores`](lacuna_gpu::Hopper::warpgroup_mma_f16_cores).
    ///
    /// # Safety
    /// See there.
    unsafe fn warpgroup_mma<G: Gpu, const L: usize>(
        gpu: G,
        sums: &mut [f32; L],
        a: CoreMatrices,
        b: CoreMatrices,
    );
}

/// Starts the products of 16 channels by a warpgroup, the least first: `a` and `b` are the upper parts, and the lower ones so many bytes further.
///
/// # Safety
/// See [`MmaValue::warpgroup_mma`], for all parts.
#[inline(always)]
pub(super) unsafe fn multiply_parts<G: Gpu, T: MmaValue, const L: usize>(
    gpu: G,
    sums: &mut [f32; L],
    (a, to_lower_a): (CoreMatrices, u32),
    (b, to_lower_b): (CoreMatrices, u32),
) {
    let lower = |matrix: CoreMatrices, bytes: u32| CoreMatrices {
        first: SharedPtr::from_offset(matrix.first.offset() + bytes),
        ..matrix
    };
    // SAFETY: passed on to the caller.
    unsafe {
        if T::PARTS > 1 {
            T::warpgroup_mma(gpu, sums, lower(a, to_lower_a), b);
            T::warpgroup_mma(gpu, sums, a, lower(b, to_lower_b));
        }
        T::warpgroup_mma(gpu, sums, a, b);
    }
}

/// Writes the implementation for a type: its parts, how two numbers become them, and the products of parts.
macro_rules! mma_value {
    ($type:ident, $parts:literal, |$gpu:ident, $x:ident, $y:ident| $split:expr, $join:expr, $mma:ident, $warpgroup_mma:ident) => {
        impl MmaValue for $type {
            const PARTS: u32 = $parts;
            #[inline(always)]
            fn split<G: Gpu>($gpu: G, $x: f32, $y: f32) -> Parts {
                $split
            }
            #[inline(always)]
            fn join<G: Gpu>($gpu: G, $x: Self, $y: Self) -> Parts {
                $join
            }
            #[inline(always)]
            fn mma<G: Gpu>(gpu: G, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
                gpu.$mma(a, b, c)
            }
            #[inline(always)]
            unsafe fn warpgroup_mma<G: Gpu, const L: usize>(
                gpu: G,
                sums: &mut [f32; L],
                a: CoreMatrices,
                b: CoreMatrices,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { gpu.$warpgroup_mma(sums, a, b) };
            }
        }
    };
}
mma_value!(f32, 2, |gpu, x, y| split(gpu, x, y), split(gpu, x, y), mma_bf16, warpgroup_mma_bf16_cores);
mma_value!(
    Bf16,
    1,
    |gpu, x, y| Parts { upper: gpu.pack_bf16(x, y), lower: 0 },
    bits(gpu, x.0, y.0),
    mma_bf16,
    warpgroup_mma_bf16_cores
);
mma_value!(
    F16,
    1,
    |gpu, x, y| Parts { upper: gpu.pack_f16(x, y), lower: 0 },
    bits(gpu, x.0, y.0),
    mma_f16,
    warpgroup_mma_f16_cores
);

/// Splits two numbers.
#[inline(always)]
fn split<G: Gpu>(gpu: G, x: f32, y: f32) -> Parts {
    let [upper, lower] = bf16_parts(gpu, x, y);
    Parts { upper, lower }
}

/// Two values of 16 bits as they are.
#[inline(always)]
fn bits<G: Gpu>(_: G, x: u16, y: u16) -> Parts {
    Parts { upper: u32::from(x) | u32::from(y) << 16, lower: 0 }
}
