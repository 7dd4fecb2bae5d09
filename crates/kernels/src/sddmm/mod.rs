//! D = (A·Bᵀ) ⊙ I\[C\], or scaled by C's values: A dense (M×K), B dense (N×K), both row-major; C and D sparse (CSR, M×N), of
//! one pattern.
//!
//! Sources: Gale, Zaharia, Young, Elsen, *Sparse GPU Kernels for Deep Learning* (SC 2020), section VI; Yu, Dai, Huang, Wang,
//! Yang, *Exploiting Online Locality and Reduction Parallelism for Sampled Dense Matrix Multiplication on GPUs* (ICCD 2021),
//! section III.
mod column_panel;
mod fallback;
mod list;
mod mma;
mod nonzero_split;
mod operands;
mod row_indices;
mod schedule;
mod subtiles;
mod sum_splits;
mod tile;
mod tile_args;
mod transpose;
mod wgmma;

use lacuna_gpu::GlobalPtr;

pub use column_panel::{ColumnPanelArgs, ColumnPanels};
pub use mma::{MmaTiles, TileOperand};
pub use nonzero_split::{NonzeroSplit, TILE};
pub use operands::Operands;
pub use row_indices::{RowArgs, RowIndices};
pub use schedule::{ScheduleArgs, TileSchedule};
pub use subtiles::Subtiles;
pub use sum_splits::{SumSplits, SumSplitsArgs};
pub use tile::{Scheme, Tile};
pub use tile_args::TileArgs;
pub use transpose::{DenseArgs, DenseTranspose};
pub use wgmma::{WgmmaOperand, WgmmaTiles};

/// What the entry points of [`NonzeroSplit`] take, for values of `T` and column indices of `I`.
///
/// The grid's x is the tiles of nonzeros, its z the splits of K ([`Operands::splits`]) and the batch: products of matrices of one
/// pattern.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Args<T, I> {
    /// The row of each nonzero, rising; 16-byte aligned, with [`PADDING`](crate::PADDING) more that repeat the last.
    pub rows: GlobalPtr<u32>,
    /// The column of each nonzero; aligned likewise, with as many to spare, which are columns of C, too.
    pub columns: GlobalPtr<I>,
    /// The tile of [`TILE`] nonzeros that each group of lanes takes; address 0 where they come as they stand.
    pub order: GlobalPtr<u32>,
    /// What is multiplied, and where results go.
    pub operands: Operands<T>,
}
