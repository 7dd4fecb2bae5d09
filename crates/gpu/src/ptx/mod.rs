//! `Gpu` and `Hopper` on an NVIDIA GPU: each method is one instruction.
//!
//! Operations at which threads converge go through LLVM's intrinsics, which carry the `convergent` mark; inline
//! assembly does not, and a barrier written in it may be copied into one arm of a branch. LLVM has none for warpgroups'
//! products and registers, nor are bulk copies marked: callers keep these under conditions that a whole warpgroup, or warp, shares. Memory operations are
//! inline assembly, because that alone fixes their width and cache hints.
mod bulk;
mod hopper;
mod intrinsics;
#[macro_use]
mod macros;
mod matrix;
mod memory;
mod warpgroup;

use core::arch::{asm, nvptx};

use self::intrinsics as llvm;
use crate::{AtomicAdd, AtomicMax, AtomicOp, Bf16, F16, GlobalMut, GlobalPtr, Gpu, Scalar, SharedPtr, Word};

/// Instructions on shared memory by its address, for an implementation of [`Gpu`] that has another block of it than [`Ptx`].
/// What takes no such address has the same instruction there as here, and `Ptx`'s methods give it.
pub mod instructions {
    pub use super::matrix::{load_matrices, load_transposed_matrices};
    pub use super::memory::{copy_async, copy_async_or_zero, shared_load, shared_store};
}

/// A thread on an NVIDIA GPU.
#[derive(Clone, Copy, Debug)]
pub struct Ptx;

impl Ptx {
    /// Ends the kernel with an error: what a panic becomes.
    pub fn trap() -> ! {
        // SAFETY: the instruction has no precondition.
        unsafe { nvptx::trap() }
    }

    /// Has the address of shared memory computed here, for all that follows. Where no access is certain to come first, each computes it
    /// for itself: three instructions, of which one waits, and a branch around them where the access is conditional.
    #[inline(always)]
    pub fn hold_shared_address() {
        // SAFETY: a comment.
        unsafe {
            asm!("// {0}", in(reg32) memory::shared_address(0), options(nomem, nostack, preserves_flags))
        }
    }

    /// Lets the launch after this one place its blocks as soon as all blocks of this one are there, and not only when they
    /// have ended. Compute capability 9.0 or higher.
    #[inline(always)]
    #[cfg(lacuna_sm = "90")]
    pub fn launch_dependents() {
        // SAFETY: has no precondition.
        unsafe { asm!("griddepcontrol.launch_dependents;", options(nostack)) }
    }
}

/// The third operand of `shfl`: the segment's mask above, the last lane that may be read below.
#[inline(always)]
fn clamp(width: u32, last: u32) -> u32 {
    ((32 - width) << 8) | last
}

impl Gpu for Ptx {
    indices! {
        thread_idx_x = _thread_idx_x;
        thread_idx_y = _thread_idx_y;
        thread_idx_z = _thread_idx_z;
        block_idx_x = _block_idx_x;
        block_idx_y = _block_idx_y;
        block_idx_z = _block_idx_z;
        block_dim_x = _block_dim_x;
        block_dim_y = _block_dim_y;
        block_dim_z = _block_dim_z;
        grid_dim_x = _grid_dim_x;
        grid_dim_y = _grid_dim_y;
        grid_dim_z = _grid_dim_z;
    }

    #[inline(always)]
    fn lane_id(self) -> u32 {
        // SAFETY: reads a special register.
        unsafe { llvm::lane_id() }
    }

    #[inline(always)]
    fn sync_threads(self) {
        // SAFETY: the trait's contract brings every thread of the block here.
        unsafe { llvm::barrier(0) }
    }
    #[inline(always)]
    fn sync_threads_or(self, predicate: bool) -> bool {
        // SAFETY: as for `sync_threads`.
        unsafe { llvm::barrier_or(0, predicate) }
    }
    #[inline(always)]
    fn sync_threads_count(self, predicate: bool) -> u32 {
        // SAFETY: as for `sync_threads`.
        unsafe { llvm::barrier_count(0, predicate) }
    }
    #[inline(always)]
    fn barrier_sync(self, id: u32, threads: u32) {
        // SAFETY: the trait's contract brings as many threads here or to `barrier_arrive`.
        unsafe { llvm::barrier_sync(id, threads) }
    }
    #[inline(always)]
    fn barrier_arrive(self, id: u32, threads: u32) {
        // SAFETY: as for `barrier_sync`.
        unsafe { llvm::barrier_arrive(id, threads) }
    }
    #[inline(always)]
    fn sync_warp(self, mask: u32) {
        // SAFETY: the trait's contract brings every lane of the mask here.
        unsafe { llvm::barrier_warp(mask) }
    }
    #[inline(always)]
    fn thread_fence(self) {
        // SAFETY: a fence has no precondition.
        unsafe { llvm::membar_gl() }
    }

    shuffles! {
        warp_shuffle_idx = shuffle_idx, 31;
        warp_shuffle_down = shuffle_down, 31;
        warp_shuffle_up = shuffle_up, 0;
        warp_shuffle_xor = shuffle_xor, 31;
    }
    #[inline(always)]
    fn warp_all(self, mask: u32, predicate: bool) -> bool {
        // SAFETY: touches no memory; the trait's contract puts every lane of the mask here.
        unsafe { llvm::vote_all(mask, predicate) }
    }
    #[inline(always)]
    fn warp_any(self, mask: u32, predicate: bool) -> bool {
        // SAFETY: as for `warp_all`.
        unsafe { llvm::vote_any(mask, predicate) }
    }
    #[inline(always)]
    fn warp_ballot(self, mask: u32, predicate: bool) -> u32 {
        // SAFETY: as for `warp_all`.
        unsafe { llvm::vote_ballot(mask, predicate) }
    }

    #[inline(always)]
    unsafe fn load<T: Scalar, const N: usize>(self, from: GlobalMut<T>) -> [T; N] {
        // SAFETY: passed on to the caller.
        unsafe { memory::load(from.address()) }
    }
    #[inline(always)]
    unsafe fn load_readonly<T: Scalar, const N: usize>(self, from: GlobalPtr<T>) -> [T; N] {
        // SAFETY: passed on to the caller.
        unsafe { memory::load_readonly(from.address()) }
    }
    #[inline(always)]
    unsafe fn load_streaming<T: Scalar, const N: usize>(self, from: GlobalPtr<T>) -> [T; N] {
        // SAFETY: passed on to the caller.
        unsafe { memory::load_streaming(from.address()) }
    }
    #[inline(always)]
    unsafe fn store<T: Scalar, const N: usize>(self, to: GlobalMut<T>, value: [T; N]) {
        // SAFETY: passed on to the caller.
        unsafe { memory::store(to.address(), value) }
    }
    #[inline(always)]
    unsafe fn store_streaming<T: Scalar, const N: usize>(self, to: GlobalMut<T>, value: [T; N]) {
        // SAFETY: passed on to the caller.
        unsafe { memory::store_streaming(to.address(), value) }
    }
    #[inline(always)]
    unsafe fn shared_load<T: Scalar, const N: usize>(self, from: SharedPtr<T>) -> [T; N] {
        // SAFETY: passed on to the caller.
        unsafe { memory::shared_load(memory::shared_address(from.offset())) }
    }
    #[inline(always)]
    unsafe fn shared_store<T: Scalar, const N: usize>(self, to: SharedPtr<T>, value: [T; N]) {
        // SAFETY: passed on to the caller.
        unsafe { memory::shared_store(memory::shared_address(to.offset()), value) }
    }

    #[inline(always)]
    fn grid_dependency_wait(self) {
        // SAFETY: has no precondition. Nothing may be moved before it, which is said by leaving `nomem` out.
        #[cfg(lacuna_sm = "90")]
        unsafe {
            asm!("griddepcontrol.wait;", options(nostack));
        }
    }

    #[inline(always)]
    unsafe fn prefetch_l1<T: Scalar>(self, scratch: SharedPtr<u32>, from: GlobalPtr<T>) {
        // An asynchronous copy of four bytes leaves what it read in L1.
        // SAFETY: passed on to the caller.
        #[cfg(lacuna_sm = "80")]
        unsafe {
            memory::copy_async::<u32, 1>(memory::shared_address(scratch.offset()), from.address());
        }
        #[cfg(not(lacuna_sm = "80"))]
        let _ = (scratch, from);
    }
    #[inline(always)]
    unsafe fn copy_async<T: Scalar, const N: usize>(self, to: SharedPtr<T>, from: GlobalPtr<T>) {
        // SAFETY: passed on to the caller.
        unsafe { memory::copy_async::<T, N>(memory::shared_address(to.offset()), from.address()) }
    }
    #[inline(always)]
    unsafe fn copy_async_or_zero<T: Scalar, const N: usize>(
        self,
        to: SharedPtr<T>,
        from: GlobalPtr<T>,
        valid: bool,
    ) {
        // SAFETY: passed on to the caller.
        unsafe {
            memory::copy_async_or_zero::<T, N>(memory::shared_address(to.offset()), from.address(), valid);
        }
    }
    #[inline(always)]
    fn copy_async_commit(self) {
        // SAFETY: has no precondition.
        unsafe { asm!("cp.async.commit_group;", options(nostack)) }
    }
    #[inline(always)]
    fn copy_async_wait<const PENDING: u32>(self) {
        // SAFETY: has no precondition.
        unsafe { asm!("cp.async.wait_group {};", const PENDING, options(nostack)) }
    }

    atomics! {
        atomic_add<AtomicAdd> = atomic, Add, |to: GlobalMut| to.address();
        atomic_max<AtomicMax> = atomic, Max, |to: GlobalMut| to.address();
        shared_atomic_add<AtomicAdd> = shared_atomic, Add, |to: SharedPtr| memory::shared_address(to.offset());
        shared_atomic_max<AtomicMax> = shared_atomic, Max, |to: SharedPtr| memory::shared_address(to.offset());
    }
    #[inline(always)]
    unsafe fn atomic_or(self, to: GlobalMut<u32>, value: u32) -> u32 {
        // SAFETY: passed on to the caller.
        unsafe { memory::atomic(AtomicOp::Or, to.address(), value) }
    }

    #[inline(always)]
    fn fma(self, a: f32, b: f32, c: f32) -> f32 {
        // SAFETY: arithmetic.
        unsafe { llvm::fma(a, b, c) }
    }
    #[inline(always)]
    fn max_nan(self, a: f32, b: f32) -> f32 {
        #[cfg(lacuna_sm = "80")]
        {
            let y;
            // SAFETY: arithmetic.
            unsafe {
                asm!("max.NaN.f32 {0}, {1}, {2};", out(reg32) y, in(reg32) a, in(reg32) b,
                    options(pure, nomem, nostack));
            }
            y
        }
        // The instruction came with 8.0.
        #[cfg(not(lacuna_sm = "80"))]
        if a.is_nan() | b.is_nan() {
            f32::from_bits(0x7fff_ffff)
        } else if b > a {
            b
        } else {
            a
        }
    }
    approximations! {
        exp2_approx = "ex2.approx.f32";
        exp2_flush = "ex2.approx.ftz.f32";
        log2_approx = "lg2.approx.f32";
        rcp_approx = "rcp.approx.f32";
    }

    #[inline(always)]
    fn f16_to_f32(self, x: F16) -> f32 {
        let y;
        // SAFETY: arithmetic.
        unsafe {
            asm!("cvt.f32.f16 {0}, {1};", out(reg32) y, in(reg16) x.0, options(pure, nomem, nostack));
        }
        y
    }
    #[inline(always)]
    fn f32_to_f16(self, x: f32) -> F16 {
        let y;
        // SAFETY: arithmetic.
        unsafe {
            asm!("cvt.rn.f16.f32 {0}, {1};", out(reg16) y, in(reg32) x, options(pure, nomem, nostack));
        }
        F16(y)
    }

    #[inline(always)]
    fn f32_to_bf16(self, x: f32) -> Bf16 {
        #[cfg(lacuna_sm = "80")]
        {
            let y;
            // SAFETY: arithmetic.
            unsafe {
                asm!("cvt.rn.bf16.f32 {0}, {1};", out(reg16) y, in(reg32) x, options(pure, nomem, nostack));
            }
            Bf16(y)
        }
        #[cfg(not(lacuna_sm = "80"))]
        Bf16::nearest(x)
    }

    #[inline(always)]
    fn pack_bf16(self, low: f32, high: f32) -> u32 {
        let packed;
        // SAFETY: arithmetic.
        unsafe {
            asm!("cvt.rn.bf16x2.f32 {0}, {1}, {2};", out(reg32) packed, in(reg32) high, in(reg32) low,
                options(pure, nomem, nostack));
        }
        packed
    }
    #[inline(always)]
    fn pack_f16(self, low: f32, high: f32) -> u32 {
        let packed;
        // SAFETY: arithmetic.
        unsafe {
            asm!("cvt.rn.f16x2.f32 {0}, {1}, {2};", out(reg32) packed, in(reg32) high, in(reg32) low,
                options(pure, nomem, nostack));
        }
        packed
    }

    #[inline(always)]
    fn mma_tf32(self, a: [f32; 4], b: [f32; 2], c: [f32; 4]) -> [f32; 4] {
        matrix::mma_tf32(a.map(f32::to_bits), b.map(f32::to_bits), c)
    }
    #[inline(always)]
    fn mma_f16(self, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        matrix::mma_f16(a, b, c)
    }
    #[inline(always)]
    fn mma_bf16(self, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        matrix::mma_bf16(a, b, c)
    }
    #[inline(always)]
    unsafe fn shared_load_matrices<const TRANSPOSED: bool>(self, row: SharedPtr<u16>) -> [u32; 4] {
        let address = memory::shared_address(row.offset());
        // SAFETY: passed on to the caller.
        unsafe {
            if TRANSPOSED {
                matrix::load_transposed_matrices(address)
            } else {
                matrix::load_matrices(address)
            }
        }
    }
}
