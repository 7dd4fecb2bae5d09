//! Products of a warpgroup: four warps, each with its own rows of A and sums, and one B. A and B are in shared memory, or A in
//! registers.
//!
//! Warps come one by one, and each computes its part when it comes. A and B count as being read from a product's start to the
//! wait that retires it.
use std::collections::VecDeque;

use lacuna_gpu::{FULL_WARP, WARP};

use crate::execution::context::Context;
use crate::execution::schedule::State;
use crate::memory::shared::{SharedMemory, place};
use crate::report::finding::FindingKind;
use crate::report::operation::Operation;
use crate::report::site::{Caller, SiteId};
use crate::synchronisation::call::{WarpCall, WarpOperation};
use crate::synchronisation::exchange::{Exchange, Parcel, Parcels};
use crate::tensor::accumulators::Accumulators;
use crate::tensor::agreement::Agreement;
use crate::tensor::arithmetic::{self, Factors};
use crate::tensor::operands::{locate, read};
use crate::tensor::product::{Layout, Operand, PIECE, Product};

/// Warps of a warpgroup.
pub(crate) const WARPS: usize = 4;

/// What a warpgroup does together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarpgroupCall {
    Arrive,
    Multiply(Product),
    Commit,
    Wait {
        pending: u32,
    },
    /// Registers are given back, or asked for.
    Registers {
        takes: bool,
    },
}

impl WarpgroupCall {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Arrive => "warpgroup_arrive",
            Self::Multiply(Product { layout: Layout::Columns, .. }) => "warpgroup_mma_tf32_registers",
            Self::Multiply(Product { factors: Factors::Bf16, layout: Layout::PanelColumns, .. }) => {
                "warpgroup_mma_bf16_columns"
            }
            Self::Multiply(Product { layout: Layout::PanelColumns, .. }) => "warpgroup_mma_f16_columns",
            Self::Multiply(Product { factors: Factors::Bf16, layout: Layout::Cores, .. }) => {
                "warpgroup_mma_bf16_cores"
            }
            Self::Multiply(Product { layout: Layout::Cores, .. }) => "warpgroup_mma_f16_cores",
            Self::Multiply(Product { factors: Factors::Bf16, layout: Layout::Registers { .. }, .. }) => {
                "warpgroup_mma_bf16_registers"
            }
            Self::Multiply(Product { layout: Layout::Registers { .. }, .. }) => "warpgroup_mma_f16_registers",
            Self::Multiply(Product { factors: Factors::Bf16, .. }) => "warpgroup_mma_bf16",
            Self::Multiply(_) => "warpgroup_mma_f16",
            Self::Commit => "warpgroup_commit",
            Self::Wait { .. } => "warpgroup_wait",
            Self::Registers { takes: false } => "warpgroup_give_registers",
            Self::Registers { takes: true } => "warpgroup_take_registers",
        }
    }
}

/// Where A and B lie.
pub(crate) type Operands = [Operand; 2];

/// Where A and B lie, by the words that a thread gave.
fn operands_of([a, b, c, d, e, f, ..]: Parcel) -> Operands {
    [[a, b, c], [d, e, f]].map(Operand::of_words)
}

/// A product under way.
struct Pending {
    group: u32,
    product: Product,
    operands: Operands,
    site: SiteId,
    /// When it started, on the clock of writes to shared memory.
    since: u64,
}

/// The products of one warp.
#[derive(Default)]
struct WarpProducts {
    /// Whether registers are in order since the last wait.
    arrived: bool,
    /// Groups committed so far; later products belong to the next one.
    committed: u32,
    pending: VecDeque<Pending>,
    accumulators: Accumulators,
}

/// The checker of a block's warpgroups.
#[derive(Default)]
pub(crate) struct Warpgroups {
    warps: Vec<WarpProducts>,
    agreement: Agreement,
    /// A warp's rows of A, and B, as numbers, row by row; kept for their memory.
    numbers: [Vec<f64>; 2],
}

impl Warpgroups {
    pub(crate) fn start_block(&mut self, threads: usize) {
        let warps = threads.div_ceil(WARP as usize);
        self.warps.clear();
        self.warps.resize_with(warps, WarpProducts::default);
        self.agreement.start_block(warps);
    }

    /// A thread reaches an operation of its warpgroup, with where A and B lie, and its sums.
    pub(crate) fn reach(
        &mut self,
        context: &mut Context<'_>,
        exchange: &mut Exchange,
        (thread, caller): (u32, Caller),
        call: WarpgroupCall,
        (parcel, sums): (Parcel, &[f32]),
    ) {
        let site = match call {
            WarpgroupCall::Multiply(product) => {
                context.tick(thread, caller, Operation::of_warpgroup(product.factors))
            }
            _ => context.step(thread, caller, Operation::WarpgroupControl),
        };
        let warp = &mut self.warps[thread as usize / 32];
        warp.accumulators.take(context, (thread, site), call, sums);
        exchange.give(thread, parcel);
        let operation = WarpOperation::Warpgroup(call);
        let call = WarpCall { operation, site, mask: FULL_WARP, value: 0, lane: 0, width: WARP };
        context.schedule.wait(thread, State::Warp(call));
    }

    /// Gives a thread its sums back, if its last wait was for all products that were added to them.
    pub(crate) fn give_sums(&mut self, thread: u32, sums: &mut [f32]) {
        self.warps[thread as usize / 32].accumulators.give(thread, sums);
    }

    /// What a thread sees in place of the sums of the product that it has just started.
    pub(crate) fn poison(&self, thread: u32) -> f32 {
        self.warps[thread as usize / 32].accumulators.poison(thread)
    }

    /// All lanes of a warp have come to an operation of its warpgroup.
    pub(crate) fn complete(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut SharedMemory,
        parcels: &Parcels,
        warp: usize,
        (call, site): (WarpgroupCall, SiteId),
    ) {
        self.agreement.compare(context, warp, call, site, operands_of(parcels[0]));
        let products = &mut self.warps[warp];
        match call {
            WarpgroupCall::Arrive => products.arrived = true,
            WarpgroupCall::Commit => products.committed += 1,
            WarpgroupCall::Multiply(product) => {
                self.start_product(context, shared, parcels, warp, (product, site));
            }
            WarpgroupCall::Wait { pending } => products.wait(context, shared, warp, pending),
            WarpgroupCall::Registers { .. } => {}
        }
    }

    fn start_product(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut SharedMemory,
        parcels: &Parcels,
        warp: usize,
        (product, site): (Product, SiteId),
    ) {
        let first = warp as u32 * WARP;
        let products = &mut self.warps[warp];
        products.accumulators.start(products.committed);
        if !products.arrived {
            let detail = "no warpgroup_arrive since the last wait, or the kernel's start".to_owned();
            context.report(FindingKind::MissingArrive, site, first, None, None, detail);
        }
        let operands = operands_of(parcels[0]);
        if let Some(lane) = parcels.iter().position(|parcel| operands_of(*parcel) != operands) {
            let [[a, b], [lane_a, lane_b]] =
                [operands, operands_of(parcels[lane])].map(|operands| operands.map(Operand::words));
            let detail =
                format!("A at {a:?} and B at {b:?} in lane 0, at {lane_a:?} and {lane_b:?} in lane {lane}");
            context.report(FindingKind::BadArgument, site, first + lane as u32, None, None, detail);
        }
        if !locate(context, shared, (first, site), product, operands) {
            return;
        }
        let [rows, numbers] = &mut self.numbers;
        let [a, b] = operands;
        if product.has_a_in_registers() {
            let registers = parcels.map(|[.., w, x, y, z]| [w, x, y, z]);
            rows.clear();
            rows.extend_from_slice(arithmetic::rows_of_a(product.factors, &registers).as_flattened());
        } else {
            let places_of_a = product.places_of_a(a, (warp % WARPS) as u32);
            read(context, shared, (first, site), product, places_of_a, rows);
        }
        read(context, shared, (first, site), product, product.places_of_b(b), numbers);
        product.order_b(numbers);
        arithmetic::accumulate(rows, numbers, products.accumulators.sums());
        let since = shared.cells.time();
        products.pending.push_back(Pending { group: products.committed, product, operands, site, since });
        let counts = context.costs.of(site);
        counts.executions += u64::from(product.columns / 8);
        counts.requests += 1;
        // B goes through the banks once, for all four warps.
        let of_a = if product.has_a_in_registers() { 0 } else { Product::WARP_BYTES };
        let bytes = u64::from(of_a) + u64::from(product.bytes()) / WARPS as u64;
        counts.bytes += bytes;
        counts.wavefronts += bytes / 128;
    }

    pub(crate) fn check_exit(&self, context: &mut Context<'_>, thread: u32) {
        let pending = &self.warps[thread as usize / 32].pending;
        if let Some(site) = pending.front().map(|product| product.site) {
            let detail = format!("{} products under way", pending.len());
            context.report(FindingKind::ProductNotWaited, site, thread, None, None, detail);
        }
    }

    /// All threads have exited.
    pub(crate) fn check_end(&mut self, context: &mut Context<'_>) {
        self.agreement.check_end(context);
    }
}

impl WarpProducts {
    /// Retires the products but those of the last `pending` groups.
    fn wait(&mut self, context: &mut Context<'_>, shared: &mut SharedMemory, warp: usize, pending: u32) {
        self.arrived = false;
        let retired = self.committed.saturating_sub(pending);
        while let Some(over) = self.pending.pop_front_if(|product| product.group < retired) {
            over.retire(context, shared, warp as u32 * WARP);
        }
        self.accumulators.wait(retired);
    }
}

impl Pending {
    /// The product's reads are over: reports writes that came in between.
    fn retire(self, context: &mut Context<'_>, shared: &mut SharedMemory, thread: u32) {
        let now = context.clocks.now(thread);
        // Nobody says that a warp's part of a product reads its own rows of A alone.
        let [a, b] = self.operands;
        let rows = (0..WARPS as u32).flat_map(|warp| self.product.places_of_a(a, warp));
        for offset in rows.chain(self.product.places_of_b(b)) {
            let late = shared.cells.retire(offset, self.since, &context.clocks.who(&now, self.site));
            if let Some(late) = late {
                let place = place(offset, PIECE, self.product.element(), shared.cells.len());
                let detail = "a write while a product reads it".to_owned();
                let kind = FindingKind::Race;
                context.report(kind, late.site, late.thread, Some(place), Some(self.site), detail);
            }
        }
    }
}
