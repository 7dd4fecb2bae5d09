//! D = (A·Bᵀ) ⊙ I\[C\], or scaled by C's values: A dense (M×K), B dense (N×K), both row-major; C and D sparse (CSR, M×N), of
//! one pattern.
//!
//! Sources: Gale, Zaharia, Young, Elsen, *Sparse GPU Kernels for Deep Learning* (SC 2020), section VI; Yu, Dai, Huang, Wang,
//! Yang, *Exploiting Online Locality and Reduction Parallelism for Sampled Dense Matrix Multiplication on GPUs* (ICCD 2021),
//! section III.
mod column_panel;
mod config;
mod list;
mod mma;
mod nonzero_split;
mod operands;
mod row_indices;
mod schedule;
mod tile;
mod transpose;

use lacuna_gpu::{GlobalMut, GlobalPtr};

pub use column_panel::{ColumnPanelArgs, ColumnPanels};
pub use config::{NonzeroSplit, TILE};
pub use mma::{MmaTiles, TileArgs, TileOperand};
pub use row_indices::{RowArgs, RowIndices};
pub use schedule::{ScheduleArgs, TileSchedule};
pub use tile::{Scheme, Tile};
pub use transpose::{DenseArgs, DenseTranspose};

/// What the entry points of [`NonzeroSplit`] take, for values of `T` and column indices of `I`.
///
/// The grid's x is the tiles of nonzeros, its z the batch: products of matrices of one pattern. A batch stride of 0 is one
/// operand for all of them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Args<T, I> {
    /// The row of each nonzero, rising; 16-byte aligned, with [`PADDING`](crate::PADDING) more that repeat the last.
    pub rows: GlobalPtr<u32>,
    /// The column of each nonzero; aligned likewise, with as many to spare, which are columns of C, too.
    pub columns: GlobalPtr<I>,
    /// The tile of [`TILE`] nonzeros that each group of lanes takes; address 0 where they come as they stand.
    pub order: GlobalPtr<u32>,
    /// What scales each result: the values of C; address 0 where nothing does.
    pub scale: GlobalPtr<T>,
    /// A, M×K.
    pub a: GlobalPtr<T>,
    /// B, N×K.
    pub b: GlobalPtr<T>,
    /// The values of D, in the order of the nonzeros, to write.
    pub d: GlobalMut<T>,
    /// Elements from one scale of the batch to the next.
    pub scale_batch: u64,
    /// Elements from one A of the batch to the next.
    pub a_batch: u64,
    /// Elements from one B of the batch to the next.
    pub b_batch: u64,
    /// Elements from one D of the batch to the next.
    pub d_batch: u64,
    /// Nonzeros of C, not 0.
    pub nnz: u32,
    /// Columns of A and B.
    pub k: u32,
    /// Bytes from one row of A to the next.
    pub a_stride_bytes: u32,
    /// Bytes from one row of B to the next.
    pub b_stride_bytes: u32,
}
