//! Named barriers: warps come to them to wait for others, or only to tell that they have come.
use std::fmt;

use lacuna_gpu::{FULL_WARP, WARP};

use crate::execution::context::Context;
use crate::execution::schedule::{State, lanes};
use crate::order::clock::Known;
use crate::report::finding::FindingKind;
use crate::report::operation::Operation;
use crate::report::site::{Caller, SiteId};
use crate::synchronisation::call::{WarpCall, WarpOperation};

/// Barriers of a block, with the one of `sync_threads`, which is number 0.
const BARRIERS: usize = 16;

/// A warp's part in a named barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedCall {
    pub(crate) id: u32,
    /// How many threads fill the barrier.
    pub(crate) threads: u32,
    pub(crate) waits: bool,
}

impl NamedCall {
    pub(crate) const fn name(self) -> &'static str {
        if self.waits { "barrier_sync" } else { "barrier_arrive" }
    }
}

impl fmt::Display for NamedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}, {})", self.name(), self.id, self.threads)
    }
}

/// A thread reaches a named barrier. Gives whether it has to wait, be it only for its warp.
pub(crate) fn reach(context: &mut Context<'_>, thread: u32, caller: Caller, call: NamedCall) -> bool {
    let site = context.step(thread, caller, Operation::NamedBarrier);
    let (NamedCall { id, threads, .. }, block) = (call, context.launch.geometry.threads);
    let detail = if id == 0 || id as usize >= BARRIERS {
        format!("barrier {id}: one of 1 to 15 is expected")
    } else if threads == 0 || !threads.is_multiple_of(WARP) || threads > block {
        format!("{threads} threads: a multiple of {WARP} from {WARP} to the block's {block} is expected")
    } else {
        let operation = WarpOperation::Barrier(call);
        let call = WarpCall { operation, site, mask: FULL_WARP, value: 0, lane: 0, width: WARP };
        context.schedule.wait(thread, State::Warp(call));
        return true;
    };
    context.report(FindingKind::BadArgument, site, thread, None, None, detail);
    false
}

/// A barrier since it was last full.
#[derive(Clone, Copy, Debug, Default)]
struct Named {
    /// The warp that came first: its first lane, its call and its line.
    first: Option<(u32, NamedCall, SiteId)>,
    /// The warps that have come, a bit each.
    came: u32,
    /// What they have left for those that wait.
    left: Known,
}

/// The named barriers of a block.
#[derive(Debug, Default)]
pub(crate) struct NamedBarriers([Named; BARRIERS]);

impl NamedBarriers {
    pub(crate) fn start_block(&mut self) {
        self.0 = [Named::default(); BARRIERS];
    }

    /// Every thread has passed a block barrier: all that was left is known, and its clocks are of the past.
    pub(crate) fn block_barrier(&mut self) {
        self.0.iter_mut().for_each(|barrier| barrier.left = Known::default());
    }

    /// Threads that have come since the barrier was last full.
    pub(crate) fn came(&self, id: u32) -> u32 {
        self.0.get(id as usize).map_or(0, |barrier| barrier.came.count_ones() * WARP)
    }

    /// A warp has come to a named barrier with the lanes `present`.
    pub(crate) fn come(
        &mut self,
        context: &mut Context<'_>,
        (warp, present): (usize, u32),
        call: NamedCall,
        site: SiteId,
    ) {
        let lane = warp as u32 * WARP + present.trailing_zeros();
        let barrier = &mut self.0[call.id as usize];
        let (_, first, other) = *barrier.first.get_or_insert((lane, call, site));
        if first.threads != call.threads {
            let detail = format!("{call} at a barrier to which others came with {first}");
            context.report(FindingKind::MismatchedBarrier, site, lane, None, Some(other), detail);
            context.aborted = true;
            return;
        }
        if barrier.came >> warp & 1 == 0 {
            barrier.came |= 1 << warp;
            context.clocks.release(warp, present, &mut barrier.left);
        } else {
            // It counts once, and leaves nothing new: so the races that follow from this are found, too.
            let came = barrier.came.count_ones() * WARP;
            let detail =
                format!("{call} by a warp that has come before, while {came} of {} have come", call.threads);
            context.report(FindingKind::MismatchedBarrier, site, lane, None, Some(other), detail);
        }
        let barrier = &self.0[call.id as usize];
        let full = barrier.came.count_ones() * WARP == call.threads;
        for lane in lanes(present) {
            let thread = warp as u32 * WARP + lane;
            if call.waits {
                context.schedule.wait(thread, State::Named(call, site));
            } else {
                context.schedule.wake(thread as usize, 0);
            }
        }
        if full {
            self.open(context, call.id);
        }
    }

    /// A named barrier is full: wakes those that wait at it, and empties it.
    fn open(&mut self, context: &mut Context<'_>, id: u32) {
        let Named { came, left, .. } = std::mem::take(&mut self.0[id as usize]);
        for warp in lanes(came).map(|warp| warp as usize) {
            let is_here = |state: &State| matches!(state, State::Named(call, _) if call.id == id);
            let waiting = context.schedule.waiting(warp, is_here);
            if waiting != 0 {
                context.clocks.acquire(warp, waiting, &left);
                context.schedule.wake_lanes(warp, waiting);
            }
        }
    }

    /// All threads have exited: nobody will fill the barriers that are not empty.
    pub(crate) fn check_end(&self, context: &mut Context<'_>) {
        for id in 0..BARRIERS as u32 {
            if let Some((thread, call, site)) = self.0[id as usize].first {
                let came = self.came(id);
                let detail = format!("{call}: {came} of {} had come", call.threads);
                context.report(FindingKind::UnfinishedBarrier, site, thread, None, None, detail);
            }
        }
    }
}
