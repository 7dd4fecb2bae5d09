//! What all checkers of a running block share: who runs, who comes before whom, what it costs, and what was found.
use std::sync::atomic::Ordering::Relaxed;

use crate::cost::recorder::Recorder;
use crate::execution::launch::Launch;
use crate::execution::schedule::Schedule;
use crate::execution::steps::Steps;
use crate::execution::trap::Panic;
use crate::order::clock::Clocks;
use crate::report::finding::{Finding, FindingKind, Findings, Place};
use crate::report::operation::Operation;
use crate::report::site::{Caller, SiteCache, SiteId};

/// What a thread must do before it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pause {
    #[default]
    None,
    /// Let the other lanes of its warp catch up.
    GiveWay,
    /// End here: the block is given up.
    Stop,
}

pub(crate) struct Context<'l> {
    pub(crate) launch: &'l Launch<'l>,
    /// Linear index of the block.
    pub(crate) block: u64,
    pub(crate) schedule: Schedule,
    pub(crate) clocks: Clocks,
    pub(crate) costs: Recorder,
    pub(crate) findings: Findings,
    pub(crate) pause: Pause,
    /// All threads of the block have exited.
    pub(crate) is_over: bool,
    /// The block is given up: its threads end without further findings.
    pub(crate) aborted: bool,
    sites: SiteCache<'l>,
    steps: Steps,
}

impl<'l> Context<'l> {
    pub(crate) fn new(launch: &'l Launch<'l>) -> Self {
        Self {
            launch,
            block: 0,
            schedule: Schedule::default(),
            clocks: Clocks::default(),
            costs: Recorder::new(launch.geometry.threads),
            findings: Findings::default(),
            pause: Pause::None,
            is_over: false,
            aborted: false,
            sites: SiteCache::new(&launch.sites),
            steps: Steps::default(),
        }
    }

    pub(crate) fn start_block(&mut self, block: u64) {
        let threads = self.launch.geometry.threads as usize;
        self.block = block;
        self.schedule.start(threads);
        self.clocks.start(threads);
        self.pause = Pause::None;
        self.is_over = false;
        self.aborted = false;
        self.steps.start_block(threads, self.launch.limits.steps_per_thread);
    }

    /// The number of a line.
    #[inline]
    pub(crate) fn site(&mut self, caller: Caller, operation: Operation) -> SiteId {
        self.sites.of(caller, operation)
    }

    /// Counts a step of a thread, and gives the number of its line.
    #[inline]
    pub(crate) fn step(&mut self, thread: u32, caller: Caller, operation: Operation) -> SiteId {
        let site = self.tick(thread, caller, operation);
        self.costs.of(site).executions += 1;
        site
    }

    /// Steps that a thread has taken, of those that the limit counts.
    pub(crate) fn steps_taken(&self, thread: u32) -> u64 {
        self.launch.limits.steps_per_thread - self.steps.left(thread)
    }

    /// As [`step`](Self::step) for what is not counted, or not by threads.
    #[inline]
    pub(crate) fn tick(&mut self, thread: u32, caller: Caller, operation: Operation) -> SiteId {
        let site = self.site(caller, operation);
        if self.steps.pass_limit(thread) {
            self.stop(thread, site);
        }
        site
    }

    #[cold]
    fn stop(&mut self, thread: u32, site: SiteId) {
        let limit = self.launch.limits.steps_per_thread;
        let detail = format!(
            "more than {limit} memory and synchronisation operations; if that is right, raise \
             `Limits::steps_per_thread`; blocks that had not started were skipped"
        );
        self.report(FindingKind::StepLimit, site, thread, None, None, detail);
        self.launch.stopped.store(true, Relaxed);
        self.aborted = true;
        self.pause = Pause::Stop;
    }

    /// Counts the access of one lane as part of its warp's request. Without an address the lane lets the request pass.
    #[inline]
    pub(crate) fn request(
        &mut self,
        thread: u32,
        site: SiteId,
        operation: Operation,
        address: Option<u64>,
        bytes: u32,
    ) {
        let live = self.schedule.live((thread / 32) as usize);
        let ahead = self.costs.request((site, operation), (thread, live), (address, bytes));
        if ahead && self.pause == Pause::None {
            self.pause = Pause::GiveWay;
        }
    }

    #[cold]
    pub(crate) fn report(
        &mut self,
        kind: FindingKind,
        site: SiteId,
        thread: u32,
        place: Option<Place>,
        other: Option<SiteId>,
        detail: String,
    ) {
        if self.aborted {
            return;
        }
        let finding = Finding {
            kind,
            source: Some(self.launch.sites.get(site).0),
            other: other.map(|site| self.launch.sites.get(site).0),
            block: self.launch.geometry.block(self.block),
            thread: Some(thread),
            place,
            detail,
            count: 1,
        };
        self.findings.add(self.block, finding);
    }

    /// A thread has panicked, which ends the block.
    pub(crate) fn trap(&mut self, thread: u32, panic: Panic) {
        self.aborted = true;
        let finding = Finding {
            kind: FindingKind::Trap,
            source: panic.source,
            other: None,
            block: self.launch.geometry.block(self.block),
            thread: Some(thread),
            place: None,
            detail: panic.message,
            count: 1,
        };
        self.findings.add(self.block, finding);
    }
}
