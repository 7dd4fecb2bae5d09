//! What `cuda_std` does not have and `lacuna_gpu` writes in assembly: the same instructions as on the other route.
use cuda_std::gpu_only;
use lacuna_gpu::{Bf16, F16, GlobalMut, GlobalPtr, Scalar};
#[cfg(target_arch = "nvptx64")]
use lacuna_gpu::{Gpu as _, Ptx};

/// Writes functions that are methods of `Ptx`.
macro_rules! of_ptx {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        /// The instruction of [`Gpu`](lacuna_gpu::Gpu)'s method of this name.
        #[gpu_only]
        #[inline(always)]
        pub(super) fn $name($($argument: $type),*) -> $result {
            Ptx.$name($($argument),*)
        }
    )*};
}
of_ptx! {
    copy_async_commit() -> ();
    max_nan(a: f32, b: f32) -> f32;
    exp2_approx(x: f32) -> f32;
    exp2_flush(x: f32) -> f32;
    log2_approx(x: f32) -> f32;
    rcp_approx(x: f32) -> f32;
    f16_to_f32(x: F16) -> f32;
    f32_to_f16(x: f32) -> F16;
    f32_to_bf16(x: f32) -> Bf16;
    pack_bf16(low: f32, high: f32) -> u32;
    pack_f16(low: f32, high: f32) -> u32;
    mma_tf32(a: [f32; 4], b: [f32; 2], c: [f32; 4]) -> [f32; 4];
    mma_f16(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];
    mma_bf16(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];
}

/// Waits until at most `PENDING` groups of copies are under way.
#[gpu_only]
#[inline(always)]
pub(super) fn copy_async_wait<const PENDING: u32>() {
    Ptx.copy_async_wait::<PENDING>();
}

/// Writes loads: name, kind of pointer.
macro_rules! loads {
    ($($name:ident: $pointer:ident;)*) => {$(
        /// The instruction of [`Gpu`](lacuna_gpu::Gpu)'s method of this name.
        ///
        /// # Safety
        /// As there.
        #[gpu_only]
        #[inline(always)]
        pub(super) unsafe fn $name<T: Scalar, const N: usize>(from: $pointer<T>) -> [T; N] {
            // SAFETY: passed on to the caller.
            unsafe { Ptx.$name(from) }
        }
    )*};
}
loads! {
    load: GlobalMut;
    load_readonly: GlobalPtr;
    load_streaming: GlobalPtr;
}

/// Writes stores: name.
macro_rules! stores {
    ($($name:ident)*) => {$(
        /// The instruction of [`Gpu`](lacuna_gpu::Gpu)'s method of this name.
        ///
        /// # Safety
        /// As there.
        #[gpu_only]
        #[inline(always)]
        pub(super) unsafe fn $name<T: Scalar, const N: usize>(to: GlobalMut<T>, value: [T; N]) {
            // SAFETY: passed on to the caller.
            unsafe { Ptx.$name(to, value) }
        }
    )*};
}
stores! { store store_streaming }
