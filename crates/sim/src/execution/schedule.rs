//! Which threads of a block can run, and what the others wait for.
use crate::report::site::SiteId;
use crate::synchronisation::cluster::ClusterCall;
use crate::synchronisation::named::NamedCall;
use crate::tensor::arithmetic::Factors;
use crate::tensor::warpgroup::WarpgroupCall;

/// What the lanes of a warp do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarpOperation {
    Sync,
    ShuffleIdx,
    ShuffleDown,
    ShuffleUp,
    ShuffleXor,
    All,
    Any,
    Ballot,
    Multiply(Factors),
    LoadMatrices { transposed: bool },
    Barrier(NamedCall),
    Cluster(ClusterCall),
    Warpgroup(WarpgroupCall),
}

impl WarpOperation {
    pub(crate) const fn is_shuffle(self) -> bool {
        matches!(self, Self::ShuffleIdx | Self::ShuffleDown | Self::ShuffleUp | Self::ShuffleXor)
    }

    /// Whether the whole warp must be there, at one instruction.
    pub(crate) const fn is_aligned(self) -> bool {
        !matches!(self, Self::Sync | Self::All | Self::Any | Self::Ballot) && !self.is_shuffle()
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync_warp",
            Self::ShuffleIdx => "warp_shuffle_idx",
            Self::ShuffleDown => "warp_shuffle_down",
            Self::ShuffleUp => "warp_shuffle_up",
            Self::ShuffleXor => "warp_shuffle_xor",
            Self::All => "warp_all",
            Self::Any => "warp_any",
            Self::Ballot => "warp_ballot",
            Self::Multiply(Factors::Tf32) => "mma_tf32",
            Self::Multiply(Factors::F16) => "mma_f16",
            Self::Multiply(Factors::Bf16) => "mma_bf16",
            Self::LoadMatrices { .. } => "shared_load_matrices",
            Self::Barrier(call) => call.name(),
            Self::Cluster(call) => call.name(),
            Self::Warpgroup(call) => call.name(),
        }
    }
}

/// A lane's part in a warp operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarpCall {
    pub(crate) operation: WarpOperation,
    pub(crate) site: SiteId,
    pub(crate) mask: u32,
    /// The value to shuffle, or a predicate as 0 or 1.
    pub(crate) value: u32,
    /// Lane, distance or lane bits of a shuffle.
    pub(crate) lane: u32,
    /// Segment of a shuffle, in lanes.
    pub(crate) width: u32,
}

impl WarpCall {
    /// Whether lanes with these calls are at one operation.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let aligned = self.operation.is_aligned();
        self.operation == other.operation && self.mask == other.mask && (!aligned || self.site == other.site)
    }
}

/// What a block barrier gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierKind {
    Plain,
    Or,
    Count,
}

impl BarrierKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "sync_threads",
            Self::Or => "sync_threads_or",
            Self::Count => "sync_threads_count",
        }
    }
}

/// A thread's part in a block barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarrierCall {
    pub(crate) kind: BarrierKind,
    pub(crate) site: SiteId,
    pub(crate) predicate: bool,
}

/// What a thread is at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    Ready,
    Warp(WarpCall),
    Barrier(BarrierCall),
    /// Its warp has come to a named barrier, and others have not.
    Named(NamedCall, SiteId),
    /// Its warp waits at the cluster's barrier.
    Cluster(SiteId),
    Exited,
}

/// The states of a block's threads.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    states: Vec<State>,
    results: Vec<u32>,
    live: Vec<u32>,
    ready: Vec<u32>,
}

impl Schedule {
    pub(crate) fn start(&mut self, threads: usize) {
        self.states.clear();
        self.states.resize(threads, State::Ready);
        self.results.clear();
        self.results.resize(threads, 0);
        self.live.clear();
        self.live.extend((0..threads.div_ceil(32)).map(|warp| match threads - warp * 32 {
            lanes @ 0..32 => (1 << lanes) - 1,
            _ => u32::MAX,
        }));
        self.ready.clone_from(&self.live);
    }

    pub(crate) fn warps(&self) -> usize {
        self.live.len()
    }

    /// Lanes of a warp that have not exited.
    #[inline]
    pub(crate) fn live(&self, warp: usize) -> u32 {
        self.live[warp]
    }

    /// Lanes of a warp that can run.
    pub(crate) fn ready(&self, warp: usize) -> u32 {
        self.ready[warp]
    }

    /// Whether any thread can run.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.iter().any(|&ready| ready != 0)
    }

    /// Whether any thread waits for other blocks of its cluster.
    pub(crate) fn waits_for_cluster(&self) -> bool {
        self.states.iter().any(|state| matches!(state, State::Cluster(_)))
    }

    pub(crate) fn states(&self) -> &[State] {
        &self.states
    }

    /// What a thread's last operation gave.
    pub(crate) fn result(&self, thread: u32) -> u32 {
        self.results[thread as usize]
    }

    /// A thread starts to wait.
    pub(crate) fn wait(&mut self, thread: u32, state: State) {
        self.states[thread as usize] = state;
        self.ready[thread as usize / 32] &= !(1 << (thread % 32));
    }

    /// A thread's wait is over.
    pub(crate) fn wake(&mut self, thread: usize, result: u32) {
        self.states[thread] = State::Ready;
        self.results[thread] = result;
        self.ready[thread / 32] |= 1 << (thread % 32);
    }

    pub(crate) fn exit(&mut self, thread: u32) {
        self.wait(thread, State::Exited);
        self.live[thread as usize / 32] &= !(1 << (thread % 32));
    }
}

/// The lanes of a mask, lowest first.
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = u32> + Clone {
    (0..32).filter(move |lane| mask >> lane & 1 != 0)
}
