//! The barrier of a cluster, which is all that orders its blocks. Warps come to it whole, and wait for it later.
use lacuna_gpu::WARP;

use crate::execution::context::Context;
use crate::execution::schedule::{State, lanes};
use crate::order::clock::Passed;
use crate::report::finding::FindingKind;
use crate::report::operation::Operation;
use crate::report::site::{Caller, SiteId};
use crate::synchronisation::call::{WarpCall, WarpOperation};

/// A warp's part in the cluster's barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterCall {
    Arrive,
    ArriveRelaxed,
    Wait,
}

impl ClusterCall {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Arrive => "cluster_arrive",
            Self::ArriveRelaxed => "cluster_arrive_relaxed",
            Self::Wait => "cluster_wait",
        }
    }
}

/// A thread reaches the cluster's barrier, and waits for its warp.
pub(crate) fn reach(context: &mut Context<'_>, thread: u32, caller: Caller, call: ClusterCall) {
    let site = context.step(thread, caller, Operation::ClusterBarrier);
    if call == ClusterCall::ArriveRelaxed && context.steps_taken(thread) > 1 {
        let detail =
            "cluster_arrive_relaxed by a thread that has done something before, which it does not order"
                .into();
        context.report(FindingKind::MismatchedBarrier, site, thread, None, None, detail);
    }
    let operation = WarpOperation::Cluster(call);
    let call = WarpCall { operation, site, mask: u32::MAX, value: 0, lane: 0, width: WARP };
    context.schedule.wait(thread, State::Warp(call));
}

/// A warp has come to the cluster's barrier with the lanes `present`.
pub(crate) fn come(
    context: &mut Context<'_>,
    (warp, present): (usize, u32),
    call: ClusterCall,
    site: SiteId,
) {
    let Passed { came, waited } = context.clocks.passed(warp);
    match (call, came == waited) {
        (ClusterCall::Arrive | ClusterCall::ArriveRelaxed, true) => {
            context.clocks.come_to_cluster(warp, present)
        }
        (ClusterCall::Wait, false) if context.clocks.is_cluster_full(warp) => {
            context.clocks.pass_cluster(warp, present);
        }
        (ClusterCall::Wait, false) => {
            for lane in lanes(present) {
                context.schedule.wait(warp as u32 * WARP + lane, State::Cluster(site));
            }
            return;
        }
        (_, has_waited) => {
            let detail =
                if has_waited { "and has not come to it" } else { "and has not waited since it came" };
            let detail = format!("{} by a warp that has been at {came} of them, {detail}", call.name());
            let first = warp as u32 * WARP + present.trailing_zeros();
            context.report(FindingKind::MismatchedBarrier, site, first, None, None, detail);
        }
    }
    context.schedule.wake_lanes(warp, present);
}

/// Whether all warps of a block that are left have come to the cluster's next barrier.
pub(crate) fn has_come(context: &Context<'_>) -> bool {
    (0..context.schedule.warps())
        .all(|warp| context.schedule.live(warp) == 0 || context.clocks.has_come_to_cluster(warp))
}

/// All of the cluster have come to its next barrier: wakes those of a block that wait at it.
pub(crate) fn fill(context: &mut Context<'_>) {
    context.clocks.fill_cluster();
    for warp in 0..context.schedule.warps() {
        let waiting = context.schedule.waiting(warp, |state| matches!(state, State::Cluster(_)));
        if waiting != 0 {
            context.clocks.pass_cluster(warp, waiting);
            context.schedule.wake_lanes(warp, waiting);
        }
    }
}
