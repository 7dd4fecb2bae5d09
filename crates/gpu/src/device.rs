//! The trait itself.
use crate::{AtomicAdd, AtomicMax, Bf16, F16, GlobalMut, GlobalPtr, Hopper, Scalar, SharedPtr, Word};

/// Threads in a warp.
pub const WARP: u32 = 32;
/// The mask that names every lane of a warp.
pub const FULL_WARP: u32 = u32::MAX;

/// One thread of a running kernel, and all that it may do outside its registers; what only compute capability 9.0 can is in [`Hopper`].
///
/// Memory operations move `[T; N]` in one instruction: `N` is 1, 2, 4 or 8, at most 16 bytes in all, and the
/// address is a multiple of that size. Lane masks name the lanes that take part; every named lane that has not
/// exited must reach the same call, and the caller must be named.
///
/// # Safety of the unsafe methods
/// The caller promises that the whole access lies inside live memory, is aligned to its own size, and does not
/// race with another thread's. The simulator checks these promises; a GPU does not.
pub trait Gpu: Hopper {
    /// Index of this thread in its block, along x.
    fn thread_idx_x(self) -> u32;
    /// Index of this thread in its block, along y.
    fn thread_idx_y(self) -> u32;
    /// Index of this thread in its block, along z.
    fn thread_idx_z(self) -> u32;
    /// Index of this block in the grid, along x.
    fn block_idx_x(self) -> u32;
    /// Index of this block in the grid, along y.
    fn block_idx_y(self) -> u32;
    /// Index of this block in the grid, along z.
    fn block_idx_z(self) -> u32;
    /// Threads of a block, along x.
    fn block_dim_x(self) -> u32;
    /// Threads of a block, along y.
    fn block_dim_y(self) -> u32;
    /// Threads of a block, along z.
    fn block_dim_z(self) -> u32;
    /// Blocks of the grid, along x.
    fn grid_dim_x(self) -> u32;
    /// Blocks of the grid, along y.
    fn grid_dim_y(self) -> u32;
    /// Blocks of the grid, along z.
    fn grid_dim_z(self) -> u32;
    /// Index of this thread in its warp.
    fn lane_id(self) -> u32;

    /// Waits until every thread of the block that has not exited is here; orders memory among them.
    #[track_caller]
    fn sync_threads(self);
    /// As [`sync_threads`](Gpu::sync_threads), and tells whether `predicate` holds for any thread.
    #[track_caller]
    fn sync_threads_or(self, predicate: bool) -> bool;
    /// As [`sync_threads`](Gpu::sync_threads), and tells for how many threads `predicate` holds.
    #[track_caller]
    fn sync_threads_count(self, predicate: bool) -> u32;
    /// Waits at the block's barrier `id` (1 to 15) until `threads` threads, a multiple of 32, have come to it, by this call
    /// or by [`barrier_arrive`](Gpu::barrier_arrive); orders memory among them. Whole warps come.
    #[track_caller]
    fn barrier_sync(self, id: u32, threads: u32);
    /// Arrives at the block's barrier `id`, as [`barrier_sync`](Gpu::barrier_sync), without waiting: what this thread has
    /// done is ordered before what the waiting threads do next.
    #[track_caller]
    fn barrier_arrive(self, id: u32, threads: u32);
    /// Waits until the lanes of `mask` are here; orders memory among them.
    #[track_caller]
    fn sync_warp(self, mask: u32);
    /// A memory fence: this thread's writes so far are visible to the whole GPU before its later writes.
    #[track_caller]
    fn thread_fence(self);

    /// The value of lane `lane` of the caller's segment of `width` lanes (a power of two, at most 32).
    #[track_caller]
    fn warp_shuffle_idx<T: Word>(self, mask: u32, value: T, lane: u32, width: u32) -> T;
    /// The value of the lane `delta` above; the caller's own where that leaves its segment of `width` lanes.
    #[track_caller]
    fn warp_shuffle_down<T: Word>(self, mask: u32, value: T, delta: u32, width: u32) -> T;
    /// The value of the lane `delta` below; the caller's own where that leaves its segment of `width` lanes.
    #[track_caller]
    fn warp_shuffle_up<T: Word>(self, mask: u32, value: T, delta: u32, width: u32) -> T;
    /// The value of the lane whose index differs by exclusive or with `lanes`, less than `width`.
    #[track_caller]
    fn warp_shuffle_xor<T: Word>(self, mask: u32, value: T, lanes: u32, width: u32) -> T;
    /// Whether `predicate` holds for every lane of `mask`.
    #[track_caller]
    fn warp_all(self, mask: u32, predicate: bool) -> bool;
    /// Whether `predicate` holds for any lane of `mask`.
    #[track_caller]
    fn warp_any(self, mask: u32, predicate: bool) -> bool;
    /// The lanes of `mask` for which `predicate` holds, a bit each.
    #[track_caller]
    fn warp_ballot(self, mask: u32, predicate: bool) -> u32;

    /// Reads global memory that the kernel itself may write.
    ///
    /// # Safety
    /// See the trait.
    #[track_caller]
    unsafe fn load<T: Scalar, const N: usize>(self, from: GlobalMut<T>) -> [T; N];
    /// Reads global memory through the read-only path; kept in L1 and L2.
    ///
    /// # Safety
    /// See the trait; nobody writes this memory while the kernel runs.
    #[track_caller]
    unsafe fn load_readonly<T: Scalar, const N: usize>(self, from: GlobalPtr<T>) -> [T; N];
    /// Reads global memory through the read-only path, for data that this SM reads once: it does not displace L1.
    ///
    /// # Safety
    /// See the trait; nobody writes this memory while the kernel runs.
    #[track_caller]
    unsafe fn load_streaming<T: Scalar, const N: usize>(self, from: GlobalPtr<T>) -> [T; N];
    /// Writes global memory.
    ///
    /// # Safety
    /// See the trait.
    #[track_caller]
    unsafe fn store<T: Scalar, const N: usize>(self, to: GlobalMut<T>, value: [T; N]);
    /// Writes global memory that this kernel does not read any more: first to leave the caches.
    ///
    /// # Safety
    /// See the trait.
    #[track_caller]
    unsafe fn store_streaming<T: Scalar, const N: usize>(self, to: GlobalMut<T>, value: [T; N]);
    /// Reads shared memory.
    ///
    /// # Safety
    /// See the trait.
    #[track_caller]
    unsafe fn shared_load<T: Scalar, const N: usize>(self, from: SharedPtr<T>) -> [T; N];
    /// Writes shared memory.
    ///
    /// # Safety
    /// See the trait.
    #[track_caller]
    unsafe fn shared_store<T: Scalar, const N: usize>(self, to: SharedPtr<T>, value: [T; N]);

    /// Waits until the launch before this one in the stream has ended and what it wrote is there. A kernel that says so
    /// (`EARLY_PROLOGUE`) calls it once, in each thread that does anything after it; for the others it is done before they begin.
    /// Before sm_90 it does nothing, as no launch begins early.
    #[track_caller]
    fn grid_dependency_wait(self);

    /// Prefetches to L1 the 32 bytes in which the four at `from` lie, for later loads of this SM. Nobody waits for it, and it
    /// takes no register. What the four bytes of shared memory at `scratch` hold is undefined from now on. Before sm_80
    /// it does nothing.
    ///
    /// # Safety
    /// See the trait; `from` is a multiple of four. Nobody else uses `scratch`, but for more of these.
    #[track_caller]
    unsafe fn prefetch_l1<T: Scalar>(self, scratch: SharedPtr<u32>, from: GlobalPtr<T>);

    /// Starts copying `N` elements (4, 8 or 16 bytes in all) from global to shared memory. They may be read after
    /// [`copy_async_wait`](Gpu::copy_async_wait), and by other threads after a barrier that follows it. sm_80.
    ///
    /// # Safety
    /// See the trait; nobody touches the destination until the wait, nor writes the source.
    #[track_caller]
    unsafe fn copy_async<T: Scalar, const N: usize>(self, to: SharedPtr<T>, from: GlobalPtr<T>);
    /// As [`copy_async`](Gpu::copy_async) where `valid`; otherwise starts writing zeros, and reads nothing. sm_80.
    ///
    /// # Safety
    /// As for `copy_async`; `from` need not be live where not `valid`.
    #[track_caller]
    unsafe fn copy_async_or_zero<T: Scalar, const N: usize>(
        self,
        to: SharedPtr<T>,
        from: GlobalPtr<T>,
        valid: bool,
    );
    /// Commits this thread's copies since the last commit as a group. sm_80.
    #[track_caller]
    fn copy_async_commit(self);
    /// Waits until at most `PENDING` of this thread's groups are still under way. sm_80.
    #[track_caller]
    fn copy_async_wait<const PENDING: u32>(self);

    /// Adds to global memory atomically, and gives the old value. The order among threads is not defined.
    ///
    /// # Safety
    /// See the trait; atomics do not race with each other.
    #[track_caller]
    unsafe fn atomic_add<T: AtomicAdd>(self, to: GlobalMut<T>, value: T) -> T;
    /// Replaces global memory by its maximum with `value` atomically, and gives the old value.
    ///
    /// # Safety
    /// See the trait; atomics do not race with each other.
    #[track_caller]
    unsafe fn atomic_max<T: AtomicMax>(self, to: GlobalMut<T>, value: T) -> T;
    /// Sets the bits of `value` in global memory atomically, and gives the old value.
    ///
    /// # Safety
    /// See the trait; atomics do not race with each other.
    #[track_caller]
    unsafe fn atomic_or(self, to: GlobalMut<u32>, value: u32) -> u32;
    /// Adds to shared memory atomically, and gives the old value.
    ///
    /// # Safety
    /// See the trait; atomics do not race with each other.
    #[track_caller]
    unsafe fn shared_atomic_add<T: AtomicAdd>(self, to: SharedPtr<T>, value: T) -> T;
    /// Replaces shared memory by its maximum with `value` atomically, and gives the old value.
    ///
    /// # Safety
    /// See the trait; atomics do not race with each other.
    #[track_caller]
    unsafe fn shared_atomic_max<T: AtomicMax>(self, to: SharedPtr<T>, value: T) -> T;

    /// `a · b + c`, rounded once.
    #[track_caller]
    fn fma(self, a: f32, b: f32, c: f32) -> f32;
    /// The greater of two numbers, NaN of the bits 7fffffff if one of them is NaN. Of zeros of both signs it is either.
    #[track_caller]
    fn max_nan(self, a: f32, b: f32) -> f32;
    /// 2 to the power `x`, to 2 ulp; subnormal results are kept.
    #[track_caller]
    fn exp2_approx(self, x: f32) -> f32;
    /// 2 to the power `x`, to 2 ulp; 0 where that is subnormal. A quarter of the instructions of
    /// [`exp2_approx`](Gpu::exp2_approx).
    #[track_caller]
    fn exp2_flush(self, x: f32) -> f32;
    /// The logarithm of `x` to base 2: within 2⁻²² of it where `x` is from 0.5 to 2, and within 2⁻²² of its size elsewhere.
    #[track_caller]
    fn log2_approx(self, x: f32) -> f32;
    /// 1 / `x`, to 1 ulp.
    #[track_caller]
    fn rcp_approx(self, x: f32) -> f32;

    /// Converts a binary16 number to `f32`; exact.
    #[track_caller]
    fn f16_to_f32(self, x: F16) -> f32;
    /// Converts `f32` to the nearest binary16 number, ties to even; infinite from 65,520 on.
    #[track_caller]
    fn f32_to_f16(self, x: f32) -> F16;

    /// Converts `f32` to the nearest bfloat16 number, ties to even. A NaN stays one. An instruction from sm_80 on, a few before.
    #[track_caller]
    fn f32_to_bf16(self, x: f32) -> Bf16;
    /// Two numbers as bfloat16, each the nearest, ties to even: `low` in the lower half of the word. sm_80.
    #[track_caller]
    fn pack_bf16(self, low: f32, high: f32) -> u32;
    /// Two numbers as binary16, each as [`f32_to_f16`](Gpu::f32_to_f16) gives it: `low` in the lower half of the word. sm_80.
    #[track_caller]
    fn pack_f16(self, low: f32, high: f32) -> u32;

    /// `A·B + C` on tensor cores, by the whole warp: A 16×8 and B 8×8 in TF32 (of each `f32` the sign, 8 exponent and 10
    /// mantissa bits count), sums in f32. With `g = lane / 4` and `t = lane % 4` a lane holds of A (g, t), (g+8, t),
    /// (g, t+4), (g+8, t+4); of B (t, g), (t+4, g); of C and the result (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1). sm_80.
    #[track_caller]
    fn mma_tf32(self, a: [f32; 4], b: [f32; 2], c: [f32; 4]) -> [f32; 4];
    /// `A·B + C` on tensor cores, by the whole warp: A 16×16 and B 16×8 in halves, sums in f32. With `g = lane / 4` and
    /// `t = lane % 4` a lane holds pairs, the lower index in the lower bits: of A (g, 2t), (g+8, 2t), (g, 2t+8),
    /// (g+8, 2t+8), each with its right neighbour; of B (2t, g), (2t+8, g), each with its lower neighbour; of C as
    /// [`mma_tf32`](Gpu::mma_tf32). sm_80.
    #[track_caller]
    fn mma_f16(self, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];
    /// As [`mma_f16`](Gpu::mma_f16), with bfloat16. sm_80.
    #[track_caller]
    fn mma_bf16(self, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];
    /// Loads four 8×8 matrices of 16-bit elements from shared memory, by the whole warp. Lane `8·i + r` gives the address
    /// of row `r` of matrix `i`, 16 bytes; lane `l` receives, of matrix `i` in word `i`, the elements (l/4, 2·(l%4)) and
    /// its right neighbour; of the transposed matrix where `TRANSPOSED`.
    ///
    /// # Safety
    /// See the trait, for the 16 bytes at each lane's address.
    #[track_caller]
    unsafe fn shared_load_matrices<const TRANSPOSED: bool>(self, row: SharedPtr<u16>) -> [u32; 4];
}
