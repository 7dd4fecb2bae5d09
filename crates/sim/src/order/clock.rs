//! Who has seen what: the order that barriers give to the accesses of a block.
//!
//! Block barriers cut a block's run into epochs. Inside an epoch the lanes of a warp are ordered by `sync_warp`: each lane
//! has a clock that moves at every such barrier, and remembers the clocks of the lanes it met. Warps are ordered by named
//! barriers, to which they come whole: a warp that arrives leaves its clock and all that it knows of other warps, and one
//! that has waited takes over what all have left. The barrier of a cluster does the same among a block's warps; among blocks,
//! warps count how often they have come to it, and how often they have waited.

use crate::order::race::Who;
use crate::report::site::SiteId;

/// Lanes of a warp.
const LANES: usize = lacuna_gpu::WARP as usize;

/// A lane's knowledge of its warp: the last clock of each lane whose accesses come before its own.
pub(crate) type Seen = [u32; LANES];

/// Warps of a block, at most.
const WARPS: usize = 32;

/// A warp's knowledge of its block: of each warp the last clock up to which all its accesses come before. Zero stands for
/// none in this epoch.
pub(crate) type Known = [u32; WARPS];

/// A moment of one thread. The default one lies before all epochs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    pub(crate) epoch: u32,
    pub(crate) warp: u32,
    pub(crate) lane: u32,
    pub(crate) clock: u32,
}

impl Moment {
    /// The thread's index in its block.
    pub(crate) fn thread(&self) -> u32 {
        self.warp * LANES as u32 + self.lane
    }
}

/// A warp's way past the barriers of its cluster, which are numbered from 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    /// The last one that it has come to: what it does now comes before what others do past the next.
    pub(crate) came: u32,
    /// The last one at which it has waited: it comes after what others did before that.
    pub(crate) waited: u32,
}

/// The barriers of a cluster, as one block sees them.
#[derive(Debug, Default)]
struct Cluster {
    /// Of each warp.
    passed: Vec<Passed>,
    /// The last one that all have come to.
    full: u32,
    /// What warps have left at that and at the next, by the number's last bit.
    left: [Known; 2],
}

/// The clocks of a block.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    epoch: u32,
    clocks: Vec<u32>,
    seen: Vec<Seen>,
    latest: Vec<u32>,
    known: Vec<Known>,
    /// Whether a warp has come to a named barrier in this epoch.
    named: bool,
    cluster: Cluster,
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
        self.known.clear();
        self.known.resize(threads.div_ceil(LANES), [0; WARPS]);
        self.named = false;
        self.cluster.passed.clear();
        self.cluster.passed.resize(threads.div_ceil(LANES), Passed::default());
        self.cluster.full = 0;
        self.cluster.left = [[0; WARPS]; 2];
    }

    /// Every thread has passed a block barrier.
    pub(crate) fn block_barrier(&mut self) {
        self.epoch += 1;
        self.cluster.left = [[0; WARPS]; 2];
        if self.named {
            self.known.fill([0; WARPS]);
            self.named = false;
        }
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
        for lane in lanes() {
            self.seen[first + lane] = known;
        }
        self.advance(warp, mask);
    }

    /// What the lanes of `mask` do from now on is told apart from what they have done.
    fn advance(&mut self, warp: usize, mask: u32) {
        self.latest[warp] += 1;
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            self.clocks[warp * LANES + lane] = self.latest[warp];
        }
    }

    /// A warp comes to a named barrier with the lanes of `mask`, all that it has, and leaves there what it knows.
    pub(crate) fn release(&mut self, warp: usize, mask: u32, barrier: &mut Known) {
        self.named = true;
        for (left, known) in barrier.iter_mut().zip(&self.known[warp]) {
            *left = (*left).max(*known);
        }
        barrier[warp] = self.latest[warp];
        self.advance(warp, mask);
    }

    /// A warp that has waited at a named barrier takes over what was left there.
    pub(crate) fn acquire(&mut self, warp: usize, mask: u32, barrier: &Known) {
        for (known, left) in self.known[warp].iter_mut().zip(barrier) {
            *known = (*known).max(*left);
        }
        self.warp_barrier(warp, mask);
    }

    /// How far a warp is with the barriers of its cluster.
    pub(crate) fn passed(&self, warp: usize) -> Passed {
        self.cluster.passed[warp]
    }

    /// A warp comes to the cluster's next barrier with the lanes of `mask`, all that it has.
    pub(crate) fn come_to_cluster(&mut self, warp: usize, mask: u32) {
        self.cluster.passed[warp].came += 1;
        let number = self.cluster.passed[warp].came;
        let mut left = self.cluster.left[number as usize % 2];
        self.release(warp, mask, &mut left);
        self.cluster.left[number as usize % 2] = left;
    }

    /// Whether the barrier to which a warp came last is full.
    pub(crate) fn is_cluster_full(&self, warp: usize) -> bool {
        self.cluster.passed[warp].came <= self.cluster.full
    }

    /// Whether a warp has come to the cluster's next barrier.
    pub(crate) fn has_come_to_cluster(&self, warp: usize) -> bool {
        self.cluster.passed[warp].came > self.cluster.full
    }

    /// All of the cluster have come to its next barrier.
    pub(crate) fn fill_cluster(&mut self) {
        self.cluster.full += 1;
        // All have waited at the one before, or they had not come to this one.
        self.cluster.left[(self.cluster.full + 1) as usize % 2] = [0; WARPS];
    }

    /// A warp has waited at the barrier to which it came last.
    pub(crate) fn pass_cluster(&mut self, warp: usize, mask: u32) {
        let number = self.cluster.passed[warp].came;
        self.cluster.passed[warp].waited = number;
        let left = self.cluster.left[number as usize % 2];
        self.acquire(warp, mask, &left);
    }

    #[inline]
    pub(crate) fn now(&self, thread: u32) -> Moment {
        let (warp, lane) = (thread / LANES as u32, thread % LANES as u32);
        Moment { epoch: self.epoch, warp, lane, clock: self.clocks[thread as usize] }
    }

    /// What the thread knows of other warps; nothing where no warp has come to a named barrier in this epoch.
    #[inline]
    pub(crate) fn known(&self, thread: u32) -> Option<&Known> {
        self.named.then(|| &self.known[thread as usize / LANES])
    }

    #[inline]
    pub(crate) fn seen(&self, thread: u32) -> &Seen {
        &self.seen[thread as usize]
    }

    /// An access at the present moment of a thread.
    #[inline]
    pub(crate) fn who<'a>(&'a self, now: &'a Moment, site: SiteId) -> Who<'a> {
        let thread = now.thread();
        let passed = self.cluster.passed[now.warp as usize];
        Who { now, seen: self.seen(thread), known: self.known(thread), passed, site }
    }
}
