//! What threads ask of each other: operations of a warp, and barriers of a block.
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
    #[inline]
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.mask == other.mask
            && self.operation == other.operation
            && (self.site == other.site || !self.operation.is_aligned())
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
