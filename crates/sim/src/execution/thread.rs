//! The thread handle, and its steps. [`device`] makes it a [`Gpu`](lacuna_gpu::Gpu), and [`hopper`] one of compute capability 9.0.
mod device;
mod hopper;

use std::cell::RefCell;
use std::mem;
use std::panic::resume_unwind;

use corosensei::Yielder;
use lacuna_gpu::{Scalar, SharedPtr, WARP};

use crate::execution::context::Pause;
use crate::execution::worker::Worker;
use crate::memory::bulk::BarrierUse;
use crate::memory::global::GlobalAccess;
use crate::memory::shared::SharedAccess;
use crate::report::operation::Operation;
use crate::report::site::Caller;
use crate::synchronisation::call::{BarrierKind, WarpCall, WarpOperation};
use crate::synchronisation::cluster::ClusterCall;
use crate::synchronisation::exchange::Parcel;
use crate::synchronisation::named::NamedCall;
use crate::synchronisation::{barrier, cluster, named, warp};
use crate::tensor::arithmetic::Factors;
use crate::tensor::product::{Layout, Operand, Product};
use crate::tensor::warpgroup::{Operands, WarpgroupCall};

/// One simulated GPU thread, as its kernel sees it. Every step goes through the worker that runs its block.
#[derive(Clone, Copy)]
pub(crate) struct SimThread<'a, 'l> {
    /// The workers that run the blocks of its cluster.
    cluster: &'a [RefCell<Worker<'l>>],
    worker: &'a RefCell<Worker<'l>>,
    yielder: &'a Yielder<(), ()>,
    thread: u32,
    block: [u32; 3],
}

/// Unwinds a thread whose block is given up; carries nothing.
struct Stopped;

impl<'a, 'l> SimThread<'a, 'l> {
    pub(crate) fn new(
        cluster: &'a [RefCell<Worker<'l>>],
        worker: &'a RefCell<Worker<'l>>,
        yielder: &'a Yielder<(), ()>,
        thread: u32,
    ) -> Self {
        let block = {
            let context = &worker.borrow().context;
            context.launch.geometry.block(context.block)
        };
        Self { cluster, worker, yielder, thread, block }
    }

    /// Runs a step on the worker, and then what it asks of this thread.
    #[inline]
    fn step<R>(self, step: impl FnOnce(&mut Worker<'l>) -> R) -> R {
        let (result, pause) = {
            let mut worker = self.worker.borrow_mut();
            let result = step(&mut worker);
            (result, mem::take(&mut worker.context.pause))
        };
        match pause {
            Pause::None => {}
            Pause::GiveWay => self.yielder.suspend(()),
            Pause::Stop => resume_unwind(Box::new(Stopped)),
        }
        result
    }

    #[inline]
    fn global<T: Scalar, const N: usize>(
        self,
        caller: Caller,
        operation: Operation,
        address: u64,
    ) -> GlobalAccess {
        let (bytes, element) = (size_of::<[T; N]>() as u32, size_of::<T>() as u32);
        GlobalAccess { thread: self.thread, caller, operation, address, bytes, element }
    }

    #[inline]
    fn shared<T: Scalar, const N: usize>(
        self,
        caller: Caller,
        operation: Operation,
        at: SharedPtr<T>,
    ) -> SharedAccess {
        let (bytes, element) = (size_of::<[T; N]>() as u32, size_of::<T>() as u32);
        SharedAccess { thread: self.thread, caller, operation, offset: at.offset(), bytes, element }
    }

    /// A step with a barrier of bulk copies: the first lane of the warp does it for all.
    fn bulk(self, caller: Caller, barrier: SharedPtr<u64>, step: impl FnOnce(&mut Worker<'l>, BarrierUse)) {
        if self.thread.is_multiple_of(WARP) {
            let by = BarrierUse { thread: self.thread, caller, at: barrier.offset() };
            self.step(|worker| step(worker, by));
        }
    }

    fn barrier(self, caller: Caller, kind: BarrierKind, predicate: bool) -> u32 {
        self.step(|worker| barrier::reach(&mut worker.context, self.thread, caller, kind, predicate));
        self.yielder.suspend(());
        self.worker.borrow().context.schedule.result(self.thread)
    }

    fn named_barrier(self, caller: Caller, call: NamedCall) {
        if self.step(|worker| named::reach(&mut worker.context, self.thread, caller, call)) {
            self.yielder.suspend(());
        }
    }

    fn cluster_barrier(self, caller: Caller, call: ClusterCall) {
        self.step(|worker| cluster::reach(&mut worker.context, self.thread, caller, call));
        self.yielder.suspend(());
    }

    fn warp(
        self,
        caller: Caller,
        operation: WarpOperation,
        mask: u32,
        value: u32,
        lane: u32,
        width: u32,
    ) -> u32 {
        let call = WarpCall { operation, site: 0, mask, value, lane, width };
        if !self.step(|worker| warp::reach(&mut worker.context, self.thread, caller, call)) {
            return value;
        }
        self.yielder.suspend(());
        self.worker.borrow().context.schedule.result(self.thread)
    }

    fn vote(self, caller: Caller, operation: WarpOperation, mask: u32, predicate: bool) -> u32 {
        self.warp(caller, operation, mask, predicate.into(), 0, WARP)
    }

    /// An operation of the whole warp: gives words to it and gets words back.
    fn aligned(self, caller: Caller, operation: WarpOperation, parcel: Parcel) -> [u32; 4] {
        self.step(|Worker { context, exchange, .. }| {
            warp::reach_aligned(context, exchange, self.thread, caller, operation, parcel);
        });
        self.yielder.suspend(());
        self.worker.borrow().exchange.result(self.thread)
    }

    fn multiply(
        self,
        caller: Caller,
        factors: Factors,
        [a0, a1, a2, a3]: [u32; 4],
        [b0, b1]: [u32; 2],
        c: [f32; 4],
    ) -> [f32; 4] {
        let [c0, c1, c2, c3] = c.map(f32::to_bits);
        let parcel = [a0, a1, a2, a3, b0, b1, c0, c1, c2, c3];
        self.aligned(caller, WarpOperation::Multiply(factors), parcel).map(f32::from_bits)
    }

    fn start_copy(self, to: SharedAccess, from: Option<u64>) {
        self.step(|Worker { context, global, shared, copies, .. }| {
            copies.start(context, global, shared, to, from);
        });
    }

    /// An operation of the whole warpgroup; its warps come one by one.
    fn warpgroup(self, caller: Caller, call: WarpgroupCall, parcel: Parcel, sums: &[f32]) {
        self.step(|Worker { context, exchange, warpgroups, .. }| {
            warpgroups.reach(context, exchange, (self.thread, caller), call, (parcel, sums));
        });
        self.yielder.suspend(());
    }

    /// Nothing counts a thread's registers here; that all four warps say the same is checked.
    fn exchange_registers<const N: u32>(self, caller: Caller, takes: bool) {
        const { assert!(N.is_multiple_of(8) && N >= 24 && N <= 256, "a multiple of 8 from 24 to 256") }
        self.warpgroup(caller, WarpgroupCall::Registers { takes }, [0; 10], &[]);
    }

    fn start_product<const L: usize>(
        self,
        caller: Caller,
        (factors, layout): (Factors, Layout),
        sums: &mut [f32; L],
        operands: Operands,
        registers: [u32; 4],
    ) {
        const { assert!(matches!(L, 16 | 32 | 64), "N is 32, 64 or 128") }
        let call = WarpgroupCall::Multiply(Product { factors, columns: 2 * L as u32, layout });
        let ([[a, b, c], [d, e, f]], [w, x, y, z]) = (operands.map(Operand::words), registers);
        self.warpgroup(caller, call, [a, b, c, d, e, f, w, x, y, z], sums);
        sums.fill(self.worker.borrow().warpgroups.poison(self.thread));
    }

    /// Counts an operation that only computes.
    #[inline]
    fn count(self, caller: Caller, operation: Operation) {
        let context = &mut self.worker.borrow_mut().context;
        let site = context.site(caller, operation);
        context.costs.of(site).executions += 1;
    }
}
