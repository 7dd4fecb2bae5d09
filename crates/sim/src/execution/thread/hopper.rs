//! [`Hopper`] on the host.
use std::panic::Location;

use lacuna_gpu::{CoreMatrices, Hopper, Scalar, SharedPtr, TensorMap};

use super::SimThread;
use crate::execution::worker::Worker;
use crate::memory::bits::to_words;
use crate::memory::cluster_store::ClusterStore;
use crate::report::operation::Operation;
use crate::synchronisation::cluster::ClusterCall;
use crate::tensor::arithmetic::Factors;
use crate::tensor::product::{Layout, Operand};
use crate::tensor::warpgroup::WarpgroupCall;

/// What a product has in registers that reads both operands from shared memory.
const NO_REGISTERS: [u32; 4] = [0; 4];

/// Writes a warpgroup's products of a type: of panels, of core matrices, with B column by column, and with A in registers.
macro_rules! warpgroup_products {
    ($factors:ident: $panels:ident, $cores:ident, $columns:ident, $registers:ident) => {
        unsafe fn $panels<const L: usize, const PANEL: u32>(
            self,
            sums: &mut [f32; L],
            a: SharedPtr<u16>,
            b: SharedPtr<u16>,
        ) {
            let kind = (Factors::$factors, Layout::Panels { apart: PANEL });
            let operands = [a, b].map(|place| Operand::of_panels(place.offset()));
            self.start_product(Location::caller(), kind, sums, operands, NO_REGISTERS);
        }
        unsafe fn $cores<const L: usize>(self, sums: &mut [f32; L], a: CoreMatrices, b: CoreMatrices) {
            let (kind, operands) = ((Factors::$factors, Layout::Cores), [a, b].map(Operand::from));
            self.start_product(Location::caller(), kind, sums, operands, NO_REGISTERS);
        }
        unsafe fn $columns<const L: usize>(self, sums: &mut [f32; L], a: SharedPtr<u16>, b: SharedPtr<u16>) {
            let kind = (Factors::$factors, Layout::PanelColumns);
            let operands = [a, b].map(|place| Operand::of_panels(place.offset()));
            self.start_product(Location::caller(), kind, sums, operands, NO_REGISTERS);
        }
        unsafe fn $registers<const L: usize, const PANEL: u32>(
            self,
            sums: &mut [f32; L],
            a: [u32; 4],
            b: SharedPtr<u16>,
        ) {
            let kind = (Factors::$factors, Layout::Registers { apart: PANEL });
            let operands = [0, b.offset()].map(Operand::of_panels);
            self.start_product(Location::caller(), kind, sums, operands, a);
        }
    };
}

// As in `device`, nothing depends on the safety contract of the unsafe methods.
impl Hopper for SimThread<'_, '_> {
    fn cluster_arrive(self) {
        self.cluster_barrier(Location::caller(), ClusterCall::Arrive);
    }
    fn cluster_arrive_relaxed(self) {
        self.cluster_barrier(Location::caller(), ClusterCall::ArriveRelaxed);
    }
    fn cluster_wait(self) {
        self.cluster_barrier(Location::caller(), ClusterCall::Wait);
    }
    unsafe fn cluster_store<T: Scalar, const N: usize>(self, block: u32, to: SharedPtr<T>, value: [T; N]) {
        let access = self.shared::<T, N>(Location::caller(), Operation::ClusterStore, to);
        let start = |Worker { context, shared, .. }: &mut Worker<'_>| {
            ClusterStore::start(context, shared, access, block)
        };
        let Some(store) = self.step(start) else { return };
        let received = {
            let Worker { context, shared, .. } = &mut *self.cluster[block as usize].borrow_mut();
            store.receive(context, shared, to_words(value))
        };
        self.step(|Worker { context, shared, .. }| store.end(context, shared, received));
    }

    fn bulk_prefetch(self, _: &TensorMap) {}
    unsafe fn bulk_barrier_init(self, barrier: SharedPtr<u64>) {
        self.bulk(Location::caller(), barrier, |Worker { context, shared, bulk, .. }, by| {
            bulk.init(context, shared, by);
        });
    }
    unsafe fn bulk_expect(self, barrier: SharedPtr<u64>, bytes: u32) {
        self.bulk(Location::caller(), barrier, |Worker { context, bulk, .. }, by| {
            bulk.expect(context, by, bytes);
        });
    }
    unsafe fn bulk_copy(self, to: SharedPtr<u16>, map: &TensorMap, at: [u32; 3], barrier: SharedPtr<u64>) {
        self.bulk(Location::caller(), barrier, |Worker { context, global, shared, bulk, .. }, by| {
            bulk.start(context, (global, shared), (&map.tensor(), at), to.offset(), by);
        });
    }
    unsafe fn bulk_wait(self, barrier: SharedPtr<u64>, turn: u32) {
        self.bulk(Location::caller(), barrier, |Worker { context, shared, bulk, .. }, by| {
            bulk.wait(context, shared, by, turn);
        });
    }

    fn fence_async_proxy(self) {
        let caller = Location::caller();
        self.step(|Worker { context, shared, .. }| shared.fence_proxy(context, self.thread, caller));
    }
    fn warpgroup_arrive(self) {
        self.warpgroup(Location::caller(), WarpgroupCall::Arrive, [0; 10], &[]);
    }
    warpgroup_products! { F16: warpgroup_mma_f16, warpgroup_mma_f16_cores, warpgroup_mma_f16_columns, warpgroup_mma_f16_registers }
    warpgroup_products! { Bf16: warpgroup_mma_bf16, warpgroup_mma_bf16_cores, warpgroup_mma_bf16_columns, warpgroup_mma_bf16_registers }
    unsafe fn warpgroup_mma_tf32_registers<const L: usize>(
        self,
        sums: &mut [f32; L],
        a: [f32; 4],
        b: SharedPtr<f32>,
    ) {
        let operands = [0, b.offset()].map(Operand::of_panels);
        let kind = (Factors::Tf32, Layout::Columns);
        self.start_product(Location::caller(), kind, sums, operands, a.map(f32::to_bits));
    }
    fn warpgroup_give_registers<const N: u32>(self) {
        self.exchange_registers::<N>(Location::caller(), false);
    }
    fn warpgroup_take_registers<const N: u32>(self) {
        self.exchange_registers::<N>(Location::caller(), true);
    }
    fn warpgroup_commit(self) {
        self.warpgroup(Location::caller(), WarpgroupCall::Commit, [0; 10], &[]);
    }
    fn warpgroup_wait<const PENDING: u32, const L: usize>(self, sums: &mut [f32; L]) {
        const { assert!(matches!(L, 16 | 32 | 64), "N is 32, 64 or 128") }
        self.warpgroup(Location::caller(), WarpgroupCall::Wait { pending: PENDING }, [0; 10], sums);
        self.worker.borrow_mut().warpgroups.give_sums(self.thread, sums);
    }
}
