//! Records what the blocks of a worker cost.
use lacuna_gpu::WARP;

use crate::cost::counters::{Counters, Counts};
use crate::cost::request::{Request, WarpRequests};
use crate::cost::sectors::Sectors;
use crate::execution::launch::Launch;
use crate::report::operation::Operation;
use crate::report::site::SiteId;

#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) counters: Counters,
    pub(crate) sectors: Sectors,
    /// The open requests of each warp.
    requests: Vec<WarpRequests>,
}

impl Recorder {
    pub(crate) fn new(threads: u32) -> Self {
        let mut requests = Vec::new();
        requests.resize_with(threads.div_ceil(32) as usize, WarpRequests::default);
        Self { counters: Counters::default(), sectors: Sectors::default(), requests }
    }

    /// The counts of a line.
    #[inline]
    pub(crate) fn of(&mut self, site: SiteId) -> &mut Counts {
        self.counters.of(site)
    }

    /// Counts the access of one lane as part of its warp's request. `live` are the lanes of its warp that have not exited.
    /// Gives whether the lane has run so far ahead that it should let the others catch up.
    #[inline]
    pub(crate) fn request(
        &mut self,
        (site, operation): (SiteId, Operation),
        (thread, live): (u32, u32),
        (address, bytes): (Option<u64>, u32),
    ) -> bool {
        let (warp, lane) = ((thread / 32) as usize, thread % 32);
        self.counters.of(site).bytes += if address.is_some() { u64::from(bytes) } else { 0 };
        let Self { requests, counters, sectors } = self;
        requests[warp].record((site, operation), (lane, live), (address, bytes), |request| {
            counters.request(site, request, |sector| sectors.touch(operation, sector));
        })
    }

    /// Counts what a bulk copy accesses: requests of warps, of which each lane has so many bytes.
    pub(crate) fn bulk(&mut self, (site, operation): (SiteId, Operation), bytes: u32, addresses: &[u64]) {
        let Self { counters, sectors, .. } = self;
        let counts = counters.of(site);
        counts.executions += 1;
        counts.bytes += u64::from(bytes) * addresses.len() as u64;
        for addresses in addresses.chunks(WARP as usize) {
            let request = Request::of_lanes(operation, bytes, addresses);
            counters.request(site, &request, |sector| sectors.touch(operation, sector));
        }
    }

    /// Ends a block: closes the requests that lanes have yet to join, and hands its sectors to the launch.
    pub(crate) fn finish_block(&mut self, launch: &Launch<'_>) {
        let Self { requests, counters, sectors } = self;
        for warp in requests {
            warp.finish(|site, request| {
                counters.request(site, request, |sector| sectors.touch(request.operation, sector));
            });
        }
        sectors.finish_block(launch);
    }
}
