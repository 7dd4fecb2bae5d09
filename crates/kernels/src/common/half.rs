//! Tensor-core instructions for 16-bit values.
use lacuna_gpu::{Bf16, CoreMatrices, F16, Gpu, SharedPtr};

use super::DeviceValue;

/// A 16-bit value that tensor cores multiply.
pub trait HalfValue: DeviceValue {
    /// `A·B + C` by a warp: see [`Gpu::mma_f16`].
    fn mma<G: Gpu>(gpu: G, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];

    /// Two numbers, each rounded to the nearest, the first in the lower half.
    fn pack<G: Gpu>(gpu: G, low: f32, high: f32) -> u32;

    /// Starts `sums += A·B` by a warpgroup: see [`warpgroup_mma_f16`](lacuna_gpu::Hopper::warpgroup_mma_f16).
    ///
    /// # Safety
    /// See there.
    unsafe fn warpgroup_mma<G: Gpu, const L: usize, const PANEL: u32>(
        gpu: G,
        sums: &mut [f32; L],
        a: SharedPtr<u16>,
        b: SharedPtr<u16>,
    );

    /// The same with A and B in core matrices: see [`warpgroup_mma_f16_cores`](lacuna_gpu::Hopper::warpgroup_mma_f16_cores).
    ///
    /// # Safety
    /// See there.
    unsafe fn warpgroup_mma_cores<G: Gpu, const L: usize>(
        gpu: G,
        sums: &mut [f32; L],
        a: CoreMatrices,
        b: CoreMatrices,
    );

    /// The same with B column by column: see [`warpgroup_mma_f16_columns`](lacuna_gpu::Hopper::warpgroup_mma_f16_columns).
    ///
    /// # Safety
    /// See there.
    unsafe fn warpgroup_mma_columns<G: Gpu, const L: usize>(
        gpu: G,
        sums: &mut [f32; L],
        a: SharedPtr<u16>,
        b: SharedPtr<u16>,
    );

    /// The same with A in registers: see [`warpgroup_mma_f16_registers`](lacuna_gpu::Hopper::warpgroup_mma_f16_registers).
    ///
    /// # Safety
    /// See there.
    unsafe fn warpgroup_mma_registers<G: Gpu, const L: usize, const PANEL: u32>(
        gpu: G,
        sums: &mut [f32; L],
        a: [u32; 4],
        b: SharedPtr<u16>,
    );
}

/// Writes the implementation for a type, by its instructions.
macro_rules! half {
    ($type:ident, $mma:ident, $pack:ident, $panels:ident, $cores:ident, $columns:ident, $registers:ident) => {
        impl HalfValue for $type {
            #[inline(always)]
            fn mma<G: Gpu>(gpu: G, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
                gpu.$mma(a, b, c)
            }
            #[inline(always)]
            fn pack<G: Gpu>(gpu: G, low: f32, high: f32) -> u32 {
                gpu.$pack(low, high)
            }
            #[inline(always)]
            unsafe fn warpgroup_mma<G: Gpu, const L: usize, const PANEL: u32>(
                gpu: G,
                sums: &mut [f32; L],
                a: SharedPtr<u16>,
                b: SharedPtr<u16>,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { gpu.$panels::<L, PANEL>(sums, a, b) };
            }
            #[inline(always)]
            unsafe fn warpgroup_mma_cores<G: Gpu, const L: usize>(
                gpu: G,
                sums: &mut [f32; L],
                a: CoreMatrices,
                b: CoreMatrices,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { gpu.$cores(sums, a, b) };
            }
            #[inline(always)]
            unsafe fn warpgroup_mma_columns<G: Gpu, const L: usize>(
                gpu: G,
                sums: &mut [f32; L],
                a: SharedPtr<u16>,
                b: SharedPtr<u16>,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { gpu.$columns(sums, a, b) };
            }
            #[inline(always)]
            unsafe fn warpgroup_mma_registers<G: Gpu, const L: usize, const PANEL: u32>(
                gpu: G,
                sums: &mut [f32; L],
                a: [u32; 4],
                b: SharedPtr<u16>,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { gpu.$registers::<L, PANEL>(sums, a, b) };
            }
        }
    };
}
half!(
    F16,
    mma_f16,
    pack_f16,
    warpgroup_mma_f16,
    warpgroup_mma_f16_cores,
    warpgroup_mma_f16_columns,
    warpgroup_mma_f16_registers
);
half!(
    Bf16,
    mma_bf16,
    pack_bf16,
    warpgroup_mma_bf16,
    warpgroup_mma_bf16_cores,
    warpgroup_mma_bf16_columns,
    warpgroup_mma_bf16_registers
);
