//! Named barriers, which `cuda_std` does not have.
use cuda_std::gpu_only;

/// Waits at barrier `id` until `threads` threads have come. An intrinsic of LLVM 7, convergent.
#[gpu_only]
#[inline(always)]
pub(super) fn sync(id: u32, threads: u32) {
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.barrier"]
        fn barrier(id: u32, threads: u32);
    }
    // SAFETY: the trait's contract brings as many threads here or to `arrive`.
    unsafe { barrier(id, threads) }
}

/// Comes to barrier `id` and goes on. LLVM 7 has no intrinsic for it, and assembly is not convergent: LLVM may copy it
/// into the arms of a branch. That is harmless while whole warps take one arm, as the trait demands of its callers.
#[gpu_only]
#[inline(always)]
pub(super) fn arrive(id: u32, threads: u32) {
    // SAFETY: as for `sync`. Memory is ordered, hence no `nomem`.
    unsafe {
        core::arch::asm!("bar.arrive {0}, {1};", in(reg32) id, in(reg32) threads, options(nostack));
    }
}
