//! C = clamp(alpha·A·B + beta·C + bias) with A sparse (CSR, M×K), B dense (K×N, row-major), C dense (M×N, row-major).
//!
//! Source: Gale, Zaharia, Young, Elsen, *Sparse GPU Kernels for Deep Learning* (SC 2020), section V.
mod epilogue;
mod extremum;
mod form;
mod gradient;
mod list;
mod mma;
mod pieces;
mod prefetch;
mod products;
mod row_split;
mod serpentine;
mod stage;
mod tile;
mod traverse;
mod wgmma;

use lacuna_gpu::GlobalPtr;

pub use epilogue::Output;
pub use extremum::{Extremum, ExtremumArgs, NO_WINNER};
pub use form::{Form, Hybrid, Idea, NoResidue, Persistent, Plain, PreScaled, Wide};
pub use gradient::{BGradient, BGradientArgs, ValuesGradient, ValuesGradientArgs, Winning};
pub use mma::{
    BitmaskArgs, Bitmasks, LoadedRows, MmaTiles, Rows, StageFilling, Stages, StagesOf, TileArgs, TileSource,
    TileValue,
};
pub use pieces::{JoinPieces, JoinPiecesArgs, PIECE, Partial};
pub use row_split::RowSplit;
pub use tile::{Scheme, Tile};
pub use traverse::QUAD;
pub use wgmma::{
    BoxArgs, LoadedPacks, Pack, PackShape, Prepacked, PrepackedTiles, PrepackedTilesByThreads,
    PrepackedTilesOfFours, Scattering, SinglePrepackedTiles, WarpgroupOperand, WgmmaKernel, WgmmaTiles,
    WgmmaTilesOfFours, WidePack,
};

/// What the entry points of [`RowSplit`] take, for values of `T` and column indices of `I`.
///
/// Long rows may be cut into pieces, with a record each in the row table: see [`PIECE`].
///
/// A grid is tiles of rows by tiles of columns; in persistent kernels ([`Persistent`]), tiles of columns by blocks that share one.
/// The grid's z is the batch: products of matrices of one pattern. A batch stride of 0 is one operand for all of them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Args<T, I> {
    /// `rows` records of [`RowRecord`](crate::RowRecord) words, in the order in which the rows are to be worked on.
    pub row_table: GlobalPtr<u32>,
    /// Values of A, row by row; 16-byte aligned, with [`PADDING`](crate::PADDING) more after the last.
    pub values: GlobalPtr<T>,
    /// Column of each value; aligned likewise, with as many to spare.
    pub columns: GlobalPtr<I>,
    /// B, K×N.
    pub b: GlobalPtr<T>,
    /// Elements from one B of the batch to the next.
    pub b_batch: u64,
    /// C, M×N, and the epilogue of the accumulators.
    pub output: Output<T>,
    /// Where pieces of rows go, in kernels that take them.
    pub partial: Partial,
    /// Records in the table: rows, and pieces of rows.
    pub rows: u32,
    /// For [`Hybrid`] alone: rows at the head of the table that subwarps split. Each of the others is one subwarp's.
    pub long_rows: u32,
    /// In persistent kernels: rows at the head of B that a block brings into L1 before it begins; 0 or more, at most all.
    pub ahead_rows: u32,
    /// Columns of B and C that this launch computes.
    pub n: u32,
    /// Bytes from one row of B to the next.
    pub b_stride_bytes: u32,
    /// Elements from the values of one A of the batch to the next; a multiple of [`ALIGNED`](crate::ALIGNED). Times the
    /// batch, it has 32 bits.
    pub values_batch: u32,
}
