//! [`Gpu`] on the host.
use std::panic::Location;

use lacuna_gpu::{
    AtomicAdd, AtomicMax, AtomicOp, Bf16, F16, GlobalMut, GlobalPtr, Gpu, Scalar, SharedPtr, WARP, Word,
};

use super::SimThread;
use crate::execution::worker::Worker;
use crate::memory::bits::{from_words, to_words};
use crate::report::operation::Operation;
use crate::synchronisation::call::{BarrierKind, WarpOperation};
use crate::synchronisation::named::NamedCall;
use crate::tensor::arithmetic::Factors;

// The safety contract of the unsafe methods is the kernel's towards the device. Here nothing depends on it: each
// access is checked, and a broken promise is a finding.
impl Gpu for SimThread<'_, '_> {
    fn thread_idx_x(self) -> u32 {
        self.thread
    }
    fn thread_idx_y(self) -> u32 {
        0
    }
    fn thread_idx_z(self) -> u32 {
        0
    }
    fn block_idx_x(self) -> u32 {
        self.block[0]
    }
    fn block_idx_y(self) -> u32 {
        self.block[1]
    }
    fn block_idx_z(self) -> u32 {
        self.block[2]
    }
    fn block_dim_x(self) -> u32 {
        self.worker.borrow().context.launch.geometry.threads
    }
    fn block_dim_y(self) -> u32 {
        1
    }
    fn block_dim_z(self) -> u32 {
        1
    }
    fn grid_dim_x(self) -> u32 {
        self.worker.borrow().context.launch.geometry.grid[0]
    }
    fn grid_dim_y(self) -> u32 {
        self.worker.borrow().context.launch.geometry.grid[1]
    }
    fn grid_dim_z(self) -> u32 {
        self.worker.borrow().context.launch.geometry.grid[2]
    }
    fn lane_id(self) -> u32 {
        self.thread % WARP
    }

    fn sync_threads(self) {
        self.barrier(Location::caller(), BarrierKind::Plain, false);
    }
    fn sync_threads_or(self, predicate: bool) -> bool {
        self.barrier(Location::caller(), BarrierKind::Or, predicate) != 0
    }
    fn sync_threads_count(self, predicate: bool) -> u32 {
        self.barrier(Location::caller(), BarrierKind::Count, predicate)
    }
    fn barrier_sync(self, id: u32, threads: u32) {
        self.named_barrier(Location::caller(), NamedCall { id, threads, waits: true });
    }
    fn barrier_arrive(self, id: u32, threads: u32) {
        self.named_barrier(Location::caller(), NamedCall { id, threads, waits: false });
    }
    fn sync_warp(self, mask: u32) {
        self.warp(Location::caller(), WarpOperation::Sync, mask, 0, 0, WARP);
    }
    fn thread_fence(self) {
        let caller = Location::caller();
        self.step(|Worker { context, global, .. }| global.fence(context, self.thread, caller));
    }

    fn warp_shuffle_idx<T: Word>(self, mask: u32, value: T, lane: u32, width: u32) -> T {
        T::from_bits(self.warp(
            Location::caller(),
            WarpOperation::ShuffleIdx,
            mask,
            value.to_bits(),
            lane,
            width,
        ))
    }
    fn warp_shuffle_down<T: Word>(self, mask: u32, value: T, delta: u32, width: u32) -> T {
        let operation = WarpOperation::ShuffleDown;
        T::from_bits(self.warp(Location::caller(), operation, mask, value.to_bits(), delta, width))
    }
    fn warp_shuffle_up<T: Word>(self, mask: u32, value: T, delta: u32, width: u32) -> T {
        T::from_bits(self.warp(
            Location::caller(),
            WarpOperation::ShuffleUp,
            mask,
            value.to_bits(),
            delta,
            width,
        ))
    }
    fn warp_shuffle_xor<T: Word>(self, mask: u32, value: T, lanes: u32, width: u32) -> T {
        T::from_bits(self.warp(
            Location::caller(),
            WarpOperation::ShuffleXor,
            mask,
            value.to_bits(),
            lanes,
            width,
        ))
    }
    fn warp_all(self, mask: u32, predicate: bool) -> bool {
        self.vote(Location::caller(), WarpOperation::All, mask, predicate) != 0
    }
    fn warp_any(self, mask: u32, predicate: bool) -> bool {
        self.vote(Location::caller(), WarpOperation::Any, mask, predicate) != 0
    }
    fn warp_ballot(self, mask: u32, predicate: bool) -> u32 {
        self.vote(Location::caller(), WarpOperation::Ballot, mask, predicate)
    }

    unsafe fn load<T: Scalar, const N: usize>(self, from: GlobalMut<T>) -> [T; N] {
        let access = self.global::<T, N>(Location::caller(), Operation::Load, from.address());
        from_words(self.step(|Worker { context, global, .. }| global.load(context, access)))
    }
    unsafe fn load_readonly<T: Scalar, const N: usize>(self, from: GlobalPtr<T>) -> [T; N] {
        let access = self.global::<T, N>(Location::caller(), Operation::ReadonlyLoad, from.address());
        from_words(self.step(|Worker { context, global, .. }| global.load(context, access)))
    }
    unsafe fn load_streaming<T: Scalar, const N: usize>(self, from: GlobalPtr<T>) -> [T; N] {
        let access = self.global::<T, N>(Location::caller(), Operation::StreamingLoad, from.address());
        from_words(self.step(|Worker { context, global, .. }| global.load(context, access)))
    }
    unsafe fn store<T: Scalar, const N: usize>(self, to: GlobalMut<T>, value: [T; N]) {
        let access = self.global::<T, N>(Location::caller(), Operation::Store, to.address());
        self.step(|Worker { context, global, .. }| global.store(context, access, to_words(value)));
    }
    unsafe fn store_streaming<T: Scalar, const N: usize>(self, to: GlobalMut<T>, value: [T; N]) {
        let access = self.global::<T, N>(Location::caller(), Operation::StreamingStore, to.address());
        self.step(|Worker { context, global, .. }| global.store(context, access, to_words(value)));
    }
    unsafe fn shared_load<T: Scalar, const N: usize>(self, from: SharedPtr<T>) -> [T; N] {
        let access = self.shared::<T, N>(Location::caller(), Operation::SharedLoad, from);
        from_words(self.step(|Worker { context, shared, .. }| shared.load(context, access)))
    }
    unsafe fn shared_store<T: Scalar, const N: usize>(self, to: SharedPtr<T>, value: [T; N]) {
        let access = self.shared::<T, N>(Location::caller(), Operation::SharedStore, to);
        self.step(|Worker { context, shared, .. }| shared.store(context, access, to_words(value)));
    }

    // Launches come one after the other here; but a thread that does not wait, or too late, is found.
    fn grid_dependency_wait(self) {
        self.worker.borrow_mut().global.grid_dependency_wait(self.thread);
    }

    unsafe fn prefetch_l1<T: Scalar>(self, scratch: SharedPtr<u32>, from: GlobalPtr<T>) {
        // As a load whose value nobody takes, and a store that spoils what someone else keeps there.
        let spoiled = self.shared::<u32, 1>(Location::caller(), Operation::SharedStore, scratch);
        self.step(|Worker { context, shared, .. }| shared.store(context, spoiled, to_words([u32::MAX])));
        let access = self.global::<u32, 1>(Location::caller(), Operation::ReadonlyLoad, from.address());
        self.step(|Worker { context, global, .. }| global.load(context, access));
    }
    unsafe fn copy_async<T: Scalar, const N: usize>(self, to: SharedPtr<T>, from: GlobalPtr<T>) {
        const {
            assert!(matches!(size_of::<[T; N]>(), 4 | 8 | 16), "an asynchronous copy moves 4, 8 or 16 bytes");
        }
        let to = self.shared::<T, N>(Location::caller(), Operation::CopyAsyncWrite, to);
        self.start_copy(to, Some(from.address()));
    }
    unsafe fn copy_async_or_zero<T: Scalar, const N: usize>(
        self,
        to: SharedPtr<T>,
        from: GlobalPtr<T>,
        valid: bool,
    ) {
        const {
            assert!(matches!(size_of::<[T; N]>(), 4 | 8 | 16), "an asynchronous copy moves 4, 8 or 16 bytes");
        }
        let to = self.shared::<T, N>(Location::caller(), Operation::CopyAsyncWrite, to);
        self.start_copy(to, valid.then_some(from.address()));
    }
    fn copy_async_commit(self) {
        let caller = Location::caller();
        self.step(|Worker { context, copies, .. }| copies.commit(context, self.thread, caller));
    }
    fn copy_async_wait<const PENDING: u32>(self) {
        let caller = Location::caller();
        self.step(|Worker { context, shared, copies, .. }| {
            copies.wait(context, shared, (self.thread, caller), PENDING);
        });
    }

    unsafe fn atomic_add<T: AtomicAdd>(self, to: GlobalMut<T>, value: T) -> T {
        let access = self.global::<T, 1>(Location::caller(), Operation::Atomic, to.address());
        self.step(|Worker { context, global, .. }| global.atomic(context, access, AtomicOp::Add, value))
    }
    unsafe fn atomic_max<T: AtomicMax>(self, to: GlobalMut<T>, value: T) -> T {
        let access = self.global::<T, 1>(Location::caller(), Operation::Atomic, to.address());
        self.step(|Worker { context, global, .. }| global.atomic(context, access, AtomicOp::Max, value))
    }
    unsafe fn atomic_or(self, to: GlobalMut<u32>, value: u32) -> u32 {
        let access = self.global::<u32, 1>(Location::caller(), Operation::Atomic, to.address());
        self.step(|Worker { context, global, .. }| global.atomic(context, access, AtomicOp::Or, value))
    }
    unsafe fn shared_atomic_add<T: AtomicAdd>(self, to: SharedPtr<T>, value: T) -> T {
        let access = self.shared::<T, 1>(Location::caller(), Operation::SharedAtomic, to);
        self.step(|Worker { context, shared, .. }| shared.atomic(context, access, AtomicOp::Add, value))
    }
    unsafe fn shared_atomic_max<T: AtomicMax>(self, to: SharedPtr<T>, value: T) -> T {
        let access = self.shared::<T, 1>(Location::caller(), Operation::SharedAtomic, to);
        self.step(|Worker { context, shared, .. }| shared.atomic(context, access, AtomicOp::Max, value))
    }

    #[inline]
    fn fma(self, a: f32, b: f32, c: f32) -> f32 {
        self.count(Location::caller(), Operation::Fma);
        a.mul_add(b, c)
    }
    fn max_nan(self, a: f32, b: f32) -> f32 {
        if a.is_nan() || b.is_nan() {
            f32::from_bits(0x7fff_ffff)
        } else if b > a {
            b
        } else {
            a
        }
    }
    fn exp2_approx(self, x: f32) -> f32 {
        self.count(Location::caller(), Operation::Special);
        x.exp2()
    }
    fn exp2_flush(self, x: f32) -> f32 {
        self.count(Location::caller(), Operation::Special);
        let y = x.exp2();
        if y < f32::MIN_POSITIVE { 0.0 } else { y }
    }
    fn log2_approx(self, x: f32) -> f32 {
        self.count(Location::caller(), Operation::Special);
        x.log2()
    }
    fn rcp_approx(self, x: f32) -> f32 {
        self.count(Location::caller(), Operation::Special);
        x.recip()
    }

    fn f16_to_f32(self, x: F16) -> f32 {
        self.count(Location::caller(), Operation::Convert);
        half::f16::from_bits(x.0).to_f32()
    }
    fn f32_to_f16(self, x: f32) -> F16 {
        self.count(Location::caller(), Operation::Convert);
        F16(half::f16::from_f32(x).to_bits())
    }

    fn f32_to_bf16(self, x: f32) -> Bf16 {
        self.count(Location::caller(), Operation::Convert);
        Bf16(half::bf16::from_f32(x).to_bits())
    }
    fn pack_bf16(self, low: f32, high: f32) -> u32 {
        self.count(Location::caller(), Operation::Convert);
        let [low, high] = [low, high].map(|x| u32::from(half::bf16::from_f32(x).to_bits()));
        high << 16 | low
    }
    fn pack_f16(self, low: f32, high: f32) -> u32 {
        self.count(Location::caller(), Operation::Convert);
        let [low, high] = [low, high].map(|x| u32::from(half::f16::from_f32(x).to_bits()));
        high << 16 | low
    }
    fn mma_tf32(self, a: [f32; 4], b: [f32; 2], c: [f32; 4]) -> [f32; 4] {
        let (a, b) = (a.map(f32::to_bits), b.map(f32::to_bits));
        self.multiply(Location::caller(), Factors::Tf32, a, b, c)
    }
    fn mma_f16(self, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        self.multiply(Location::caller(), Factors::F16, a, b, c)
    }
    fn mma_bf16(self, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        self.multiply(Location::caller(), Factors::Bf16, a, b, c)
    }
    unsafe fn shared_load_matrices<const TRANSPOSED: bool>(self, row: SharedPtr<u16>) -> [u32; 4] {
        let caller = Location::caller();
        let access = self.shared::<u16, 8>(caller, Operation::SharedLoadMatrices, row);
        let [x, y, z, w] =
            from_words(self.step(|Worker { context, shared, .. }| shared.load(context, access)));
        let operation = WarpOperation::LoadMatrices { transposed: TRANSPOSED };
        self.aligned(caller, operation, [x, y, z, w, 0, 0, 0, 0, 0, 0])
    }
}
