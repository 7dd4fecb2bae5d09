//! One launch of a kernel: what its blocks share.
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::execution::simulator::Limits;
use crate::memory::allocation::{Allocation, Freed, Memory, SLOT_SHIFT};
use crate::memory::hash::AddressMap;
use crate::memory::view::View;
use crate::order::handover::Announcements;
use crate::order::marks::{Marks, READONLY_BITS, Verdict};
use crate::report::finding::{Finding, FindingKind, Findings, Place};
use crate::report::site::{SiteId, Sites};

/// Threads, blocks and shared memory of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub(crate) grid: [u32; 3],
    pub(crate) threads: u32,
    pub(crate) shared_bytes: u32,
    /// Blocks of a cluster, neighbours along x.
    pub(crate) cluster: u32,
}

impl Geometry {
    /// Indices of the block with this linear index.
    pub(crate) fn block(&self, linear: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [linear % x, linear / x % y, linear / x / y].map(|index| index as u32)
    }

    /// Blocks of the grid; none where their number has no 64 bits.
    pub(crate) fn blocks(&self) -> Option<u64> {
        let [x, y, z] = self.grid.map(u64::from);
        (x * y).checked_mul(z)
    }
}

/// What all blocks of a launch share.
pub(crate) struct Launch<'l> {
    pub(crate) geometry: Geometry,
    /// Whether its threads wait for the launch before by themselves.
    pub(crate) looks_ahead: bool,
    pub(crate) limits: Limits,
    pub(crate) sites: Sites,
    /// A thread has passed the step limit: blocks that have not started are skipped, so that the launch ends soon.
    pub(crate) stopped: AtomicBool,
    pub(crate) announcements: Announcements,
    memory: &'l Mutex<Memory>,
    views: Vec<View>,
    /// The view whose slot of addresses this is.
    slots: AddressMap<usize>,
    /// Lines of read-only loads, in the order of their bits.
    readonly: Mutex<Vec<SiteId>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<'l> Launch<'l> {
    pub(crate) fn new(
        geometry: Geometry,
        looks_ahead: bool,
        limits: Limits,
        memory: &'l Mutex<Memory>,
    ) -> Self {
        let views: Vec<View> = lock(memory)
            .snapshot()
            .into_iter()
            .map(|allocation| View { allocation, marks: Marks::default() })
            .collect();
        let mut slots = AddressMap::default();
        for (index, view) in views.iter().enumerate() {
            let Allocation { base, .. } = *view.allocation;
            for slot in base >> SLOT_SHIFT..=(base + view.allocation.len()) >> SLOT_SHIFT {
                slots.insert(slot, index);
            }
        }
        Self {
            geometry,
            looks_ahead,
            limits,
            sites: Sites::default(),
            stopped: AtomicBool::new(false),
            announcements: Announcements::default(),
            memory,
            views,
            slots,
            readonly: Mutex::default(),
        }
    }

    /// Whether the host had no memory for what must be remembered of the blocks.
    pub(crate) fn is_starved(&self) -> bool {
        self.views.iter().any(|view| view.marks.is_starved())
    }

    /// The buffer that owns the slot of an address.
    pub(crate) fn view(&self, address: u64) -> Option<&View> {
        self.slots.get(&(address >> SLOT_SHIFT)).map(|&index| &self.views[index])
    }

    /// The freed buffer that an address was part of.
    pub(crate) fn freed_at(&self, address: u64) -> Option<Freed> {
        lock(self.memory).freed_at(address)
    }

    /// Describes an access of `bytes` bytes of elements of `element` bytes by its nearest buffer.
    pub(crate) fn place(&self, address: u64, bytes: u32, element: u32) -> Place {
        let (buffer, base, buffer_bytes) = match (self.freed_at(address), self.nearest(address)) {
            (Some(freed), _) => (freed.name, freed.base, freed.len),
            (None, Some(view)) => (view.allocation.name.clone(), view.allocation.base, view.allocation.len()),
            (None, None) => (Arc::from("no buffer"), 0, 0),
        };
        let offset = address.wrapping_sub(base).cast_signed();
        let element = offset.div_euclid(i64::from(element));
        Place { buffer: buffer.to_string(), offset, element, bytes, buffer_bytes }
    }

    fn nearest(&self, address: u64) -> Option<&View> {
        self.views.iter().min_by_key(|view| {
            let Allocation { base, .. } = *view.allocation;
            base.saturating_sub(address).max(address.saturating_sub(base + view.allocation.len()))
        })
    }

    /// The bit of a read-only line in the marks.
    pub(crate) fn readonly_bit(&self, site: SiteId) -> u32 {
        let mut sites = lock(&self.readonly);
        let index = sites.iter().position(|&known| known == site).unwrap_or_else(|| {
            sites.push(site);
            sites.len() - 1
        });
        1 << (index as u32).min(READONLY_BITS - 1)
    }

    /// The lines behind the bits of a mark.
    fn readonly_sites(&self, bits: u32) -> Vec<SiteId> {
        let sites = lock(&self.readonly);
        let is_set = |index: usize| bits >> (index as u32).min(READONLY_BITS - 1) & 1 != 0;
        (0..sites.len()).filter(|&index| is_set(index)).map(|index| sites[index]).collect()
    }

    /// Distinct sectors of global memory read and written.
    pub(crate) fn distinct_sectors(&self) -> (u64, u64) {
        let pairs = self.views.iter().map(|view| view.marks.distinct_sectors());
        pairs.fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1))
    }

    /// Finds what only the whole launch shows: blocks at odds with each other.
    pub(crate) fn judge(&self, findings: &mut Findings) {
        for view in &self.views {
            let base = view.allocation.base;
            view.marks.judge(view.allocation.len(), |offset, bytes, verdict| {
                let place = || self.place(base + offset, bytes, bytes);
                match verdict {
                    Verdict::Race(first, second) => {
                        let block = u64::from(second.block);
                        let rival = self.geometry.block(u64::from(first.block));
                        let kind = FindingKind::RaceBetweenBlocks;
                        let detail = format!("with block {rival:?}");
                        findings.add(
                            block,
                            self.between(kind, second.block, second.site, first.site, place(), detail),
                        );
                    }
                    Verdict::ReadonlyWritten(writer, bits) => {
                        for site in self.readonly_sites(bits) {
                            let kind = FindingKind::ReadonlyWritten;
                            let detail = "written by this block".to_owned();
                            let case = self.between(kind, writer.block, site, writer.site, place(), detail);
                            findings.add(u64::from(writer.block), case);
                        }
                    }
                }
            });
        }
    }

    fn between(
        &self,
        kind: FindingKind,
        block: u32,
        site: SiteId,
        other: SiteId,
        place: Place,
        detail: String,
    ) -> Finding {
        Finding {
            kind,
            source: Some(self.sites.get(site).0),
            other: Some(self.sites.get(other).0),
            block: self.geometry.block(u64::from(block)),
            thread: None,
            place: Some(place),
            detail,
            count: 1,
        }
    }
}
