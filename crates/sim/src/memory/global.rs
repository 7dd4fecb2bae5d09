//! A block's way to global memory.
use lacuna_gpu::{AtomicBits, AtomicOp};

use crate::execution::launch::{Launch, View};
use crate::execution::worker::Worker;
use crate::memory::allocation::SLOT_SHIFT;
use crate::memory::bits::{Words, from_words, to_words};
use crate::memory::hash::AddressMap;
use crate::order::marks::{Party, SECTOR, SECTOR_PAGE};
use crate::order::race::{Access, Granule, Races, Who, granules};
use crate::report::finding::FindingKind;
use crate::report::operation::Operation;
use crate::report::site::{Caller, SiteId};

/// Granules of a page, as a power of two.
const PAGE_SHIFT: u32 = 6;
type Page = [Granule; 1 << PAGE_SHIFT];

/// What a block remembers of global memory: where buffers are, and its own accesses.
#[derive(Default)]
pub(crate) struct GlobalPath<'l> {
    /// Buffers met last, by the low bits of their slot.
    recent: [Option<(u64, &'l View)>; 8],
    /// Granules that the block may write, by page.
    pages: AddressMap<Box<Page>>,
    races: Races,
    /// Sectors read and written, as bits of 64, by page of [`SECTOR_PAGE`] bytes.
    sectors: AddressMap<[u64; 2]>,
    readonly_bits: Vec<u32>,
}

impl<'l> GlobalPath<'l> {
    pub(crate) fn start(&mut self) {
        self.pages.clear();
        self.races.clear();
    }

    /// Ends a block: hands its sectors to the launch, and gives how many distinct ones it read.
    pub(crate) fn finish(&mut self, launch: &Launch<'_>) -> u64 {
        let mut total = 0;
        for (page, [read, written]) in self.sectors.drain() {
            total += u64::from(read.count_ones());
            if let Some(view) = launch.view(page * SECTOR_PAGE) {
                let first = view.allocation.base / SECTOR_PAGE;
                view.marks.sectors(view.allocation.len(), page - first, read, written);
            }
        }
        total
    }

    /// Notes that a request touched a sector (address / 32).
    #[inline]
    pub(crate) fn touch(&mut self, operation: Operation, sector: u64) {
        let bits = self.sectors.entry(sector * SECTOR / SECTOR_PAGE).or_default();
        bits[usize::from(operation.writes_global())] |= 1 << (sector % 64);
    }

    #[inline]
    fn view(&mut self, launch: &'l Launch<'l>, address: u64) -> Option<&'l View> {
        let slot = address >> SLOT_SHIFT;
        let entry = &mut self.recent[slot as usize % 8];
        match *entry {
            Some((known, view)) if known == slot => Some(view),
            _ => {
                let view = launch.view(address)?;
                *entry = Some((slot, view));
                Some(view)
            }
        }
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

    /// Records an access to the block's own granules; gives the line that it races with.
    fn visit(&mut self, address: u64, bytes: u32, access: Access, who: &Who<'_>) -> Option<SiteId> {
        let page = self
            .pages
            .entry(address >> (PAGE_SHIFT + 2))
            .or_insert_with(|| Box::new([Granule::default(); 64]));
        let mut rival = None;
        for (index, mask) in granules(address, bytes) {
            let granule = &mut page[index as usize % page.len()];
            rival = rival.or(self.races.visit(granule, index, mask, access, who));
        }
        rival
    }
}

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

/// Whether a thread may do this before it has waited for the launch before: read what no launch has written since the host
/// last waited.
fn may_be_early(operation: Operation, view: &View) -> bool {
    operation == Operation::ReadonlyLoad && !view.allocation.is_unsettled()
}

impl<'l> Worker<'l> {
    /// Counts an access and finds its buffer; reports it where it may not happen.
    #[inline]
    fn locate(&mut self, access: &GlobalAccess) -> (SiteId, Option<(&'l View, u64)>) {
        let GlobalAccess { thread, address, bytes, .. } = *access;
        let site = self.step(thread, access.caller, access.operation);
        let kind = match self.global.view(self.launch, address) {
            Some(view) => {
                if !self.waited[thread as usize] && !may_be_early(access.operation, view) {
                    self.report_at(FindingKind::TooEarly, site, access, None);
                }
                let offset = address - view.allocation.base;
                if !address.is_multiple_of(u64::from(bytes)) {
                    FindingKind::Misaligned
                } else if offset + u64::from(bytes) > view.allocation.len() {
                    FindingKind::OutOfBounds
                } else {
                    self.request(thread, site, access.operation, Some(address), bytes);
                    return (site, Some((view, offset)));
                }
            }
            None => FindingKind::OutOfBounds,
        };
        self.refuse(kind, site, access);
        (site, None)
    }

    #[cold]
    fn refuse(&mut self, kind: FindingKind, site: SiteId, access: &GlobalAccess) {
        let GlobalAccess { thread, address, bytes, element, .. } = *access;
        let freed = self.launch.freed_at(address).is_some();
        let kind = if freed { FindingKind::UseAfterFree } else { kind };
        let place = self.launch.place(address, bytes, element);
        self.report(kind, site, thread, Some(place), None, format!("address {address:#x}"));
    }

    #[cold]
    fn report_at(&mut self, kind: FindingKind, site: SiteId, access: &GlobalAccess, other: Option<SiteId>) {
        let place = self.launch.place(access.address, access.bytes, access.element);
        self.report(kind, site, access.thread, Some(place), other, String::new());
    }

    /// Records an access to memory that the launch may write, and reports the races of the block.
    fn order(&mut self, access: &GlobalAccess, site: SiteId, (view, offset): (&View, u64), kind: Access) {
        let GlobalAccess { thread, address, bytes, .. } = *access;
        let now = self.clocks.now(thread);
        let party = Party { block: self.block as u32, site, phase: self.handover.phase() };
        if kind == Access::Read && self.handover.has_acquired() {
            self.mark_handed(thread, (view, offset), bytes, party);
        } else {
            view.marks.access(view.allocation.len(), offset, bytes, kind, party);
        }
        if kind == Access::Write {
            self.handover.write(thread, now);
        }
        let who = self.clocks.who(&now, site);
        if let Some(rival) = self.global.visit(address, bytes, kind, &who) {
            self.report_at(FindingKind::Race, site, access, Some(rival));
        }
    }

    /// Marks a read of what other blocks may have handed over, 4 bytes at a time.
    #[cold]
    fn mark_handed(&mut self, thread: u32, (view, offset): (&View, u64), bytes: u32, party: Party) {
        let Self { handover, clocks, launch, .. } = self;
        let (len, piece) = (view.allocation.len(), bytes.min(4));
        for at in (offset..offset + u64::from(bytes)).step_by(piece as usize) {
            let writer = view.marks.writer(at, piece).filter(|writer| {
                let written = (writer.block, writer.phase);
                writer.block != party.block
                    && handover.is_after(written, thread, clocks, &launch.announcements)
            });
            match writer {
                Some(Party { phase, .. }) => view.marks.handed(len, at, piece, Party { phase, ..party }),
                None => view.marks.access(len, at, piece, Access::Read, party),
            }
        }
    }

    /// The words of a load; zeros where it may not happen.
    #[inline]
    pub(crate) fn global_load(&mut self, access: GlobalAccess) -> Words {
        let (site, Some((view, offset))) = self.locate(&access) else { return [0; 2] };
        let storage = &view.allocation.storage;
        if access.operation == Operation::Load {
            self.order(&access, site, (view, offset), Access::Read);
        } else {
            let bit = self.global.readonly_bit(self.launch, site);
            view.marks.readonly(storage.len(), offset, access.bytes, bit);
        }
        if !storage.is_written(offset, access.bytes) {
            self.report_at(FindingKind::Uninitialised, site, &access, None);
        }
        storage.load(offset, access.bytes)
    }

    /// Stores, unless it may not happen.
    pub(crate) fn global_store(&mut self, access: GlobalAccess, value: Words) {
        let (site, Some((view, offset))) = self.locate(&access) else { return };
        self.order(&access, site, (view, offset), Access::Write);
        view.allocation.unsettle();
        view.allocation.storage.store(offset, access.bytes, value);
    }

    /// Exchanges; gives the old value, or the default where it may not happen.
    pub(crate) fn global_atomic<T: AtomicBits>(
        &mut self,
        access: GlobalAccess,
        op: AtomicOp,
        operand: T,
    ) -> T {
        let (site, Some((view, offset))) = self.locate(&access) else { return T::default() };
        let storage = &view.allocation.storage;
        if !storage.is_written(offset, access.bytes) {
            self.report_at(FindingKind::Uninitialised, site, &access, None);
        }
        self.order(&access, site, (view, offset), Access::Atomic);
        view.allocation.unsettle();
        let old = self.hand_over(access.thread, access.address, || {
            storage.update(offset, access.bytes, |old| {
                let [old] = from_words::<T, 1>([old, 0]);
                to_words([T::apply(op, old, operand)])[0]
            })
        });
        let [old] = from_words::<T, 1>([old, 0]);
        old
    }
}
