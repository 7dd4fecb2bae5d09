//! A thread's way to the shared memory of its block: bounds, what was written, and order.
use lacuna_gpu::{AtomicBits, AtomicOp};

use crate::execution::context::Context;
use crate::memory::bits::{Words, from_words, to_words};
use crate::memory::cells::Cells;
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

/// The checker of accesses to shared memory.
#[derive(Default)]
pub(crate) struct SharedMemory {
    pub(crate) cells: Cells,
}

impl SharedMemory {
    #[cold]
    pub(crate) fn report(
        &self,
        context: &mut Context<'_>,
        kind: FindingKind,
        site: SiteId,
        access: &SharedAccess,
        other: Option<SiteId>,
    ) {
        let place = access.place(self.cells.len());
        context.report(kind, site, access.thread, Some(place), other, String::new());
    }

    /// A thread makes its writes visible to products of warpgroups.
    pub(crate) fn fence_proxy(&mut self, context: &mut Context<'_>, thread: u32, caller: Caller) {
        context.step(thread, caller, Operation::ProxyFence);
        self.cells.fence_proxy(thread, context.clocks.now(thread));
    }

    /// Counts an access and gives its line where it may happen; reports it where it may not.
    #[inline]
    pub(crate) fn locate(&self, context: &mut Context<'_>, access: &SharedAccess) -> Option<SiteId> {
        let SharedAccess { thread, offset, bytes, operation, .. } = *access;
        let site = context.step(thread, access.caller, operation);
        if !offset.is_multiple_of(bytes) {
            self.report(context, FindingKind::Misaligned, site, access, None);
            None
        } else if u64::from(offset) + u64::from(bytes) > u64::from(self.cells.len()) {
            self.report(context, FindingKind::OutOfBounds, site, access, None);
            None
        } else {
            context.request(thread, site, operation, Some(u64::from(offset)), bytes);
            Some(site)
        }
    }

    /// Records an access that may happen and reports its faults. Gives whether what it reads is defined.
    #[inline]
    pub(crate) fn visit(
        &mut self,
        context: &mut Context<'_>,
        access: &SharedAccess,
        site: SiteId,
        kind: Access,
    ) -> bool {
        let now = context.clocks.now(access.thread);
        let who = context.clocks.who(&now, site);
        let faults = self.cells.visit(access.offset, access.bytes, kind, &who);
        if faults.uninitialised {
            self.report(context, FindingKind::Uninitialised, site, access, None);
        }
        if faults.race.is_some() {
            self.report(context, FindingKind::Race, site, access, faults.race);
        }
        if faults.cluster.is_some() {
            self.report(context, FindingKind::RaceInCluster, site, access, faults.cluster);
        }
        if faults.flight.is_some() {
            self.report(context, FindingKind::CopyInFlight, site, access, faults.flight);
        }
        !faults.uninitialised
    }

    /// Records that a bulk copy will write there, which comes its own way: past it are what threads have written and not fenced.
    pub(crate) fn overwrite_by_proxy(
        &mut self,
        context: &mut Context<'_>,
        access: &SharedAccess,
        site: SiteId,
    ) {
        let now = context.clocks.now(access.thread);
        let unfenced = self.cells.unfenced(access.offset, &context.clocks.who(&now, site));
        if unfenced.is_some() {
            self.report(context, FindingKind::MissingProxyFence, site, access, unfenced);
        }
        self.visit(context, access, site, Access::Write);
    }

    /// The words of a load; zeros where it may not happen or was never written.
    #[inline]
    pub(crate) fn load(&mut self, context: &mut Context<'_>, access: SharedAccess) -> Words {
        match self.locate(context, &access) {
            Some(site) if self.visit(context, &access, site, Access::Read) => {
                self.cells.load(access.offset, access.bytes)
            }
            _ => [0; 2],
        }
    }

    /// Stores, unless it may not happen.
    #[inline]
    pub(crate) fn store(&mut self, context: &mut Context<'_>, access: SharedAccess, value: Words) {
        if let Some(site) = self.locate(context, &access) {
            self.visit(context, &access, site, Access::Write);
            self.cells.store(access.offset, access.bytes, value);
        }
    }

    /// Exchanges; gives the old value, or the default where it may not happen or was never written.
    pub(crate) fn atomic<T: AtomicBits>(
        &mut self,
        context: &mut Context<'_>,
        access: SharedAccess,
        op: AtomicOp,
        operand: T,
    ) -> T {
        let Some(site) = self.locate(context, &access) else { return T::default() };
        let old = if self.visit(context, &access, site, Access::Atomic) {
            let [old] = from_words::<T, 1>(self.cells.load(access.offset, access.bytes));
            old
        } else {
            T::default()
        };
        self.cells.store(access.offset, access.bytes, to_words([T::apply(op, old, operand)]));
        old
    }
}
