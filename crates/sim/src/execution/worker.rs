//! One host thread's state while it runs blocks, one after the other: what the block is at, and what checks its steps.
use lacuna_gpu::{FULL_WARP, WARP};

use crate::execution::context::Context;
use crate::execution::launch::Launch;
use crate::execution::pool::Pool;
use crate::execution::trap::Panic;
use crate::memory::bulk::BulkCopies;
use crate::memory::copies::Copies;
use crate::memory::global::GlobalMemory;
use crate::memory::shared::SharedMemory;
use crate::report::finding::FindingKind;
use crate::synchronisation::barrier::{self, Arrival};
use crate::synchronisation::call::{WarpCall, WarpOperation};
use crate::synchronisation::exchange::{Exchange, Parcel};
use crate::synchronisation::named::NamedBarriers;
use crate::synchronisation::{cluster, deadlock, warp};
use crate::tensor::arithmetic;
use crate::tensor::warpgroup::Warpgroups;

/// The shared memory of blocks that have ended.
static SHARED: Pool<SharedMemory> = Pool::new();

/// The context of the running block, and a checker for each kind of step. Checkers know the context, and of each other only what
/// they are given.
pub(crate) struct Worker<'l> {
    pub(crate) context: Context<'l>,
    pub(crate) global: GlobalMemory<'l>,
    pub(crate) shared: SharedMemory,
    pub(crate) copies: Copies,
    pub(crate) bulk: BulkCopies,
    pub(crate) named: NamedBarriers,
    pub(crate) exchange: Exchange,
    pub(crate) warpgroups: Warpgroups,
}

impl<'l> Worker<'l> {
    pub(crate) fn new(launch: &'l Launch<'l>) -> Self {
        Self {
            context: Context::new(launch),
            global: GlobalMemory::default(),
            shared: SHARED.take(),
            copies: Copies::default(),
            bulk: BulkCopies::default(),
            named: NamedBarriers::default(),
            exchange: Exchange::default(),
            warpgroups: Warpgroups::default(),
        }
    }

    pub(crate) fn start_block(&mut self, block: u64) {
        let launch = self.context.launch;
        let threads = launch.geometry.threads as usize;
        self.context.start_block(block);
        self.global.start_block(launch);
        self.shared.cells.start_block(launch.geometry.shared_bytes);
        self.copies.start_block(threads);
        self.bulk.start_block();
        self.named.start_block();
        self.warpgroups.start_block(threads);
    }

    /// The launch is over: gives what was found and counted.
    pub(crate) fn end(self) -> Context<'l> {
        SHARED.give(self.shared);
        self.context
    }

    pub(crate) fn finish_block(&mut self) {
        self.context.costs.finish_block(self.context.launch);
    }

    /// A thread has left the kernel.
    pub(crate) fn exit(&mut self, thread: u32, outcome: Result<(), Panic>) {
        let Self { context, copies, bulk, warpgroups, .. } = self;
        context.schedule.exit(thread);
        if context.aborted {
            return;
        }
        match outcome {
            Ok(()) => {
                copies.check_exit(context, thread);
                bulk.check_exit(context, thread);
                warpgroups.check_exit(context, thread);
            }
            Err(panic) => context.trap(thread, panic),
        }
    }

    /// Completes the operations of a warp for which all named lanes have come.
    pub(crate) fn resolve_warp(&mut self, warp: usize) {
        let mut open = self.context.schedule.live(warp) & !self.context.schedule.ready(warp);
        while open != 0 {
            let schedule = &self.context.schedule;
            let first = open.trailing_zeros();
            open &= open - 1;
            let Some(call) = schedule.warp_call(warp, first) else { continue };
            let wanted = call.mask & schedule.live(warp);
            let present = schedule.meeting(warp, wanted, &call);
            open &= !present;
            if present == wanted {
                if call.operation.is_aligned() {
                    self.complete_aligned(warp, present, &call);
                } else {
                    warp::complete(&mut self.context, warp, present, call.operation);
                }
            }
        }
    }

    /// All lanes that are left have come to an operation of the whole warp.
    fn complete_aligned(&mut self, warp: usize, present: u32, call: &WarpCall) {
        let Self { context, shared, named, exchange, warpgroups, .. } = self;
        let (whole, site) = (present == FULL_WARP, call.site);
        if !whole {
            let detail = format!(
                "{} needs all {WARP} lanes, and only {present:#010x} are there: the result is undefined",
                call.operation.name()
            );
            let first = warp as u32 * WARP + present.trailing_zeros();
            context.report(FindingKind::AbsentLane, site, first, None, None, detail);
        }
        match call.operation {
            WarpOperation::Barrier(call) => return named.come(context, (warp, present), call, site),
            WarpOperation::Cluster(call) => return cluster::come(context, (warp, present), call, site),
            _ if !whole => exchange.warp(warp).fill(Parcel::default()),
            WarpOperation::Multiply(factors) => {
                arithmetic::multiply(factors, exchange.warp(warp));
                context.costs.of(site).executions += 1;
            }
            WarpOperation::LoadMatrices { transposed } => {
                arithmetic::distribute(transposed, exchange.warp(warp));
            }
            WarpOperation::Warpgroup(call) => {
                warpgroups.complete(context, shared, exchange.warp(warp), warp, (call, site));
            }
            _ => {}
        }
        context.schedule.wake_lanes(warp, present);
    }

    /// When no warp can run on by itself: completes the block barrier, or reports a deadlock. Gives whether threads can
    /// run now.
    pub(crate) fn resolve_block(&mut self) -> bool {
        let Self { context, named, warpgroups, .. } = self;
        if context.schedule.is_ready() {
            // A later warp has filled the named barrier of an earlier one.
            return true;
        }
        if context.is_over || context.schedule.waits_for_cluster() {
            return false;
        }
        match barrier::arrival(context) {
            Arrival::All(waiting) => {
                barrier::complete(context, named, waiting);
                true
            }
            Arrival::Exited => {
                context.is_over = true;
                named.check_end(context);
                warpgroups.check_end(context);
                false
            }
            Arrival::Stuck => {
                deadlock::report(context, named);
                false
            }
        }
    }
}
