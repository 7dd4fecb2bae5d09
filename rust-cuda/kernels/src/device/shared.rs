//! Shared memory: `cuda_std`'s dynamic block of it, and `lacuna_gpu`'s instructions on its addresses.
#[cfg(target_arch = "nvptx64")]
use core::arch::asm;

use cuda_std::gpu_only;
#[cfg(target_arch = "nvptx64")]
use lacuna_gpu::instructions;
use lacuna_gpu::{GlobalPtr, Scalar, SharedPtr};

/// The place as an ordinary pointer.
#[inline(always)]
pub(super) fn pointer<T>(place: SharedPtr<T>) -> *mut T {
    cuda_std::shared::dynamic_shared_mem::<u8>().wrapping_add(place.offset() as usize).cast()
}

/// The place's address in the shared window.
#[gpu_only]
#[inline(always)]
fn address<T>(place: SharedPtr<T>) -> u32 {
    let start = cuda_std::shared::dynamic_shared_mem::<u8>();
    let window: u64;
    // SAFETY: arithmetic on an address.
    unsafe {
        asm!("cvta.to.shared.u64 {0}, {1};", out(reg64) window, in(reg64) start, options(pure, nomem, nostack));
    }
    (window as u32).wrapping_add(place.offset())
}

/// Reads.
///
/// # Safety
/// See [`Gpu`](lacuna_gpu::Gpu).
#[gpu_only]
#[inline(always)]
pub(super) unsafe fn load<T: Scalar, const N: usize>(from: SharedPtr<T>) -> [T; N] {
    // SAFETY: passed on to the caller.
    unsafe { instructions::shared_load(address(from)) }
}

/// Writes.
///
/// # Safety
/// See [`Gpu`](lacuna_gpu::Gpu).
#[gpu_only]
#[inline(always)]
pub(super) unsafe fn store<T: Scalar, const N: usize>(to: SharedPtr<T>, value: [T; N]) {
    // SAFETY: passed on to the caller.
    unsafe { instructions::shared_store(address(to), value) }
}

/// Starts a copy from global memory.
///
/// # Safety
/// See [`Gpu::copy_async`](lacuna_gpu::Gpu::copy_async).
#[gpu_only]
#[inline(always)]
pub(super) unsafe fn copy_async<T: Scalar, const N: usize>(to: SharedPtr<T>, from: GlobalPtr<T>) {
    // SAFETY: passed on to the caller.
    unsafe { instructions::copy_async::<T, N>(address(to), from.address()) }
}

/// Starts a copy from global memory, or of zeros.
///
/// # Safety
/// See [`Gpu::copy_async_or_zero`](lacuna_gpu::Gpu::copy_async_or_zero).
#[gpu_only]
#[inline(always)]
pub(super) unsafe fn copy_async_or_zero<T: Scalar, const N: usize>(
    to: SharedPtr<T>,
    from: GlobalPtr<T>,
    valid: bool,
) {
    // SAFETY: passed on to the caller.
    unsafe { instructions::copy_async_or_zero::<T, N>(address(to), from.address(), valid) }
}

/// Loads four matrices, by the whole warp.
///
/// # Safety
/// See [`Gpu::shared_load_matrices`](lacuna_gpu::Gpu::shared_load_matrices).
#[gpu_only]
#[inline(always)]
pub(super) unsafe fn load_matrices<const TRANSPOSED: bool>(row: SharedPtr<u16>) -> [u32; 4] {
    // SAFETY: passed on to the caller.
    unsafe {
        if TRANSPOSED {
            instructions::load_transposed_matrices(address(row))
        } else {
            instructions::load_matrices(address(row))
        }
    }
}
