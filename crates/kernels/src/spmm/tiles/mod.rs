//! SpMM on tensor cores: load as sparse, compute as dense.
//!
//! ```text
//!   K ──►  chunk    chunk                     A block owns BM×BN elements of C and walks along K, a step of WK
//!        ┌────────┬────────┐  B                chunks at a time; a chunk is 128 bytes of a row of A. Its warps have
//!        │ k × BN │        │                   two trades:
//!        └────────┴────────┘                   - producers fill stages of shared memory: rows of B by asynchronous
//!  ┌─────────┐ ┌───────────┐                     copies, and A's rows by clearing them and putting each value where
//!  │ BM × k  │ │     C     │                     its column is ([`rows`]). They read where a row's values begin
//!  │ x..xx.x │ │  BM × BN  │                     ([`RowMask`](crate::RowMask)), and a byte for each value, its place;
//!  └─────────┘ └───────────┘                   - consumers multiply a stage on tensor cores, Cᵀ += Bᵀ·Aᵀ, so that
//!       A                                        registers come from shared memory in the order mma wants them.
//! ```
//!
//! Producers work in teams that take stages in turn, so that each has time for what it waits for. A ring of stages with
//! two named barriers each, full and empty, couples them with the consumers ([`ring`]). With WK > 1, consumer warps take
//! different chunks of a step and add up at the end, always in the same order.
//!
//! Zeros are multiplied, so a NaN or an infinity of B would reach rows that have no nonzero there. Such a sum is not
//! finite: the block then computes its tile again by plain products ([`again`]), which IEEE 754 governs.
//!
//! Source of the idea: the SC 2020 paper's outlook (section VIII) asks for dedicated matrix hardware; masks and places are ours.
mod again;
mod finish;
mod half;
mod kernel;
mod masks;
mod operand;
mod ring;
mod rows;
mod shape;
mod single;

use lacuna_gpu::GlobalPtr;

pub(super) use again::again;
pub use kernel::MmaTiles;
pub use masks::{MaskArgs, Masks};
pub(super) use ring::Ring;
pub(super) use rows::TILE_ROW;
pub use rows::{Filling, LoadedRows, Rows, TileValue};

use super::Output;

/// What the entry points of [`MmaTiles`] and [`GroupTiles`](super::GroupTiles) take. The grid is tiles of rows, tiles of columns, batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TileArgs<T> {
    /// A's pattern: [`RowMask`](crate::RowMask)s.
    pub masks: GlobalPtr<u32>,
    /// Values of A, row by row; 16-byte aligned, with [`SPARE`](crate::SPARE) more after the last.
    pub values: GlobalPtr<T>,
    /// Column modulo 256 of each value; 8-byte aligned, with as many to spare.
    pub places: GlobalPtr<u8>,
    /// Of a matrix that is packed: the first [`Pack`](super::Pack) of each unit, 64 rows after 64 rows, and one past the last. For
    /// [`PackedTiles`](super::PackedTiles) alone.
    pub units: GlobalPtr<u32>,
    /// The packs; 16-byte aligned.
    pub packs: GlobalPtr<u32>,
    /// B, K×N; its rows are 16-byte aligned.
    pub b: GlobalPtr<T>,
    /// Elements from one B of the batch to the next.
    pub b_batch: u64,
    /// C, M×N, and what is done to the sums.
    pub output: Output<T>,
    /// Rows of A and C.
    pub rows: u32,
    /// Columns of A, rows of B.
    pub cols: u32,
    /// Columns of B and C that this launch computes; a multiple of 16 bytes of them.
    pub n: u32,
    /// Bytes from one row of B to the next.
    pub b_stride_bytes: u32,
    /// Elements from the values of one A of the batch to the next; a multiple of [`ALIGNED`](crate::ALIGNED). Times the
    /// batch, it has 32 bits.
    pub values_batch: u32,
}

impl<T> TileArgs<T> {
    /// The arguments of one product of the batch.
    #[inline(always)]
    pub(super) fn of_product(mut self, batch: u32) -> Self {
        self.values = self.values.add((batch * self.values_batch) as usize);
        self.b = self.b.add((u64::from(batch) * self.b_batch) as usize);
        self
    }
}
