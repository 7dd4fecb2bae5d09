//! What this route does not have.
use cuda_std::gpu_only;

/// Stands where an operation of warpgroups would: a function that is defined nowhere, so that the check of the built module
/// refuses an entry that reaches it, by this name. The list has such entries for sm_90a alone, and this route builds
/// without that level.
///
/// B of such a product must lie at a multiple of 1024 bytes. `cuda_std` promises 16 for dynamic shared memory.
#[gpu_only]
#[inline(always)]
pub(super) fn warpgroups() {
    unsafe extern "C" {
        fn rust_cuda_has_no_products_of_warpgroups();
    }
    // SAFETY: a module with this call is never loaded.
    unsafe { rust_cuda_has_no_products_of_warpgroups() }
}
