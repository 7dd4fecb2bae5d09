//! Who has seen what: the order that barriers give to the accesses of a block.
//!
//! Block barriers cut a block's run into epochs. Inside an epoch only the lanes of a warp can be ordered, by
//! `sync_warp`: each lane has a clock that moves at every such barrier, and remembers the clocks of the lanes it met.

/// Lanes of a warp.
const LANES: usize = lacuna_gpu::WARP as usize;

/// A lane's knowledge of its warp: the last clock of each lane whose accesses come before its own.
pub(crate) type Seen = [u32; LANES];

/// A moment of one thread. The default one lies before all epochs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    pub(crate) epoch: u32,
    pub(crate) warp: u32,
    pub(crate) lane: u32,
    pub(crate) clock: u32,
}

/// The clocks of a block.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    epoch: u32,
    clocks: Vec<u32>,
    seen: Vec<Seen>,
    latest: Vec<u32>,
}

impl Clocks {
    /// Starts a block: an epoch that no earlier access shares.
    pub(crate) fn start(&mut self, threads: usize) {
        self.epoch += 1;
        self.clocks.clear();
        self.clocks.resize(threads, 1);
        self.seen.clear();
        self.seen.resize(threads, [0; LANES]);
        self.latest.clear();
        self.latest.resize(threads.div_ceil(LANES), 1);
    }

    /// Every thread has passed a block barrier.
    pub(crate) fn block_barrier(&mut self) {
        self.epoch += 1;
    }

    /// The lanes of `mask` have passed a barrier of their warp.
    pub(crate) fn warp_barrier(&mut self, warp: usize, mask: u32) {
        let first = warp * LANES;
        let lanes = || (0..LANES).filter(move |lane| mask >> lane & 1 != 0);
        let mut known: Seen = [0; LANES];
        for lane in lanes() {
            for (known, seen) in known.iter_mut().zip(&self.seen[first + lane]) {
                *known = (*known).max(*seen);
            }
        }
        for lane in lanes() {
            known[lane] = self.clocks[first + lane];
        }
        self.latest[warp] += 1;
        for lane in lanes() {
            self.seen[first + lane] = known;
            self.clocks[first + lane] = self.latest[warp];
        }
    }

    #[inline]
    pub(crate) fn now(&self, thread: u32) -> Moment {
        let (warp, lane) = (thread / LANES as u32, thread % LANES as u32);
        Moment { epoch: self.epoch, warp, lane, clock: self.clocks[thread as usize] }
    }

    #[inline]
    pub(crate) fn seen(&self, thread: u32) -> &Seen {
        &self.seen[thread as usize]
    }
}
