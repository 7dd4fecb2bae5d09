//! What this route does not have.
use cuda_std::gpu_only;
use lacuna_gpu::{CoreMatrices, Hopper, Scalar, SharedPtr, TensorMap};

use super::RustCuda;

/// Stands where an operation of warpgroups would: a function that is defined nowhere, so that the check of the built module
/// refuses an entry that reaches it, by this name. The list has such entries for sm_90a alone, and this route builds
/// without that level.
///
/// B of such a product must lie at a multiple of 1024 bytes. `cuda_std` promises 16 for dynamic shared memory.
#[gpu_only]
#[inline(always)]
fn warpgroups() {
    unsafe extern "C" {
        fn rust_cuda_has_no_products_of_warpgroups();
    }
    // SAFETY: a module with this call is never loaded.
    unsafe { rust_cuda_has_no_products_of_warpgroups() }
}

/// Writes methods that are not there: their names, generic parameters, and the types of their arguments.
macro_rules! lacking {
    (unsafe: $($name:ident [$($generics:tt)*] ($($argument:ty),*);)*) => {$(
        #[inline(always)]
        unsafe fn $name<$($generics)*>(self $(, _: $argument)*) {
            warpgroups();
        }
    )*};
    ($($name:ident [$($generics:tt)*] ($($argument:ty),*);)*) => {$(
        #[inline(always)]
        fn $name<$($generics)*>(self $(, _: $argument)*) {
            warpgroups();
        }
    )*};
}

impl Hopper for RustCuda {
    lacking! {
        cluster_arrive[]();
        cluster_arrive_relaxed[]();
        cluster_wait[]();
        bulk_prefetch[](&TensorMap);
        fence_async_proxy[]();
        warpgroup_arrive[]();
        warpgroup_give_registers[const N: u32]();
        warpgroup_take_registers[const N: u32]();
        warpgroup_commit[]();
        warpgroup_wait[const PENDING: u32, const L: usize](&mut [f32; L]);
    }
    lacking! {
        unsafe:
        cluster_store[T: Scalar, const N: usize](u32, SharedPtr<T>, [T; N]);
        bulk_barrier_init[](SharedPtr<u64>);
        bulk_expect[](SharedPtr<u64>, u32);
        bulk_copy[](SharedPtr<u16>, &TensorMap, [u32; 3], SharedPtr<u64>);
        bulk_wait[](SharedPtr<u64>, u32);
        warpgroup_mma_f16[const L: usize, const PANEL: u32](&mut [f32; L], SharedPtr<u16>, SharedPtr<u16>);
        warpgroup_mma_bf16[const L: usize, const PANEL: u32](&mut [f32; L], SharedPtr<u16>, SharedPtr<u16>);
        warpgroup_mma_f16_cores[const L: usize](&mut [f32; L], CoreMatrices, CoreMatrices);
        warpgroup_mma_bf16_cores[const L: usize](&mut [f32; L], CoreMatrices, CoreMatrices);
        warpgroup_mma_f16_columns[const L: usize](&mut [f32; L], SharedPtr<u16>, SharedPtr<u16>);
        warpgroup_mma_bf16_columns[const L: usize](&mut [f32; L], SharedPtr<u16>, SharedPtr<u16>);
        warpgroup_mma_f16_registers[const L: usize, const PANEL: u32](&mut [f32; L], [u32; 4], SharedPtr<u16>);
        warpgroup_mma_bf16_registers[const L: usize, const PANEL: u32](&mut [f32; L], [u32; 4], SharedPtr<u16>);
        warpgroup_mma_tf32_registers[const L: usize](&mut [f32; L], [f32; 4], SharedPtr<f32>);
    }
}
