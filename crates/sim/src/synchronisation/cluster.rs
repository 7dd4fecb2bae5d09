//! Blocks of a cluster: their barrier, and stores to each other's shared memory.
//!
//! The cluster's barrier is all that orders its blocks. Warps come to it whole, and wait for it later. A store to another
//! block is there at once; whoever uses the place, or has used it, without a barrier between is found.
use std::cell::RefCell;

use lacuna_gpu::WARP;

use crate::execution::schedule::{State, WarpCall, WarpOperation, lanes};
use crate::execution::worker::Worker;
use crate::memory::bits::Words;
use crate::memory::shared::Storer;
use crate::memory::shared_path::SharedAccess;
use crate::order::clock::Passed;
use crate::report::finding::FindingKind;
use crate::report::operation::Operation;
use crate::report::site::{Caller, SiteId};

/// A warp's part in the cluster's barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterCall {
    Arrive,
    Wait,
}

impl ClusterCall {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Arrive => "cluster_arrive",
            Self::Wait => "cluster_wait",
        }
    }
}

/// A store on its way to another block.
pub(crate) struct ClusterStore {
    by: Storer,
    passed: Passed,
    site: SiteId,
}

/// What became of it.
pub(crate) enum Received {
    /// The line of an access that nothing orders with it, if there is one.
    There(Option<SiteId>),
    /// The block has ended.
    Over,
}

/// When no block of the cluster can run on by itself: lets those go on that wait at its barrier, if all have come, or reports a
/// deadlock. Gives whether threads can run now.
pub(crate) fn resolve(workers: &[RefCell<Worker<'_>>]) -> bool {
    let waits = |worker: &&RefCell<Worker<'_>>| worker.borrow().schedule.waits_for_cluster();
    let Some(waiting) = workers.iter().find(waits) else { return false };
    if workers.iter().any(|worker| worker.borrow().aborted) {
        return false;
    }
    if workers.iter().all(|worker| worker.borrow().has_come_to_cluster()) {
        workers.iter().for_each(|worker| worker.borrow_mut().fill_cluster());
        return true;
    }
    waiting.borrow_mut().report_cluster_deadlock();
    false
}

impl Worker<'_> {
    /// A thread reaches the cluster's barrier, and waits for its warp.
    pub(crate) fn reach_cluster(&mut self, thread: u32, caller: Caller, call: ClusterCall) {
        let site = self.step(thread, caller, Operation::ClusterBarrier);
        let operation = WarpOperation::Cluster(call);
        let call = WarpCall { operation, site, mask: u32::MAX, value: 0, lane: 0, width: WARP };
        self.schedule.wait(thread, State::Warp(call));
    }

    /// A warp has come to the cluster's barrier with the lanes `present`.
    pub(crate) fn come_to_cluster(&mut self, warp: usize, present: u32, call: ClusterCall, site: SiteId) {
        let Passed { came, waited } = self.clocks.passed(warp);
        match (call, came == waited) {
            (ClusterCall::Arrive, true) => self.clocks.come_to_cluster(warp, present),
            (ClusterCall::Wait, false) if self.clocks.is_cluster_full(warp) => {
                self.clocks.pass_cluster(warp, present);
            }
            (ClusterCall::Wait, false) => {
                for lane in lanes(present) {
                    self.schedule.wait(warp as u32 * WARP + lane, State::Cluster(site));
                }
                return;
            }
            (_, has_waited) => {
                let detail =
                    if has_waited { "and has not come to it" } else { "and has not waited since it came" };
                let detail = format!("{} by a warp that has been at {came} of them, {detail}", call.name());
                let first = warp as u32 * WARP + present.trailing_zeros();
                self.report(FindingKind::MismatchedBarrier, site, first, None, None, detail);
            }
        }
        lanes(present).for_each(|lane| self.schedule.wake(warp * WARP as usize + lane as usize, 0));
    }

    /// Whether all warps that are left have come to the cluster's next barrier.
    fn has_come_to_cluster(&self) -> bool {
        (0..self.schedule.warps())
            .all(|warp| self.schedule.live(warp) == 0 || self.clocks.has_come_to_cluster(warp))
    }

    /// All of the cluster have come to its next barrier: wakes those that wait at it.
    fn fill_cluster(&mut self) {
        self.clocks.fill_cluster();
        for warp in 0..self.schedule.warps() {
            let first = warp * WARP as usize;
            let waits = |lane: &u32| {
                matches!(self.schedule.states().get(first + *lane as usize), Some(State::Cluster(_)))
            };
            let waiting = lanes(u32::MAX).filter(waits).fold(0, |bits, lane| bits | 1 << lane);
            if waiting != 0 {
                self.clocks.pass_cluster(warp, waiting);
                lanes(waiting).for_each(|lane| self.schedule.wake(first + lane as usize, 0));
            }
        }
    }

    #[cold]
    fn report_cluster_deadlock(&mut self) {
        let states = self.schedule.states().iter().enumerate();
        let mut stuck = states.filter_map(|(thread, state)| match *state {
            State::Cluster(site) => Some((thread, site)),
            _ => None,
        });
        let Some((thread, site)) = stuck.next() else { return };
        let detail = self.describe_waits();
        self.report(FindingKind::Deadlock, site, thread as u32, None, None, detail);
        self.aborted = true;
    }

    /// A thread stores to block `block` of its cluster. Gives what goes there, if it may.
    pub(crate) fn start_cluster_store(&mut self, access: &SharedAccess, block: u32) -> Option<ClusterStore> {
        let site = self.locate_shared(access)?;
        let (thread, cluster) = (access.thread, self.launch.geometry.cluster);
        if block >= cluster {
            let detail = format!("block {block} of a cluster of {cluster}");
            self.report(FindingKind::BadArgument, site, thread, None, None, detail);
            return None;
        }
        let passed = self.clocks.passed((thread / WARP) as usize);
        if passed.waited == 0 {
            self.report_shared(FindingKind::AbsentBlock, site, access, None);
        }
        Some(ClusterStore { by: ((self.block % u64::from(cluster)) as u32, thread), passed, site })
    }

    /// Another block, or this one, stores here.
    pub(crate) fn receive(&mut self, access: &SharedAccess, store: &ClusterStore, value: Words) -> Received {
        if self.is_over {
            return Received::Over;
        }
        let ClusterStore { by, passed, site } = *store;
        Received::There(self.shared.receive(access.offset, access.bytes, (by, passed, site), value))
    }

    /// Reports what was wrong with a store that has been received.
    pub(crate) fn end_cluster_store(
        &mut self,
        access: &SharedAccess,
        store: &ClusterStore,
        received: Received,
    ) {
        match received {
            Received::Over => self.report_shared(FindingKind::AbsentBlock, store.site, access, None),
            // One that may come too early is at odds with everything.
            Received::There(rival) if rival.is_some() && store.passed.waited > 0 => {
                self.report_shared(FindingKind::RaceInCluster, store.site, access, rival);
            }
            Received::There(_) => {}
        }
    }
}
