//! One host thread's state while it runs blocks, one after the other.
use std::sync::atomic::Ordering::Relaxed;

use crate::cost::counters::Counters;
use crate::cost::request::WarpRequests;
use crate::execution::launch::Launch;
use crate::execution::schedule::Schedule;
use crate::execution::trap::Panic;
use crate::memory::copies::Copies;
use crate::memory::global::GlobalPath;
use crate::memory::shared::SharedMemory;
use crate::order::clock::Clocks;
use crate::order::handover::Handover;
use crate::report::finding::{Finding, FindingKind, Findings, Place};
use crate::report::operation::Operation;
use crate::report::site::{Caller, SiteCache, SiteId};
use crate::synchronisation::named::NamedBarriers;
use crate::tensor::arithmetic::Exchange;
use crate::tensor::warpgroup::Warpgroups;

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

pub(crate) struct Worker<'l> {
    pub(crate) launch: &'l Launch<'l>,
    /// Linear index of the block.
    pub(crate) block: u64,
    pub(crate) sites: SiteCache<'l>,
    pub(crate) counters: Counters,
    requests: Vec<WarpRequests>,
    pub(crate) clocks: Clocks,
    pub(crate) shared: SharedMemory,
    pub(crate) global: GlobalPath<'l>,
    pub(crate) handover: Handover,
    pub(crate) copies: Vec<Copies>,
    pub(crate) schedule: Schedule,
    pub(crate) exchange: Exchange,
    pub(crate) named: NamedBarriers,
    pub(crate) warpgroups: Warpgroups,
    steps: Vec<u64>,
    /// Which threads may do anything: those that have waited for the launch before.
    pub(crate) waited: Vec<bool>,
    pub(crate) findings: Findings,
    pub(crate) pause: Pause,
    /// All threads of the block have exited.
    pub(crate) is_over: bool,
    /// The block is given up: its threads end without further findings.
    pub(crate) aborted: bool,
    /// Distinct sectors of each block, summed.
    pub(crate) block_sectors: u64,
}

impl<'l> Worker<'l> {
    pub(crate) fn new(launch: &'l Launch<'l>) -> Self {
        let mut requests = Vec::new();
        requests.resize_with(launch.geometry.threads.div_ceil(32) as usize, WarpRequests::default);
        Self {
            launch,
            block: 0,
            sites: SiteCache::new(&launch.sites),
            counters: Counters::default(),
            requests,
            clocks: Clocks::default(),
            shared: SharedMemory::default(),
            global: GlobalPath::default(),
            handover: Handover::default(),
            copies: Vec::new(),
            schedule: Schedule::default(),
            exchange: Exchange::default(),
            named: NamedBarriers::default(),
            warpgroups: Warpgroups::default(),
            steps: Vec::new(),
            waited: Vec::new(),
            findings: Findings::default(),
            pause: Pause::None,
            is_over: false,
            aborted: false,
            block_sectors: 0,
        }
    }

    pub(crate) fn start_block(&mut self, block: u64) {
        let threads = self.launch.geometry.threads as usize;
        self.block = block;
        self.is_over = false;
        self.aborted = false;
        self.pause = Pause::None;
        self.clocks.start(threads);
        self.shared.start(self.launch.geometry.shared_bytes);
        self.global.start();
        self.handover.start(threads);
        self.copies.clear();
        self.copies.resize_with(threads, Copies::default);
        self.schedule.start(threads);
        self.named.start();
        self.warpgroups.start(threads.div_ceil(32));
        self.steps.clear();
        self.steps.resize(threads, 0);
        self.waited.clear();
        self.waited.resize(threads, !self.launch.looks_ahead);
    }

    pub(crate) fn finish_block(&mut self) {
        for warp in 0..self.requests.len() {
            let Self { requests, counters, global, .. } = self;
            requests[warp].finish(|site, request| {
                counters.request(site, request, |sector| global.touch(request.operation, sector));
            });
        }
        self.block_sectors += self.global.finish(self.launch);
    }

    /// Counts a step of a thread, and gives the number of its line.
    #[inline]
    pub(crate) fn step(&mut self, thread: u32, caller: Caller, operation: Operation) -> SiteId {
        let site = self.tick(thread, caller, operation);
        self.counters.of(site).executions += 1;
        site
    }

    /// As [`step`](Self::step) for what is not counted, or not by threads.
    #[inline]
    pub(crate) fn tick(&mut self, thread: u32, caller: Caller, operation: Operation) -> SiteId {
        let site = self.sites.of(caller, operation);
        let steps = &mut self.steps[thread as usize];
        *steps += 1;
        if *steps > self.launch.limits.steps_per_thread {
            self.pass_step_limit(thread, site);
        }
        site
    }

    #[cold]
    fn pass_step_limit(&mut self, thread: u32, site: SiteId) {
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
        let (warp, lane) = ((thread / 32) as usize, thread % 32);
        self.counters.of(site).bytes += if address.is_some() { u64::from(bytes) } else { 0 };
        let live = self.schedule.live(warp);
        let Self { requests, counters, global, .. } = self;
        let ahead = requests[warp].record((site, operation), (lane, live), (address, bytes), |request| {
            counters.request(site, request, |sector| global.touch(operation, sector));
        });
        if ahead && self.pause == Pause::None {
            self.pause = Pause::GiveWay;
        }
    }

    /// A thread has left the kernel.
    pub(crate) fn exit(&mut self, thread: u32, outcome: Result<(), Panic>) {
        self.schedule.exit(thread);
        if self.aborted {
            return;
        }
        match outcome {
            Ok(()) => {
                self.check_copies_at_exit(thread);
                self.check_products_at_exit(thread);
            }
            Err(panic) => {
                self.aborted = true;
                self.add(Finding {
                    kind: FindingKind::Trap,
                    source: panic.source,
                    other: None,
                    block: self.launch.geometry.block(self.block),
                    thread: Some(thread),
                    place: None,
                    detail: panic.message,
                    count: 1,
                });
            }
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
        self.add(Finding {
            kind,
            source: Some(self.launch.sites.get(site).0),
            other: other.map(|site| self.launch.sites.get(site).0),
            block: self.launch.geometry.block(self.block),
            thread: Some(thread),
            place,
            detail,
            count: 1,
        });
    }

    fn add(&mut self, finding: Finding) {
        if !self.aborted || finding.kind == FindingKind::Trap {
            self.findings.add(self.block, finding);
        }
    }
}
