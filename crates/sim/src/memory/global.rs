//! A block's way to global memory: bounds, what was written, and order.
use lacuna_gpu::{AtomicBits, AtomicOp};

use crate::execution::context::Context;
use crate::execution::launch::Launch;
use crate::memory::bits::{Words, from_words, to_words};
use crate::memory::view::{RecentViews, View};
use crate::order::early::Waited;
use crate::order::handover::Handover;
use crate::order::marks::Party;
use crate::order::own::OwnAccesses;
use crate::order::race::Access;
use crate::report::finding::FindingKind;
use crate::report::operation::Operation;
use crate::report::site::{Caller, SiteId};

/// One access: by whom, from which line, to what. `element` is the size of an element in bytes.
#[derive(Clone, Copy)]
pub(crate) struct GlobalAccess {
    pub(crate) thread: u32,
    pub(crate) caller: Caller,
    pub(crate) operation: Operation,
    pub(crate) address: u64,
    pub(crate) bytes: u32,
    pub(crate) element: u32,
}

impl GlobalAccess {
    /// Reports an access that may not happen.
    #[cold]
    fn refuse(&self, context: &mut Context<'_>, kind: FindingKind, site: SiteId) {
        let Self { thread, address, bytes, element, .. } = *self;
        let freed = context.launch.freed_at(address).is_some();
        let kind = if freed { FindingKind::UseAfterFree } else { kind };
        let place = context.launch.place(address, bytes, element);
        context.report(kind, site, thread, Some(place), None, format!("address {address:#x}"));
    }

    #[cold]
    fn report(&self, context: &mut Context<'_>, kind: FindingKind, site: SiteId, other: Option<SiteId>) {
        let place = context.launch.place(self.address, self.bytes, self.element);
        context.report(kind, site, self.thread, Some(place), other, String::new());
    }
}

/// The checker of accesses to global memory.
#[derive(Default)]
pub(crate) struct GlobalMemory<'l> {
    recent: RecentViews<'l>,
    own: OwnAccesses,
    handover: Handover,
    waited: Waited,
    /// The bit of each line of read-only loads, 0 for what is not known yet.
    readonly_bits: Vec<u32>,
}

impl<'l> GlobalMemory<'l> {
    pub(crate) fn start_block(&mut self, launch: &Launch<'_>) {
        let threads = launch.geometry.threads as usize;
        self.own.start_block();
        self.handover.start_block(threads);
        self.waited.start_block(threads, !launch.looks_ahead);
    }

    /// A thread has waited for the launch before.
    pub(crate) fn grid_dependency_wait(&mut self, thread: u32) {
        self.waited.wait(thread);
    }

    /// A thread fences.
    pub(crate) fn fence(&mut self, context: &mut Context<'_>, thread: u32, caller: Caller) {
        context.step(thread, caller, Operation::Fence);
        context.launch.announcements.fence();
        self.handover.fence(thread, &context.clocks);
    }

    fn readonly_bit(&mut self, launch: &Launch<'_>, site: SiteId) -> u32 {
        let index = site as usize;
        if self.readonly_bits.len() <= index {
            self.readonly_bits.resize(index + 1, 0);
        }
        if self.readonly_bits[index] == 0 {
            self.readonly_bits[index] = launch.readonly_bit(site);
        }
        self.readonly_bits[index]
    }

    /// Counts an access and finds its buffer; reports it where it may not happen.
    #[inline]
    fn locate(
        &mut self,
        context: &mut Context<'l>,
        access: &GlobalAccess,
    ) -> (SiteId, Option<(&'l View, u64)>) {
        let site = context.step(access.thread, access.caller, access.operation);
        let found = self.find(context, access, site);
        if found.is_some() {
            context.request(access.thread, site, access.operation, Some(access.address), access.bytes);
        }
        (site, found)
    }

    /// Finds the buffer of an access; reports it where it may not happen.
    #[inline]
    fn find(
        &mut self,
        context: &mut Context<'l>,
        access: &GlobalAccess,
        site: SiteId,
    ) -> Option<(&'l View, u64)> {
        let GlobalAccess { thread, address, bytes, .. } = *access;
        let kind = match self.recent.at(context.launch, address) {
            Some(view) => {
                if self.waited.is_too_early(thread, access.operation, view) {
                    access.report(context, FindingKind::TooEarly, site, None);
                }
                let offset = address - view.allocation.base;
                if !address.is_multiple_of(u64::from(bytes)) {
                    FindingKind::Misaligned
                } else if offset + u64::from(bytes) > view.allocation.len() {
                    FindingKind::OutOfBounds
                } else {
                    return Some((view, offset));
                }
            }
            None => FindingKind::OutOfBounds,
        };
        access.refuse(context, kind, site);
        None
    }

    /// Records an access to memory that the launch may write, and reports the races of the block.
    fn order(
        &mut self,
        context: &mut Context<'_>,
        access: &GlobalAccess,
        site: SiteId,
        (view, offset): (&View, u64),
        kind: Access,
    ) {
        let GlobalAccess { thread, address, bytes, .. } = *access;
        let now = context.clocks.now(thread);
        let party = Party { block: context.block as u32, site, phase: self.handover.phase() };
        if kind == Access::Read && self.handover.has_acquired() {
            self.mark_handed(context, thread, (view, offset), bytes, party);
        } else {
            view.marks.access(view.allocation.len(), offset, bytes, kind, party);
        }
        if kind == Access::Write {
            self.handover.write(thread, now);
        }
        let who = context.clocks.who(&now, site);
        if let Some(rival) = self.own.visit(address, bytes, kind, &who) {
            access.report(context, FindingKind::Race, site, Some(rival));
        }
    }

    /// Marks a read of what other blocks may have handed over, 4 bytes at a time.
    #[cold]
    fn mark_handed(
        &mut self,
        context: &Context<'_>,
        thread: u32,
        (view, offset): (&View, u64),
        bytes: u32,
        party: Party,
    ) {
        let Context { clocks, launch, .. } = context;
        let (len, piece) = (view.allocation.len(), bytes.min(4));
        for at in (offset..offset + u64::from(bytes)).step_by(piece as usize) {
            let writer = view.marks.writer(at, piece).filter(|writer| {
                let written = (writer.block, writer.phase);
                writer.block != party.block
                    && self.handover.is_after(written, thread, clocks, &launch.announcements)
            });
            match writer {
                Some(Party { phase, .. }) => view.marks.handed(len, at, piece, Party { phase, ..party }),
                None => view.marks.access(len, at, piece, Access::Read, party),
            }
        }
    }

    /// The words of a load; zeros where it may not happen.
    #[inline]
    pub(crate) fn load(&mut self, context: &mut Context<'l>, access: GlobalAccess) -> Words {
        let (site, Some(found)) = self.locate(context, &access) else { return [0; 2] };
        self.read(context, &access, site, found)
    }

    /// As [`load`](Self::load), for a part of a bulk copy, which counts for itself.
    pub(crate) fn load_piece(
        &mut self,
        context: &mut Context<'l>,
        access: &GlobalAccess,
        site: SiteId,
    ) -> Words {
        match self.find(context, access, site) {
            Some(found) => self.read(context, access, site, found),
            None => [0; 2],
        }
    }

    #[inline]
    fn read(
        &mut self,
        context: &mut Context<'l>,
        access: &GlobalAccess,
        site: SiteId,
        (view, offset): (&'l View, u64),
    ) -> Words {
        let storage = &view.allocation.storage;
        if access.operation == Operation::Load {
            self.order(context, access, site, (view, offset), Access::Read);
        } else {
            let bit = self.readonly_bit(context.launch, site);
            view.marks.readonly(storage.len(), offset, access.bytes, bit);
        }
        if !storage.is_written(offset, access.bytes) {
            access.report(context, FindingKind::Uninitialised, site, None);
        }
        storage.load(offset, access.bytes)
    }

    /// Stores, unless it may not happen.
    pub(crate) fn store(&mut self, context: &mut Context<'l>, access: GlobalAccess, value: Words) {
        let (site, Some((view, offset))) = self.locate(context, &access) else { return };
        self.order(context, &access, site, (view, offset), Access::Write);
        view.allocation.unsettle();
        view.allocation.storage.store(offset, access.bytes, value);
    }

    /// Exchanges; gives the old value, or the default where it may not happen.
    pub(crate) fn atomic<T: AtomicBits>(
        &mut self,
        context: &mut Context<'l>,
        access: GlobalAccess,
        op: AtomicOp,
        operand: T,
    ) -> T {
        let (site, Some((view, offset))) = self.locate(context, &access) else { return T::default() };
        let storage = &view.allocation.storage;
        if !storage.is_written(offset, access.bytes) {
            access.report(context, FindingKind::Uninitialised, site, None);
        }
        self.order(context, &access, site, (view, offset), Access::Atomic);
        view.allocation.unsettle();
        let old = self.handover.exchange(context, access.thread, access.address, || {
            storage.update(offset, access.bytes, |old| {
                let [old] = from_words::<T, 1>([old, 0]);
                to_words([T::apply(op, old, operand)])[0]
            })
        });
        let [old] = from_words::<T, 1>([old, 0]);
        old
    }
}
