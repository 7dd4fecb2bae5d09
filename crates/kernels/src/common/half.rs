//! Tensor-core instructions for 16-bit values.
use lacuna_gpu::{Bf16, F16, Gpu, SharedPtr};

use super::DeviceValue;

/// A 16-bit value that tensor cores multiply.
pub trait HalfValue: DeviceValue {
    /// `A·B + C` by a warp: see [`Gpu::mma_f16`].
    fn mma<G: Gpu>(gpu: G, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];

    /// Starts `sums += A·B` by a warpgroup: see [`Gpu::warpgroup_mma_f16`].
    ///
    /// # Safety
    /// See there.
    unsafe fn warpgroup_mma<G: Gpu, const L: usize, const PANEL: u32>(
        gpu: G,
        sums: &mut [f32; L],
        a: SharedPtr<u16>,
        b: SharedPtr<u16>,
    );
}

/// Writes the implementation for a type, by its two instructions.
macro_rules! half {
    ($type:ident, $mma:ident, $warpgroup_mma:ident) => {
        impl HalfValue for $type {
            #[inline(always)]
            fn mma<G: Gpu>(gpu: G, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
                gpu.$mma(a, b, c)
            }
            #[inline(always)]
            unsafe fn warpgroup_mma<G: Gpu, const L: usize, const PANEL: u32>(
                gpu: G,
                sums: &mut [f32; L],
                a: SharedPtr<u16>,
                b: SharedPtr<u16>,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { gpu.$warpgroup_mma::<L, PANEL>(sums, a, b) };
            }
        }
    };
}
half!(F16, mma_f16, warpgroup_mma_f16);
half!(Bf16, mma_bf16, warpgroup_mma_bf16);
