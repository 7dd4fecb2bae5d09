//! Counters of one worker, by source line; sums, so that the order of blocks does not matter.
use serde::Serialize;

use crate::cost::request::Request;
use crate::cost::transactions::{sectors, wavefronts};
use crate::report::finding::Source;
use crate::report::operation::Operation;
use crate::report::site::SiteId;

/// What one source line did in a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineCounters {
    /// The line.
    pub source: Source,
    /// What it asks of the device.
    pub operation: Operation,
    /// The sums over the launch.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Sums over a launch, of one source line or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Executions by single threads; of products on tensor cores, by warps, and of a warpgroup's, for each 8 columns. For
    /// `fma`, the number of fused multiply-adds.
    pub executions: u64,
    /// Memory instructions of warps. Zero for what is no memory access.
    pub requests: u64,
    /// Bytes that threads asked for or wrote.
    pub bytes: u64,
    /// Distinct 32-byte sectors of global memory, summed over requests.
    pub sectors: u64,
    /// Passes through the banks of shared memory: more than the ideal means bank conflicts.
    pub wavefronts: u64,
}

impl Counts {
    /// Sectors of an average global request: 4 for a coalesced `f32` load of a warp, 32 for a scattered one.
    pub fn sectors_per_request(&self) -> f64 {
        self.sectors as f64 / self.requests.max(1) as f64
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.executions += other.executions;
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.sectors += other.sectors;
        self.wavefronts += other.wavefronts;
    }
}

/// Counts by the number of the line.
#[derive(Debug, Default)]
pub(crate) struct Counters(Vec<Counts>);

impl Counters {
    #[inline]
    pub(crate) fn of(&mut self, site: SiteId) -> &mut Counts {
        if self.0.len() <= site as usize {
            self.0.resize(site as usize + 1, Counts::default());
        }
        &mut self.0[site as usize]
    }

    /// Counts a request, and calls `touch` with each sector (address / 32) of a global one.
    pub(crate) fn request(&mut self, site: SiteId, request: &Request, touch: impl FnMut(u64)) {
        let counts = self.of(site);
        counts.requests += 1;
        if request.operation.is_global() {
            counts.sectors += sectors(request, touch);
        } else {
            counts.wavefronts += wavefronts(request);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (site, &counts) in other.0.iter().enumerate() {
            *self.of(site as SiteId) += counts;
        }
    }

    /// Lines that did something.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SiteId, Counts)> {
        let used = |counts: &Counts| counts.executions > 0;
        (0..).zip(self.0.iter().copied()).filter(move |(_, counts)| used(counts))
    }
}
