//! Completing the operations that threads do together, and seeing when they never will.
use std::fmt::Write as _;

use lacuna_gpu::{FULL_WARP, WARP};

use crate::execution::schedule::{BarrierCall, BarrierKind, State, WarpCall, WarpOperation, lanes};
use crate::execution::worker::Worker;
use crate::report::finding::FindingKind;
use crate::report::operation::Operation;
use crate::report::site::{Caller, SiteId};
use crate::tensor::arithmetic::{self, Parcel};

impl Worker<'_> {
    /// A thread reaches a block barrier.
    pub(crate) fn reach_barrier(&mut self, thread: u32, caller: Caller, kind: BarrierKind, predicate: bool) {
        let site = self.step(thread, caller, Operation::BlockBarrier);
        self.schedule.wait(thread, State::Barrier(BarrierCall { kind, site, predicate }));
    }

    /// A thread reaches a warp operation; `call.site` is filled in here. Gives whether it has to wait.
    pub(crate) fn reach_warp(&mut self, thread: u32, caller: Caller, mut call: WarpCall) -> bool {
        let operation = match call.operation {
            WarpOperation::Sync => Operation::WarpBarrier,
            shuffle if shuffle.is_shuffle() => Operation::Shuffle,
            _ => Operation::Vote,
        };
        call.site = self.step(thread, caller, operation);
        if let Err((kind, detail)) = check(thread % 32, &call) {
            self.report(kind, call.site, thread, None, None, detail);
            return false;
        }
        self.schedule.wait(thread, State::Warp(call));
        true
    }

    /// A thread reaches an operation of the whole warp, with the words that it gives to it.
    pub(crate) fn reach_aligned(
        &mut self,
        thread: u32,
        caller: Caller,
        operation: WarpOperation,
        parcel: Parcel,
    ) {
        let counted = match operation {
            WarpOperation::Multiply(factors) => Operation::of_product(factors),
            _ => Operation::SharedLoadMatrices,
        };
        let site = self.tick(thread, caller, counted);
        self.exchange.give(thread, parcel);
        let call = WarpCall { operation, site, mask: FULL_WARP, value: 0, lane: 0, width: WARP };
        self.schedule.wait(thread, State::Warp(call));
    }

    fn warp_call(&self, warp: usize, lane: u32) -> Option<WarpCall> {
        match self.schedule.states().get(warp * 32 + lane as usize) {
            Some(&State::Warp(call)) => Some(call),
            _ => None,
        }
    }

    /// Completes the operations of a warp for which all named lanes have come.
    pub(crate) fn resolve_warp(&mut self, warp: usize) {
        let mut open = self.schedule.live(warp) & !self.schedule.ready(warp);
        while open != 0 {
            let first = open.trailing_zeros();
            open &= open - 1;
            let Some(call) = self.warp_call(warp, first) else { continue };
            let wanted = call.mask & self.schedule.live(warp);
            let present = lanes(wanted)
                .filter(|&lane| self.warp_call(warp, lane).is_some_and(|other| other.meets(&call)))
                .fold(0, |bits, lane| bits | 1 << lane);
            open &= !present;
            if present == wanted {
                if call.operation.is_aligned() {
                    self.complete_aligned(warp, present, &call);
                } else {
                    self.complete(warp, present, call.operation);
                }
            }
        }
    }

    fn complete(&mut self, warp: usize, present: u32, operation: WarpOperation) {
        let calls: [Option<WarpCall>; 32] = std::array::from_fn(|lane| self.warp_call(warp, lane as u32));
        let calls = calls.map(|call| call.filter(|call| call.operation == operation));
        let holds = lanes(present)
            .filter(|&lane| calls[lane as usize].is_some_and(|call| call.value != 0))
            .fold(0, |bits, lane| bits | 1 << lane);
        if operation == WarpOperation::Sync {
            self.clocks.warp_barrier(warp, present);
        }
        for lane in lanes(present) {
            let Some(call) = calls[lane as usize] else { continue };
            let thread = warp * 32 + lane as usize;
            let result = match operation {
                WarpOperation::Sync => 0,
                WarpOperation::All => u32::from(holds == present),
                WarpOperation::Any => u32::from(holds != 0),
                WarpOperation::Ballot => holds,
                _ => {
                    let source = source_lane(lane, &call);
                    match calls[source as usize] {
                        Some(from) if present >> source & 1 != 0 => from.value,
                        _ => self.report_absent(thread as u32, &call, source),
                    }
                }
            };
            self.schedule.wake(thread, result);
        }
    }

    fn complete_aligned(&mut self, warp: usize, present: u32, call: &WarpCall) {
        let whole = present == FULL_WARP;
        if !whole {
            let detail = format!(
                "{} needs all {WARP} lanes, and only {present:#010x} are there: the result is undefined",
                call.operation.name()
            );
            let first = warp as u32 * WARP + present.trailing_zeros();
            self.report(FindingKind::AbsentLane, call.site, first, None, None, detail);
        }
        match call.operation {
            WarpOperation::Barrier(named) => return self.come_to_named(warp, present, named, call.site),
            WarpOperation::Cluster(cluster) => {
                return self.come_to_cluster(warp, present, cluster, call.site);
            }
            _ if !whole => self.exchange.warp(warp).fill(Parcel::default()),
            WarpOperation::Multiply(factors) => {
                arithmetic::multiply(factors, self.exchange.warp(warp));
                self.counters.of(call.site).executions += 1;
            }
            WarpOperation::LoadMatrices { transposed } => {
                arithmetic::distribute(transposed, self.exchange.warp(warp));
            }
            WarpOperation::Warpgroup(warpgroup) => self.complete_warpgroup(warp, warpgroup, call.site),
            _ => {}
        }
        for lane in lanes(present) {
            self.schedule.wake(warp * 32 + lane as usize, 0);
        }
    }

    /// Gives the value that stands for an undefined one.
    #[cold]
    fn report_absent(&mut self, thread: u32, call: &WarpCall, source: u32) -> u32 {
        let why = if call.mask >> source & 1 == 0 { "is not in the mask" } else { "has exited" };
        let detail = format!(
            "{} in lane {} reads lane {source}, which {why} {:#010x}: the value is undefined",
            call.operation.name(),
            thread % 32,
            call.mask
        );
        self.report(FindingKind::AbsentLane, call.site, thread, None, None, detail);
        0
    }

    /// When no warp can run on by itself: completes the block barrier, or reports a deadlock. Gives whether threads can
    /// run now.
    pub(crate) fn resolve_block(&mut self) -> bool {
        if self.schedule.is_ready() {
            // A later warp has filled the named barrier of an earlier one.
            return true;
        }
        if self.is_over || self.schedule.waits_for_cluster() {
            return false;
        }
        let mut waiting: Vec<(usize, BarrierCall)> = Vec::new();
        for (thread, state) in self.schedule.states().iter().enumerate() {
            match *state {
                State::Exited => {}
                State::Barrier(call) => waiting.push((thread, call)),
                State::Ready | State::Warp(_) | State::Named(..) | State::Cluster(_) => {
                    self.report_deadlock();
                    return false;
                }
            }
        }
        let Some(&(_, first)) = waiting.first() else {
            self.is_over = true;
            self.check_named_at_exit();
            self.check_warpgroups_at_exit();
            return false;
        };
        if let Some(&(thread, other)) = waiting.iter().find(|(_, call)| call.site != first.site) {
            let detail = self.describe_waits();
            let (kind, rival) = (FindingKind::DivergentBarrier, Some(first.site));
            self.report(kind, other.site, thread as u32, None, rival, detail);
        }
        let count = waiting.iter().filter(|(_, call)| call.predicate).count() as u32;
        self.clocks.block_barrier();
        self.named.block_barrier();
        for (thread, call) in waiting {
            let result = match call.kind {
                BarrierKind::Plain => 0,
                BarrierKind::Or => u32::from(count > 0),
                BarrierKind::Count => count,
            };
            self.schedule.wake(thread, result);
        }
        true
    }

    #[cold]
    fn report_deadlock(&mut self) {
        let states = self.schedule.states().iter().enumerate();
        let mut stuck = states.filter_map(|(thread, state)| match *state {
            State::Warp(call) => Some((thread, call)),
            _ => None,
        });
        let Some((thread, call)) = stuck.next() else { return self.report_named_deadlock() };
        let at_odds = |(thread, call): (usize, WarpCall)| {
            let (warp, live) = (thread / 32, self.schedule.live(thread / 32));
            lanes(call.mask & live)
                .filter_map(|lane| self.warp_call(warp, lane))
                .find(|other| !other.meets(&call))
        };
        let rival = at_odds((thread, call)).or_else(|| stuck.find_map(at_odds));
        let kind = match rival {
            Some(_) => FindingKind::MismatchedWarpOperation,
            None => FindingKind::Deadlock,
        };
        let detail = self.describe_waits();
        self.report(kind, call.site, thread as u32, None, rival.map(|call| call.site), detail);
        self.aborted = true;
    }

    /// Who waits where, a group of neighbours at a time.
    pub(crate) fn describe_waits(&self) -> String {
        let mut groups: Vec<(usize, usize, String)> = Vec::new();
        for (thread, state) in self.schedule.states().iter().enumerate() {
            let line = |site: SiteId| self.launch.sites.get(site).0;
            let wait = match *state {
                State::Ready => continue,
                State::Exited => "exited".to_owned(),
                State::Barrier(call) => format!("wait at {} ({})", call.kind.name(), line(call.site)),
                State::Named(call, site) => {
                    let came = self.named.came(call.id);
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
}

/// Refuses calls that no other lane could make good.
fn check(lane: u32, call: &WarpCall) -> Result<(), (FindingKind, String)> {
    let WarpCall { operation, mask, width, .. } = *call;
    if mask >> lane & 1 == 0 {
        let detail = format!("{} with mask {mask:#010x} called by lane {lane}", operation.name());
        return Err((FindingKind::CallerNotInMask, detail));
    }
    if operation.is_shuffle() && !(width.is_power_of_two() && width <= 32) {
        let detail = format!("width {width}: a power of two of at most 32 is expected");
        return Err((FindingKind::BadArgument, detail));
    }
    if operation == WarpOperation::ShuffleXor && call.lane >= width {
        let detail = format!("lane bits {} reach beyond the width {width}", call.lane);
        return Err((FindingKind::BadArgument, detail));
    }
    Ok(())
}

/// The lane that a shuffle reads.
fn source_lane(lane: u32, call: &WarpCall) -> u32 {
    let WarpCall { width, .. } = *call;
    let (first, last) = (lane & !(width - 1), lane | (width - 1));
    // The hardware looks at five bits.
    let given = call.lane & 31;
    match call.operation {
        WarpOperation::ShuffleIdx => first | (given & (width - 1)),
        WarpOperation::ShuffleDown if lane + given <= last => lane + given,
        WarpOperation::ShuffleUp if lane >= first + given => lane - given,
        WarpOperation::ShuffleXor => lane ^ given,
        _ => lane,
    }
}
