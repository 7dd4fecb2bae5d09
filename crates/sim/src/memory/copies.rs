//! Asynchronous copies from global to shared memory.
//!
//! A copy's bytes are taken when it starts and land when its thread waits for it, never earlier, so that a kernel
//! which forgets to wait also computes with the wrong data.
use std::collections::VecDeque;

use crate::execution::context::Context;
use crate::memory::bits::Words;
use crate::memory::global::{GlobalAccess, GlobalMemory};
use crate::memory::shared::{SharedAccess, SharedMemory};
use crate::order::race::Access;
use crate::report::finding::FindingKind;
use crate::report::operation::Operation;
use crate::report::site::{Caller, SiteId};

/// A copy under way.
struct Copy {
    group: u32,
    to: SharedAccess,
    site: SiteId,
    value: Words,
}

/// The copies of one thread.
#[derive(Default)]
struct ThreadCopies {
    /// Groups committed so far; later copies belong to the next one.
    committed: u32,
    pending: VecDeque<Copy>,
}

/// The checker of asynchronous copies, by thread.
#[derive(Default)]
pub(crate) struct Copies(Vec<ThreadCopies>);

impl Copies {
    pub(crate) fn start_block(&mut self, threads: usize) {
        self.0.clear();
        self.0.resize_with(threads, ThreadCopies::default);
    }

    /// Starts a copy, or of zeros where there is no source.
    pub(crate) fn start<'l>(
        &mut self,
        context: &mut Context<'l>,
        global: &mut GlobalMemory<'l>,
        shared: &mut SharedMemory,
        to: SharedAccess,
        from: Option<u64>,
    ) {
        let SharedAccess { thread, caller, bytes, element, .. } = to;
        let operation = Operation::CopyAsync;
        let value = if let Some(address) = from {
            global.load(context, GlobalAccess { thread, caller, operation, address, bytes, element })
        } else {
            let site = context.site(caller, operation);
            context.request(thread, site, operation, None, bytes);
            [0; 2]
        };
        if let Some(site) = shared.locate(context, &to) {
            shared.visit(context, &to, site, Access::Write);
            shared.cells.set_flight(to.offset, bytes, thread, site);
            let copies = &mut self.0[thread as usize];
            copies.pending.push_back(Copy { group: copies.committed, to, site, value });
        }
    }

    pub(crate) fn commit(&mut self, context: &mut Context<'_>, thread: u32, caller: Caller) {
        context.step(thread, caller, Operation::CopyControl);
        self.0[thread as usize].committed += 1;
    }

    /// Lands the thread's copies but those of its last `pending` groups.
    pub(crate) fn wait(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut SharedMemory,
        (thread, caller): (u32, Caller),
        pending: u32,
    ) {
        context.step(thread, caller, Operation::CopyControl);
        let copies = &mut self.0[thread as usize];
        let landed = copies.committed.saturating_sub(pending);
        while let Some(copy) = copies.pending.pop_front_if(|copy| copy.group < landed) {
            let Copy { to, site, value, .. } = copy;
            shared.cells.clear_flight(to.offset, to.bytes, thread);
            shared.visit(context, &to, site, Access::Write);
            shared.cells.store(to.offset, to.bytes, value);
        }
    }

    pub(crate) fn check_exit(&self, context: &mut Context<'_>, thread: u32) {
        let pending = &self.0[thread as usize].pending;
        if let Some(site) = pending.front().map(|copy| copy.site) {
            let detail = format!("{} copies under way", pending.len());
            context.report(FindingKind::CopyNotWaited, site, thread, None, None, detail);
        }
    }
}
