//! `Gpu` over `cuda_std`.
//!
//! Indices, barriers, shuffles, votes, fences, atomics and the place of shared memory are `cuda_std`'s. It has no loads and
//! stores of a given width and cache hint, no asynchronous copies, no products on tensor cores and no approximate
//! functions: those are the instructions of `lacuna_gpu`'s own implementation, written in assembly there, which rust-cuda's
//! code generator passes on as it is. Products of warpgroups are lacking (`lacking.rs`).
//!
//! Operations at which threads converge should be intrinsics, because assembly is not convergent. Here three kinds are
//! assembly: votes, as `cuda_std` writes them; `barrier_arrive`, for which LLVM 7 has no intrinsic; and what needs a tensor
//! core. All are volatile, and kernels come to them with whole warps.
//!
//! On the host everything type-checks and nothing runs.
mod assembly;
mod atomics;
mod barriers;
mod lacking;
mod shared;

use cuda_std::warp::{warp_shuffle_down, warp_shuffle_idx, warp_shuffle_xor};
use cuda_std::{GpuFloat, thread, warp};
use lacuna_gpu::{
    AtomicAdd, AtomicMax, Bf16, F16, GlobalMut, GlobalPtr, Gpu, Scalar, SharedPtr, Word,
};

/// A thread on an NVIDIA GPU, by rust-cuda.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RustCuda;

/// Writes methods that are functions of `cuda_std`.
macro_rules! indices {
    ($($name:ident)*) => {$(
        #[inline(always)]
        fn $name(self) -> u32 {
            thread::$name()
        }
    )*};
}

/// Writes methods that are this crate's assembly with the same name.
macro_rules! assembly {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        #[inline(always)]
        fn $name(self $(, $argument: $type)*) -> $result {
            assembly::$name($($argument),*)
        }
    )*};
}

impl Gpu for RustCuda {
    indices! {
        thread_idx_x thread_idx_y thread_idx_z block_idx_x block_idx_y block_idx_z
        block_dim_x block_dim_y block_dim_z grid_dim_x grid_dim_y grid_dim_z
    }
    #[inline(always)]
    fn lane_id(self) -> u32 {
        warp::lane_id()
    }

    #[inline(always)]
    fn sync_threads(self) {
        thread::sync_threads();
    }
    #[inline(always)]
    fn sync_threads_or(self, predicate: bool) -> bool {
        thread::sync_threads_or(u32::from(predicate)) != 0
    }
    #[inline(always)]
    fn sync_threads_count(self, predicate: bool) -> u32 {
        thread::sync_threads_count(u32::from(predicate))
    }
    #[inline(always)]
    fn barrier_sync(self, id: u32, threads: u32) {
        barriers::sync(id, threads);
    }
    #[inline(always)]
    fn barrier_arrive(self, id: u32, threads: u32) {
        barriers::arrive(id, threads);
    }
    #[inline(always)]
    fn sync_warp(self, mask: u32) {
        // SAFETY: the trait's contract brings every lane of the mask here, the caller among them.
        unsafe { warp::sync_warp(mask) }
    }
    #[inline(always)]
    fn thread_fence(self) {
        thread::device_fence();
    }

    #[inline(always)]
    fn warp_shuffle_idx<T: Word>(self, mask: u32, value: T, lane: u32, width: u32) -> T {
        shuffled(value, |bits| {
            // SAFETY: the trait's contract puts every lane of the mask here, the caller among them.
            unsafe { warp_shuffle_idx(mask, bits, lane, width) }
        })
    }
    #[inline(always)]
    fn warp_shuffle_down<T: Word>(self, mask: u32, value: T, delta: u32, width: u32) -> T {
        shuffled(value, |bits| {
            // SAFETY: as for `warp_shuffle_idx`.
            unsafe { warp_shuffle_down(mask, bits, delta, width) }
        })
    }
    /// By the lane's index: `cuda_std`'s own `warp_shuffle_up` gives the instruction a last lane, and this form of it wants
    /// a first one, so that each lane would get its own value.
    #[inline(always)]
    fn warp_shuffle_up<T: Word>(self, mask: u32, value: T, delta: u32, width: u32) -> T {
        let lane = self.lane_id() % width;
        self.warp_shuffle_idx(mask, value, if lane < delta { lane } else { lane - delta }, width)
    }
    #[inline(always)]
    fn warp_shuffle_xor<T: Word>(self, mask: u32, value: T, lanes: u32, width: u32) -> T {
        shuffled(value, |bits| {
            // SAFETY: as for `warp_shuffle_idx`.
            unsafe { warp_shuffle_xor(mask, bits, lanes, width) }
        })
    }
    #[inline(always)]
    fn warp_all(self, mask: u32, predicate: bool) -> bool {
        // SAFETY: as for `warp_shuffle_idx`.
        unsafe { warp::warp_vote_all(mask, predicate) }
    }
    #[inline(always)]
    fn warp_any(self, mask: u32, predicate: bool) -> bool {
        // SAFETY: as for `warp_shuffle_idx`.
        unsafe { warp::warp_vote_any(mask, predicate) }
    }
    #[inline(always)]
    fn warp_ballot(self, mask: u32, predicate: bool) -> u32 {
        // SAFETY: as for `warp_shuffle_idx`.
        unsafe { warp::warp_vote_ballot(mask, predicate) }
    }

    #[inline(always)]
    unsafe fn load<T: Scalar, const N: usize>(self, from: GlobalMut<T>) -> [T; N] {
        // SAFETY: passed on to the caller.
        unsafe { assembly::load(from) }
    }
    #[inline(always)]
    unsafe fn load_readonly<T: Scalar, const N: usize>(self, from: GlobalPtr<T>) -> [T; N] {
        // SAFETY: passed on to the caller.
        unsafe { assembly::load_readonly(from) }
    }
    #[inline(always)]
    unsafe fn load_streaming<T: Scalar, const N: usize>(self, from: GlobalPtr<T>) -> [T; N] {
        // SAFETY: passed on to the caller.
        unsafe { assembly::load_streaming(from) }
    }
    #[inline(always)]
    unsafe fn store<T: Scalar, const N: usize>(self, to: GlobalMut<T>, value: [T; N]) {
        // SAFETY: passed on to the caller.
        unsafe { assembly::store(to, value) }
    }
    #[inline(always)]
    unsafe fn store_streaming<T: Scalar, const N: usize>(self, to: GlobalMut<T>, value: [T; N]) {
        // SAFETY: passed on to the caller.
        unsafe { assembly::store_streaming(to, value) }
    }
    #[inline(always)]
    unsafe fn shared_load<T: Scalar, const N: usize>(self, from: SharedPtr<T>) -> [T; N] {
        // SAFETY: passed on to the caller.
        unsafe { shared::load(from) }
    }
    #[inline(always)]
    unsafe fn shared_store<T: Scalar, const N: usize>(self, to: SharedPtr<T>, value: [T; N]) {
        // SAFETY: passed on to the caller.
        unsafe { shared::store(to, value) }
    }

    /// Entries of this route do not wait by themselves, and are not launched early.
    #[inline(always)]
    fn grid_dependency_wait(self) {}

    #[inline(always)]
    unsafe fn prefetch_l1<T: Scalar>(self, scratch: SharedPtr<u32>, from: GlobalPtr<T>) {
        // SAFETY: passed on to the caller.
        #[cfg(lacuna_sm = "80")]
        unsafe {
            shared::copy_async::<u32, 1>(scratch, GlobalPtr::from_address(from.address()));
        }
        #[cfg(not(lacuna_sm = "80"))]
        let _ = (scratch, from);
    }
    #[inline(always)]
    unsafe fn copy_async<T: Scalar, const N: usize>(self, to: SharedPtr<T>, from: GlobalPtr<T>) {
        // SAFETY: passed on to the caller.
        unsafe { shared::copy_async::<T, N>(to, from) }
    }
    #[inline(always)]
    unsafe fn copy_async_or_zero<T: Scalar, const N: usize>(
        self,
        to: SharedPtr<T>,
        from: GlobalPtr<T>,
        valid: bool,
    ) {
        // SAFETY: passed on to the caller.
        unsafe { shared::copy_async_or_zero::<T, N>(to, from, valid) }
    }
    #[inline(always)]
    fn copy_async_wait<const PENDING: u32>(self) {
        assembly::copy_async_wait::<PENDING>();
    }

    #[inline(always)]
    unsafe fn atomic_add<T: AtomicAdd>(self, to: GlobalMut<T>, value: T) -> T {
        // SAFETY: passed on to the caller.
        unsafe { atomics::device_add(to.address() as *mut T, value) }
    }
    #[inline(always)]
    unsafe fn atomic_max<T: AtomicMax>(self, to: GlobalMut<T>, value: T) -> T {
        // SAFETY: passed on to the caller.
        unsafe { atomics::device_max(to.address() as *mut T, value) }
    }
    #[inline(always)]
    unsafe fn atomic_or(self, to: GlobalMut<u32>, value: u32) -> u32 {
        // SAFETY: passed on to the caller.
        unsafe { atomics::device_or(to.address() as *mut u32, value) }
    }
    #[inline(always)]
    unsafe fn shared_atomic_add<T: AtomicAdd>(self, to: SharedPtr<T>, value: T) -> T {
        // SAFETY: passed on to the caller.
        unsafe { atomics::block_add(shared::pointer(to), value) }
    }
    #[inline(always)]
    unsafe fn shared_atomic_max<T: AtomicMax>(self, to: SharedPtr<T>, value: T) -> T {
        // SAFETY: passed on to the caller.
        unsafe { atomics::block_max(shared::pointer(to), value) }
    }

    #[inline(always)]
    fn fma(self, a: f32, b: f32, c: f32) -> f32 {
        GpuFloat::mul_add(a, b, c)
    }

    assembly! {
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
    #[inline(always)]
    unsafe fn shared_load_matrices<const TRANSPOSED: bool>(self, row: SharedPtr<u16>) -> [u32; 4] {
        // SAFETY: passed on to the caller.
        unsafe { shared::load_matrices::<TRANSPOSED>(row) }
    }
}

/// Passes a value's bits through a shuffle of `cuda_std`, which also tells whether the lane was in reach.
#[inline(always)]
fn shuffled<T: Word>(value: T, shuffle: impl FnOnce(u32) -> (u32, bool)) -> T {
    T::from_bits(shuffle(value.to_bits()).0)
}
