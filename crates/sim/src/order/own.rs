//! A block's own accesses to global memory that the launch may write.
use crate::memory::hash::AddressMap;
use crate::order::race::{Access, Granule, Races, Who, granules};
use crate::report::site::SiteId;

/// Granules of a page, as a power of two.
const PAGE_SHIFT: u32 = 6;
type Page = [Granule; 1 << PAGE_SHIFT];

#[derive(Default)]
pub(crate) struct OwnAccesses {
    /// Granules that the block may write, by page.
    pages: AddressMap<Box<Page>>,
    races: Races,
}

impl OwnAccesses {
    pub(crate) fn start_block(&mut self) {
        self.pages.clear();
        self.races.clear();
    }

    /// Records an access; gives the line that it races with.
    pub(crate) fn visit(
        &mut self,
        address: u64,
        bytes: u32,
        access: Access,
        who: &Who<'_>,
    ) -> Option<SiteId> {
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
