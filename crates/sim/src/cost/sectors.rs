//! Which sectors of global memory a block touches.
use crate::execution::launch::Launch;
use crate::memory::hash::AddressMap;
use crate::order::marks::{SECTOR, SECTOR_PAGE};
use crate::report::operation::Operation;

#[derive(Debug, Default)]
pub(crate) struct Sectors {
    /// Sectors read and written, as bits of 64, by page of [`SECTOR_PAGE`] bytes.
    pages: AddressMap<[u64; 2]>,
    /// Distinct sectors that each block read, summed.
    pub(crate) read_by_blocks: u64,
}

impl Sectors {
    /// Notes that a request touched a sector (address / 32).
    #[inline]
    pub(crate) fn touch(&mut self, operation: Operation, sector: u64) {
        let bits = self.pages.entry(sector * SECTOR / SECTOR_PAGE).or_default();
        bits[usize::from(operation.writes_global())] |= 1 << (sector % 64);
    }

    /// Ends a block: hands its sectors to the launch.
    pub(crate) fn finish_block(&mut self, launch: &Launch<'_>) {
        for (page, [read, written]) in self.pages.drain() {
            self.read_by_blocks += u64::from(read.count_ones());
            if let Some(view) = launch.view(page * SECTOR_PAGE) {
                let first = view.allocation.base / SECTOR_PAGE;
                view.marks.sectors(view.allocation.len(), page - first, read, written);
            }
        }
    }
}
