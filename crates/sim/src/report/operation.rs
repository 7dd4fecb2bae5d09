//! The operations that the simulator tells apart.
use serde::Serialize;

use crate::tensor::arithmetic::Factors;

/// What a source line asks of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// `load`
    Load,
    /// `load_readonly`
    ReadonlyLoad,
    /// `load_streaming`
    StreamingLoad,
    /// `store`
    Store,
    /// `store_streaming`
    StreamingStore,
    /// Atomics on global memory.
    Atomic,
    /// The global side of `copy_async` and `copy_async_or_zero`.
    CopyAsync,
    /// The shared side of `copy_async` and `copy_async_or_zero`.
    CopyAsyncWrite,
    /// The global side of `bulk_copy`.
    BulkCopy,
    /// The shared side of `bulk_copy`.
    BulkCopyWrite,
    /// `bulk_barrier_init`, `bulk_expect` and `bulk_wait`.
    BulkControl,
    /// `shared_load`
    SharedLoad,
    /// `shared_store`
    SharedStore,
    /// `shared_load_matrices`
    SharedLoadMatrices,
    /// Atomics on shared memory.
    SharedAtomic,
    /// `copy_async_commit` and `copy_async_wait`.
    CopyControl,
    /// Warp shuffles.
    Shuffle,
    /// Warp votes.
    Vote,
    /// `sync_warp`
    WarpBarrier,
    /// `sync_threads` and its reductions.
    BlockBarrier,
    /// `barrier_sync` and `barrier_arrive`
    NamedBarrier,
    /// `cluster_arrive` and `cluster_wait`
    ClusterBarrier,
    /// `cluster_store`
    ClusterStore,
    /// `thread_fence`
    Fence,
    /// `fma`
    Fma,
    /// `exp2_approx`, `log2_approx` and `rcp_approx`.
    Special,
    /// Conversions between `f32` and halves, and to bfloat16.
    Convert,
    /// `mma_f16` and `mma_bf16`.
    Mma,
    /// `mma_tf32`
    MmaTf32,
    /// `warpgroup_mma_f16` and `warpgroup_mma_bf16`.
    WarpgroupMma,
    /// `warpgroup_mma_tf32_registers`.
    WarpgroupMmaTf32,
    /// `warpgroup_arrive`, `warpgroup_commit` and `warpgroup_wait`.
    WarpgroupControl,
    /// `fence_async_proxy`
    ProxyFence,
}

impl Operation {
    /// Whether it goes to global memory.
    pub const fn is_global(self) -> bool {
        self.reads_global() || self.writes_global()
    }

    /// Whether it reads global memory through the caches.
    pub const fn reads_global(self) -> bool {
        matches!(
            self,
            Self::Load | Self::ReadonlyLoad | Self::StreamingLoad | Self::CopyAsync | Self::BulkCopy
        )
    }

    /// Whether it changes global memory.
    pub const fn writes_global(self) -> bool {
        matches!(self, Self::Store | Self::StreamingStore | Self::Atomic)
    }

    /// Whether it goes to shared memory.
    pub const fn is_shared(self) -> bool {
        matches!(
            self,
            Self::SharedLoad
                | Self::SharedLoadMatrices
                | Self::SharedStore
                | Self::SharedAtomic
                | Self::CopyAsyncWrite
                | Self::BulkCopyWrite
                | Self::ClusterStore
                | Self::WarpgroupMma
                | Self::WarpgroupMmaTf32
        )
    }

    /// Fused multiply-adds of one execution by a warp, on tensor cores; each 8 columns of a warpgroup's product are one.
    pub const fn tensor_fmas(self) -> u64 {
        match self {
            Self::Mma | Self::WarpgroupMma => 16 * 8 * 16,
            Self::MmaTf32 | Self::WarpgroupMmaTf32 => 16 * 8 * 8,
            _ => 0,
        }
    }

    pub(crate) const fn of_product(factors: Factors) -> Self {
        match factors {
            Factors::Tf32 => Self::MmaTf32,
            Factors::F16 | Factors::Bf16 => Self::Mma,
        }
    }

    pub(crate) const fn of_warpgroup(factors: Factors) -> Self {
        match factors {
            Factors::Tf32 => Self::WarpgroupMmaTf32,
            Factors::F16 | Factors::Bf16 => Self::WarpgroupMma,
        }
    }
}
