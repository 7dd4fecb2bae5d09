//! Serpentine assignment of rows to the warps of persistent blocks.
use lacuna_gpu::{Gpu, WARP};

/// The rank of this warp of a persistent block among those that share a tile of columns.
#[inline(always)]
pub(super) fn warp_rank<G: Gpu>(gpu: G) -> u32 {
    gpu.thread_idx_x() / WARP * gpu.grid_dim_y() + gpu.block_idx_y()
}

/// Serpentine assignment: the unit of the warp of this rank in a round. Each of the `warps` that share a tile of columns takes one
/// unit a round. Every other round goes backwards, so that no warp has the longest of all rounds.
#[inline(always)]
pub(super) fn serpentine_unit(warps: u32, round: u32, rank: u32) -> u32 {
    round * warps + if round.is_multiple_of(2) { rank } else { warps - 1 - rank }
}
