//! Warp-level memory requests, put together again from what single lanes did.
//!
//! Lanes run one after the other, so the lanes of one instruction arrive apart. They belong together when it is the
//! same source line's k-th execution in each lane. A line keeps the requests that some lanes have yet to join.
use crate::report::operation::Operation;
use crate::report::site::SiteId;

/// How far a lane may run ahead of the others at one line, in executions.
const RING: u32 = 64;

/// One memory instruction of a warp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    execution: u32,
    pub(crate) operation: Operation,
    /// The lanes that took part.
    pub(crate) lanes: u32,
    /// The lanes that were there and accessed nothing.
    passed: u32,
    /// Bytes that each lane moves.
    pub(crate) bytes: u32,
    /// The lanes' addresses.
    pub(crate) addresses: [u64; 32],
}

impl Request {
    /// Of the first lanes of a warp, one for each address.
    pub(crate) fn of_lanes(operation: Operation, bytes: u32, addresses: &[u64]) -> Self {
        let mut request = Self { execution: 0, operation, lanes: 0, passed: 0, bytes, addresses: [0; 32] };
        for (lane, (to, &address)) in request.addresses.iter_mut().zip(addresses).enumerate() {
            request.lanes |= 1 << lane;
            *to = address;
        }
        request
    }

    /// Whether a lane has come.
    fn is_open(&self) -> bool {
        self.lanes | self.passed != 0
    }

    /// Ends the request: it goes to `done`, if it accesses anything.
    #[inline]
    fn close(&mut self, done: impl FnOnce(&Self)) {
        if self.lanes != 0 {
            done(self);
        }
        (self.lanes, self.passed) = (0, 0);
    }

    /// The addresses of the lanes that took part, by lane.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (u32, u64)> + Clone {
        (0..32).filter(|lane| self.lanes >> lane & 1 != 0).map(|lane| (lane, self.addresses[lane as usize]))
    }
}

/// The open requests of one line in one warp.
#[derive(Debug, Default)]
struct Line {
    executions: [u32; 32],
    ring: Vec<Request>,
}

/// The open requests of one warp.
#[derive(Debug, Default)]
pub(crate) struct WarpRequests {
    lines: Vec<Line>,
}

impl WarpRequests {
    /// Adds a lane's access, or without an address, a lane that accesses nothing. `live` are the lanes of the warp that have not exited: when all have joined, the request
    /// goes to `done`. Gives whether the lane has run so far ahead that it should let the others catch up.
    #[inline]
    pub(crate) fn record(
        &mut self,
        (site, operation): (SiteId, Operation),
        (lane, live): (u32, u32),
        (address, bytes): (Option<u64>, u32),
        mut done: impl FnMut(&Request),
    ) -> bool {
        if self.lines.len() <= site as usize {
            self.lines.resize_with(site as usize + 1, Line::default);
        }
        let line = &mut self.lines[site as usize];
        let execution = line.executions[lane as usize];
        line.executions[lane as usize] += 1;
        let index = (execution % RING) as usize;
        if index >= line.ring.len() {
            let unused = Request { execution, operation, lanes: 0, passed: 0, bytes, addresses: [0; 32] };
            line.ring.resize(index + 1, unused);
        }
        let slot = &mut line.ring[index];
        if slot.is_open() && slot.execution != execution {
            slot.close(&mut done);
        }
        slot.execution = execution;
        slot.operation = operation;
        slot.bytes = bytes;
        match address {
            Some(address) => {
                slot.addresses[lane as usize] = address;
                slot.lanes |= 1 << lane;
            }
            None => slot.passed |= 1 << lane,
        }
        if (slot.lanes | slot.passed) & live == live {
            slot.close(&mut done);
        }
        line.ring
            .get(((execution + 1) % RING) as usize)
            .is_some_and(|next| next.is_open() && next.execution < execution)
    }

    /// Ends the warp: its incomplete requests go to `done` with their line.
    pub(crate) fn finish(&mut self, mut done: impl FnMut(SiteId, &Request)) {
        for (site, line) in self.lines.iter_mut().enumerate() {
            if line.executions == [0; 32] {
                continue;
            }
            line.executions = [0; 32];
            line.ring.sort_unstable_by_key(|request| request.execution);
            for request in &mut line.ring {
                request.close(|request| done(site as SiteId, request));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_come_apart_are_put_together() {
        let mut requests = WarpRequests::default();
        let mut seen = Vec::new();
        for lane in 0..32 {
            for execution in 0..3 {
                let address = u64::from(100 * execution + lane);
                requests.record((0, Operation::Load), (lane, u32::MAX), (Some(address), 4), |request| {
                    seen.push((request.lanes, request.addresses[31]));
                });
            }
        }
        assert_eq!(seen, [(u32::MAX, 31), (u32::MAX, 131), (u32::MAX, 231)]);
        requests.finish(|_, _| panic!("nothing is open"));
    }

    #[test]
    fn a_lane_far_ahead_is_told_and_then_goes_on_alone() {
        let mut requests = WarpRequests::default();
        let mut alone = 0;
        let ahead: Vec<bool> = (0..RING + 1)
            .map(|_| requests.record((0, Operation::Load), (0, 0b11), (Some(0), 4), |_| alone += 1))
            .collect();
        assert_eq!(ahead.iter().position(|&ahead| ahead), Some(RING as usize - 1));
        assert_eq!(alone, 1);
        let mut open = 0;
        requests.finish(|_, request| open += request.lanes.count_ones());
        assert_eq!(open, RING);
    }
}
