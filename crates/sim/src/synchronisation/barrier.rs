//! The barrier of all threads of a block.
use crate::execution::context::Context;
use crate::execution::schedule::State;
use crate::report::finding::FindingKind;
use crate::report::operation::Operation;
use crate::report::site::Caller;
use crate::synchronisation::call::{BarrierCall, BarrierKind};
use crate::synchronisation::deadlock;
use crate::synchronisation::named::NamedBarriers;

/// A thread reaches the block's barrier.
pub(crate) fn reach(
    context: &mut Context<'_>,
    thread: u32,
    caller: Caller,
    kind: BarrierKind,
    predicate: bool,
) {
    let site = context.step(thread, caller, Operation::BlockBarrier);
    context.schedule.wait(thread, State::Barrier(BarrierCall { kind, site, predicate }));
}

/// What no thread of a block can run on past by itself.
pub(crate) enum Arrival {
    /// Those that have not exited have all come to the block's barrier.
    All(Vec<(usize, BarrierCall)>),
    /// All have exited.
    Exited,
    /// Some wait for something else.
    Stuck,
}

/// Who has come to the block's barrier.
pub(crate) fn arrival(context: &Context<'_>) -> Arrival {
    let mut waiting = Vec::new();
    for (thread, state) in context.schedule.states().iter().enumerate() {
        match *state {
            State::Exited => {}
            State::Barrier(call) => waiting.push((thread, call)),
            State::Ready | State::Warp(_) | State::Named(..) | State::Cluster(_) => return Arrival::Stuck,
        }
    }
    if waiting.is_empty() { Arrival::Exited } else { Arrival::All(waiting) }
}

/// Lets the threads that wait at the block's barrier go on.
pub(crate) fn complete(
    context: &mut Context<'_>,
    named: &mut NamedBarriers,
    waiting: Vec<(usize, BarrierCall)>,
) {
    let first = waiting[0].1.site;
    if let Some(&(thread, other)) = waiting.iter().find(|(_, call)| call.site != first) {
        let detail = deadlock::describe_waits(context, named);
        let kind = FindingKind::DivergentBarrier;
        context.report(kind, other.site, thread as u32, None, Some(first), detail);
    }
    let count = waiting.iter().filter(|(_, call)| call.predicate).count() as u32;
    context.clocks.block_barrier();
    named.block_barrier();
    for (thread, call) in waiting {
        let result = match call.kind {
            BarrierKind::Plain => 0,
            BarrierKind::Or => u32::from(count > 0),
            BarrierKind::Count => count,
        };
        context.schedule.wake(thread, result);
    }
}
