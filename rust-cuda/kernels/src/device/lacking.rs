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

impl Hopper for RustCuda {
    #[inline(always)]
    fn cluster_arrive(self) {
        warpgroups();
    }
    #[inline(always)]
    fn cluster_arrive_relaxed(self) {
        Self::cluster_arrive(self);
    }
    #[inline(always)]
    fn cluster_wait(self) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn cluster_store<T: Scalar, const N: usize>(self, _: u32, _: SharedPtr<T>, _: [T; N]) {
        warpgroups();
    }

    #[inline(always)]
    fn bulk_prefetch(self, _: &TensorMap) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn bulk_barrier_init(self, _: SharedPtr<u64>) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn bulk_expect(self, _: SharedPtr<u64>, _: u32) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn bulk_copy(self, _: SharedPtr<u16>, _: &TensorMap, _: [u32; 3], _: SharedPtr<u64>) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn bulk_wait(self, _: SharedPtr<u64>, _: u32) {
        warpgroups();
    }

    #[inline(always)]
    fn fence_async_proxy(self) {
        warpgroups();
    }
    #[inline(always)]
    fn warpgroup_arrive(self) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn warpgroup_mma_f16<const L: usize, const PANEL: u32>(
        self,
        _: &mut [f32; L],
        _: SharedPtr<u16>,
        _: SharedPtr<u16>,
    ) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn warpgroup_mma_bf16<const L: usize, const PANEL: u32>(
        self,
        _: &mut [f32; L],
        _: SharedPtr<u16>,
        _: SharedPtr<u16>,
    ) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn warpgroup_mma_f16_cores<const L: usize>(
        self,
        _: &mut [f32; L],
        _: CoreMatrices,
        _: CoreMatrices,
    ) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn warpgroup_mma_bf16_cores<const L: usize>(
        self,
        _: &mut [f32; L],
        _: CoreMatrices,
        _: CoreMatrices,
    ) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn warpgroup_mma_f16_columns<const L: usize>(
        self,
        _: &mut [f32; L],
        _: SharedPtr<u16>,
        _: SharedPtr<u16>,
    ) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn warpgroup_mma_bf16_columns<const L: usize>(
        self,
        _: &mut [f32; L],
        _: SharedPtr<u16>,
        _: SharedPtr<u16>,
    ) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn warpgroup_mma_f16_registers<const L: usize, const PANEL: u32>(
        self,
        _: &mut [f32; L],
        _: [u32; 4],
        _: SharedPtr<u16>,
    ) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn warpgroup_mma_bf16_registers<const L: usize, const PANEL: u32>(
        self,
        _: &mut [f32; L],
        _: [u32; 4],
        _: SharedPtr<u16>,
    ) {
        warpgroups();
    }
    #[inline(always)]
    unsafe fn warpgroup_mma_tf32_registers<const L: usize>(
        self,
        _: &mut [f32; L],
        _: [f32; 4],
        _: SharedPtr<f32>,
    ) {
        warpgroups();
    }
    #[inline(always)]
    fn warpgroup_give_registers<const N: u32>(self) {
        warpgroups();
    }
    #[inline(always)]
    fn warpgroup_take_registers<const N: u32>(self) {
        warpgroups();
    }
    #[inline(always)]
    fn warpgroup_commit(self) {
        warpgroups();
    }
    #[inline(always)]
    fn warpgroup_wait<const PENDING: u32, const L: usize>(self, _: &mut [f32; L]) {
        warpgroups();
    }
}
