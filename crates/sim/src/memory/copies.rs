//! Asynchronous copies from global to shared memory.
//!
//! A copy's bytes are taken when it starts and land when its thread waits for it, never earlier, so that a kernel
//! which forgets to wait also computes with the wrong data.
use std::collections::VecDeque;

use crate::execution::worker::Worker;
use crate::memory::bits::Words;
use crate::memory::global::GlobalAccess;
use crate::memory::shared_path::SharedAccess;
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
pub(crate) struct Copies {
    /// Groups committed so far; later copies belong to the next one.
    committed: u32,
    pending: VecDeque<Copy>,
}

impl Worker<'_> {
    /// Starts a copy, or of zeros where there is no source.
    pub(crate) fn copy_async(&mut self, to: SharedAccess, from: Option<u64>) {
        let SharedAccess { thread, caller, bytes, element, .. } = to;
        let operation = Operation::CopyAsync;
        let value = if let Some(address) = from {
            self.global_load(GlobalAccess { thread, caller, operation, address, bytes, element })
        } else {
            let site = self.sites.of(caller, operation);
            self.request(thread, site, operation, None, bytes);
            [0; 2]
        };
        if let Some(site) = self.locate_shared(&to) {
            self.visit_shared(&to, site, Access::Write);
            self.shared.set_flight(to.offset, bytes, thread, site);
            let copies = &mut self.copies[thread as usize];
            copies.pending.push_back(Copy { group: copies.committed, to, site, value });
        }
    }

    pub(crate) fn commit_copies(&mut self, thread: u32, caller: Caller) {
        self.step(thread, caller, Operation::CopyControl);
        self.copies[thread as usize].committed += 1;
    }

    /// Lands the thread's copies but those of its last `pending` groups.
    pub(crate) fn wait_for_copies(&mut self, thread: u32, caller: Caller, pending: u32) {
        self.step(thread, caller, Operation::CopyControl);
        let landed = self.copies[thread as usize].committed.saturating_sub(pending);
        while let Some(copy) = self.copies[thread as usize].pending.pop_front_if(|copy| copy.group < landed) {
            let Copy { to, site, value, .. } = copy;
            self.shared.clear_flight(to.offset, to.bytes, thread);
            self.visit_shared(&to, site, Access::Write);
            self.shared.store(to.offset, to.bytes, value);
        }
    }

    pub(crate) fn check_copies_at_exit(&mut self, thread: u32) {
        if let Some(site) = self.copies[thread as usize].pending.front().map(|copy| copy.site) {
            let pending = self.copies[thread as usize].pending.len();
            let detail = format!("{pending} copies under way");
            self.report(FindingKind::CopyNotWaited, site, thread, None, None, detail);
        }
    }
}
