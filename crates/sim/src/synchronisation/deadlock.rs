//! Threads that wait for each other for ever.
use std::fmt::Write as _;

use crate::execution::context::Context;
use crate::execution::schedule::{State, lanes};
use crate::report::finding::FindingKind;
use crate::report::site::SiteId;
use crate::synchronisation::call::{WarpCall, WarpOperation};
use crate::synchronisation::named::NamedBarriers;

/// No thread of the block can run, and not all of them wait at the block's barrier: gives the block up.
#[cold]
pub(crate) fn report(context: &mut Context<'_>, named: &NamedBarriers) {
    let states = context.schedule.states().iter().enumerate();
    let mut stuck = states.filter_map(|(thread, state)| match *state {
        State::Warp(call) => Some((thread, call)),
        _ => None,
    });
    let Some((thread, call)) = stuck.next() else {
        return report_first(context, named, |state| match *state {
            State::Named(_, site) => Some(site),
            _ => None,
        });
    };
    let at_odds = |(thread, call): (usize, WarpCall)| {
        let (warp, live) = (thread / 32, context.schedule.live(thread / 32));
        lanes(call.mask & live)
            .filter_map(|lane| context.schedule.warp_call(warp, lane))
            .find(|other| !other.meets(&call))
    };
    let rival = at_odds((thread, call)).or_else(|| stuck.find_map(at_odds));
    let kind = match rival {
        Some(_) => FindingKind::MismatchedWarpOperation,
        None => FindingKind::Deadlock,
    };
    let detail = describe_waits(context, named);
    context.report(kind, call.site, thread as u32, None, rival.map(|call| call.site), detail);
    context.aborted = true;
}

/// Some block of the cluster never comes to the barrier at which this one waits: gives the block up.
#[cold]
pub(crate) fn report_cluster(context: &mut Context<'_>, named: &NamedBarriers) {
    report_first(context, named, |state| match *state {
        State::Cluster(site) => Some(site),
        _ => None,
    });
}

/// Reports the first thread that waits at what `line` knows the line of.
fn report_first(context: &mut Context<'_>, named: &NamedBarriers, line: impl Fn(&State) -> Option<SiteId>) {
    let mut states = (0..).zip(context.schedule.states());
    let Some((thread, site)) = states.find_map(|(thread, state)| Some((thread, line(state)?))) else {
        return;
    };
    let detail = describe_waits(context, named);
    context.report(FindingKind::Deadlock, site, thread, None, None, detail);
    context.aborted = true;
}

/// Who waits where, a group of neighbours at a time.
pub(crate) fn describe_waits(context: &Context<'_>, named: &NamedBarriers) -> String {
    let mut groups: Vec<(usize, usize, String)> = Vec::new();
    for (thread, state) in context.schedule.states().iter().enumerate() {
        let line = |site: SiteId| context.launch.sites.get(site).0;
        let wait = match *state {
            State::Ready => continue,
            State::Exited => "exited".to_owned(),
            State::Barrier(call) => format!("wait at {} ({})", call.kind.name(), line(call.site)),
            State::Named(call, site) => {
                let came = named.came(call.id);
                format!("wait at {call} ({}), to which {came} of {} have come", line(site), call.threads)
            }
            State::Cluster(site) => format!("wait for their cluster ({})", line(site)),
            State::Warp(WarpCall { operation: WarpOperation::Barrier(call), site, .. }) => {
                format!("wait for their warp at {call} ({})", line(site))
            }
            State::Warp(call) => {
                format!("wait at {}({:#010x}) ({})", call.operation.name(), call.mask, line(call.site))
            }
        };
        match groups.last_mut() {
            Some((_, last, known)) if *last + 1 == thread && *known == wait => *last = thread,
            _ => groups.push((thread, thread, wait)),
        }
    }
    let mut text = String::new();
    for (index, (first, last, wait)) in groups.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}threads {first}–{last} {wait}");
    }
    text
}
