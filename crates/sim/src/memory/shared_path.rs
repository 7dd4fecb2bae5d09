//! A thread's way to the shared memory of its block.
use lacuna_gpu::{AtomicBits, AtomicOp};

use crate::execution::worker::Worker;
use crate::memory::bits::{Words, from_words, to_words};
use crate::order::race::Access;
use crate::report::finding::{FindingKind, Place};
use crate::report::operation::Operation;
use crate::report::site::{Caller, SiteId};

/// One access: by whom, from which line, to what. `element` is the size of an element in bytes.
#[derive(Clone, Copy)]
pub(crate) struct SharedAccess {
    pub(crate) thread: u32,
    pub(crate) caller: Caller,
    pub(crate) operation: Operation,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    pub(crate) element: u32,
}

impl SharedAccess {
    fn place(&self, len: u32) -> Place {
        place(self.offset, self.bytes, self.element, len)
    }
}

/// Describes `bytes` bytes of elements of `element` bytes, in `len` bytes of shared memory.
pub(crate) fn place(offset: u32, bytes: u32, element: u32, len: u32) -> Place {
    Place {
        buffer: "shared memory".to_owned(),
        offset: i64::from(offset),
        element: i64::from(offset / element),
        bytes,
        buffer_bytes: u64::from(len),
    }
}

impl Worker<'_> {
    #[cold]
    pub(crate) fn report_shared(
        &mut self,
        kind: FindingKind,
        site: SiteId,
        access: &SharedAccess,
        other: Option<SiteId>,
    ) {
        let place = access.place(self.shared.len());
        self.report(kind, site, access.thread, Some(place), other, String::new());
    }

    /// Counts an access and gives its line where it may happen; reports it where it may not.
    #[inline]
    pub(crate) fn locate_shared(&mut self, access: &SharedAccess) -> Option<SiteId> {
        let SharedAccess { thread, offset, bytes, operation, .. } = *access;
        let site = self.step(thread, access.caller, operation);
        if !offset.is_multiple_of(bytes) {
            self.report_shared(FindingKind::Misaligned, site, access, None);
            None
        } else if u64::from(offset) + u64::from(bytes) > u64::from(self.shared.len()) {
            self.report_shared(FindingKind::OutOfBounds, site, access, None);
            None
        } else {
            self.request(thread, site, operation, Some(u64::from(offset)), bytes);
            Some(site)
        }
    }

    /// Records an access that may happen and reports its faults. Gives whether what it reads is defined.
    #[inline]
    pub(crate) fn visit_shared(&mut self, access: &SharedAccess, site: SiteId, kind: Access) -> bool {
        let now = self.clocks.now(access.thread);
        let who = self.clocks.who(&now, site);
        let faults = self.shared.visit(access.offset, access.bytes, kind, &who);
        if faults.uninitialised {
            self.report_shared(FindingKind::Uninitialised, site, access, None);
        }
        if faults.race.is_some() {
            self.report_shared(FindingKind::Race, site, access, faults.race);
        }
        if faults.cluster.is_some() {
            self.report_shared(FindingKind::RaceInCluster, site, access, faults.cluster);
        }
        if faults.flight.is_some() {
            self.report_shared(FindingKind::CopyInFlight, site, access, faults.flight);
        }
        !faults.uninitialised
    }

    /// The words of a load; zeros where it may not happen or was never written.
    #[inline]
    pub(crate) fn shared_load(&mut self, access: SharedAccess) -> Words {
        match self.locate_shared(&access) {
            Some(site) if self.visit_shared(&access, site, Access::Read) => {
                self.shared.load(access.offset, access.bytes)
            }
            _ => [0; 2],
        }
    }

    /// Stores, unless it may not happen.
    #[inline]
    pub(crate) fn shared_store(&mut self, access: SharedAccess, value: Words) {
        if let Some(site) = self.locate_shared(&access) {
            self.visit_shared(&access, site, Access::Write);
            self.shared.store(access.offset, access.bytes, value);
        }
    }

    /// Exchanges; gives the old value, or the default where it may not happen or was never written.
    pub(crate) fn shared_atomic<T: AtomicBits>(
        &mut self,
        access: SharedAccess,
        op: AtomicOp,
        operand: T,
    ) -> T {
        let Some(site) = self.locate_shared(&access) else { return T::default() };
        let old = if self.visit_shared(&access, site, Access::Atomic) {
            let [old] = from_words::<T, 1>(self.shared.load(access.offset, access.bytes));
            old
        } else {
            T::default()
        };
        self.shared.store(access.offset, access.bytes, to_words([T::apply(op, old, operand)]));
        old
    }
}
