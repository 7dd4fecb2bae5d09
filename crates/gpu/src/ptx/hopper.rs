//! `Hopper` on an NVIDIA GPU.
use core::arch::asm;

use super::intrinsics as llvm;
use super::{Ptx, bulk, memory, warpgroup};
use crate::{CoreMatrices, Hopper, Scalar, SharedPtr, TensorMap};

/// Writes a warpgroup's products of a type: of panels, of core matrices, with B column by column, and with A in registers.
macro_rules! warpgroup_products {
    ($($panels:ident, $cores:ident, $columns:ident, $registers:ident:
        $of_panels:ident, $of_cores:ident, $of_columns:ident, $of_registers:ident;)*) => {$(
        #[inline(always)]
        unsafe fn $panels<const L: usize, const PANEL: u32>(
            self,
            sums: &mut [f32; L],
            a: SharedPtr<u16>,
            b: SharedPtr<u16>,
        ) {
            let [a, b] = [a, b].map(|place| memory::shared_address(place.offset()));
            // SAFETY: passed on to the caller.
            unsafe { warpgroup::$of_panels::<L, PANEL>(sums, a, b) }
        }
        #[inline(always)]
        unsafe fn $cores<const L: usize>(self, sums: &mut [f32; L], a: CoreMatrices, b: CoreMatrices) {
            // SAFETY: passed on to the caller.
            unsafe { warpgroup::$of_cores(sums, a, b) }
        }
        #[inline(always)]
        unsafe fn $columns<const L: usize>(self, sums: &mut [f32; L], a: SharedPtr<u16>, b: SharedPtr<u16>) {
            let [a, b] = [a, b].map(|place| memory::shared_address(place.offset()));
            // SAFETY: passed on to the caller.
            unsafe { warpgroup::$of_columns(sums, a, b) }
        }
        #[inline(always)]
        unsafe fn $registers<const L: usize, const PANEL: u32>(
            self,
            sums: &mut [f32; L],
            a: [u32; 4],
            b: SharedPtr<u16>,
        ) {
            let b = memory::shared_address(b.offset());
            // SAFETY: passed on to the caller.
            unsafe { warpgroup::$of_registers::<L, PANEL>(sums, a, b) }
        }
    )*};
}

impl Hopper for Ptx {
    #[inline(always)]
    fn cluster_arrive(self) {
        // SAFETY: the trait's contract brings every thread of the cluster here, in whole warps.
        unsafe { llvm::cluster_arrive() }
    }
    #[inline(always)]
    fn cluster_arrive_relaxed(self) {
        // SAFETY: as for `cluster_arrive`.
        unsafe { llvm::cluster_arrive_relaxed() }
    }
    #[inline(always)]
    fn cluster_wait(self) {
        // SAFETY: as for `cluster_arrive`.
        unsafe { llvm::cluster_wait() }
    }

    #[inline(always)]
    unsafe fn cluster_store<T: Scalar, const N: usize>(self, block: u32, to: SharedPtr<T>, value: [T; N]) {
        // SAFETY: passed on to the caller.
        unsafe {
            let to = memory::cluster_address(memory::shared_address(to.offset()), block);
            memory::cluster_store(to, value);
        }
    }

    #[inline(always)]
    fn bulk_prefetch(self, map: &TensorMap) {
        // SAFETY: a hint, of a kernel's parameter.
        unsafe { bulk::prefetch(map.address()) }
    }
    #[inline(always)]
    unsafe fn bulk_barrier_init(self, barrier: SharedPtr<u64>) {
        // SAFETY: passed on to the caller.
        unsafe { bulk::init(memory::shared_address(barrier.offset())) }
    }
    #[inline(always)]
    unsafe fn bulk_expect(self, barrier: SharedPtr<u64>, bytes: u32) {
        // SAFETY: passed on to the caller.
        unsafe { bulk::expect(memory::shared_address(barrier.offset()), bytes) }
    }
    #[inline(always)]
    unsafe fn bulk_copy(self, to: SharedPtr<u16>, map: &TensorMap, at: [u32; 3], barrier: SharedPtr<u64>) {
        let [to, barrier] = [to.offset(), barrier.offset()].map(memory::shared_address);
        // SAFETY: passed on to the caller.
        unsafe { bulk::copy(to, map.address(), at, barrier) }
    }
    #[inline(always)]
    unsafe fn bulk_wait(self, barrier: SharedPtr<u64>, turn: u32) {
        // SAFETY: passed on to the caller.
        unsafe { bulk::wait(memory::shared_address(barrier.offset()), turn & 1) }
    }

    #[inline(always)]
    fn fence_async_proxy(self) {
        // SAFETY: has no precondition.
        unsafe { asm!("fence.proxy.async.shared::cta;", options(nostack)) }
    }
    #[inline(always)]
    fn warpgroup_arrive(self) {
        // SAFETY: the trait's contract puts the whole warpgroup here.
        unsafe { asm!("wgmma.fence.sync.aligned;", options(nostack)) }
    }
    warpgroup_products! {
        warpgroup_mma_f16, warpgroup_mma_f16_cores, warpgroup_mma_f16_columns, warpgroup_mma_f16_registers:
            mma_f16, mma_f16_cores, mma_f16_columns, mma_f16_registers;
        warpgroup_mma_bf16, warpgroup_mma_bf16_cores, warpgroup_mma_bf16_columns, warpgroup_mma_bf16_registers:
            mma_bf16, mma_bf16_cores, mma_bf16_columns, mma_bf16_registers;
    }
    #[inline(always)]
    unsafe fn warpgroup_mma_tf32_registers<const L: usize>(
        self,
        sums: &mut [f32; L],
        a: [f32; 4],
        b: SharedPtr<f32>,
    ) {
        // SAFETY: passed on to the caller.
        unsafe { warpgroup::mma_tf32_registers(sums, a, memory::shared_address(b.offset())) };
    }
    #[inline(always)]
    fn warpgroup_give_registers<const N: u32>(self) {
        // SAFETY: the trait's contract puts the whole warpgroup here.
        unsafe { asm!("setmaxnreg.dec.sync.aligned.u32 {0};", const N, options(nostack)) }
    }
    #[inline(always)]
    fn warpgroup_take_registers<const N: u32>(self) {
        // SAFETY: as above.
        unsafe { asm!("setmaxnreg.inc.sync.aligned.u32 {0};", const N, options(nostack)) }
    }
    #[inline(always)]
    fn warpgroup_commit(self) {
        // SAFETY: the trait's contract puts the whole warpgroup here.
        unsafe { asm!("wgmma.commit_group.sync.aligned;", options(nostack)) }
    }
    #[inline(always)]
    fn warpgroup_wait<const PENDING: u32, const L: usize>(self, sums: &mut [f32; L]) {
        warpgroup::wait::<PENDING, L>(sums);
    }
}
