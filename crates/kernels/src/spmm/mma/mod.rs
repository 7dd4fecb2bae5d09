//! SpMM on tensor cores by warps (mma.sync): load A as sparse, multiply it as dense.
//!
//! ```text
//!   K ──►  chunk    chunk          A thread block computes BM×BN elements of C. It goes along K by steps of WK chunks; a
//!        ┌────────┬────────┐  B    chunk is 128 bytes of a row of A. Its warps are producers and consumers:
//!        │ k × BN │        │       - producers fill stages of shared memory. They copy rows of B asynchronously. They
//!        └────────┴────────┘         clear A's rows, and store each value where its column is ([`rows`]). A bitmask
//!  ┌─────────┐ ┌───────────┐         ([`RowMask`](crate::RowMask)) says where a row's values begin, and a byte for each
//!  │ BM × k  │ │     C     │         value gives its column in the step;
//!  │ x..xx.x │ │  BM × BN  │       - consumers multiply a full stage, Cᵀ += Bᵀ·Aᵀ, so that registers come from shared
//!  └─────────┘ └───────────┘         memory in the order that mma wants. At the end they store their accumulators.
//!       A
//! ```
//!
//! Producer warps form groups that take stages in turn, so that each group has time for what it waits for. A pipeline of
//! stages couples producers and consumers, by two named barriers a stage: full and empty ([`pipeline`]). With WK > 1 this is
//! split-K within the block: consumer warps take different chunks of a step, and add up at the end, always in the same order.
//! [`MmaTiles`] is the kernel, and its operand ([`Single`](crate::Single), [`Half`](crate::Half)) the type that it multiplies.
//!
//! Tiles multiply zeros, so that a NaN or an infinity of B would reach rows that have no nonzero there. Such an accumulator is
//! not finite. The block then computes its tile once more by scalar products ([`fallback`]), which IEEE 754 governs.
//!
//! Source of the idea: the SC 2020 paper's outlook (section VIII) asks for dedicated matrix hardware; the compressed pattern is
//! ours.
mod bitmask;
mod fallback;
mod half;
mod kernel;
mod operand;
mod pipeline;
mod reduction;
mod rows;
mod single;
mod source;
mod value;

use lacuna_gpu::GlobalPtr;

pub use bitmask::{BitmaskArgs, Bitmasks};
pub(super) use fallback::fallback;
pub use kernel::MmaTiles;
pub(super) use pipeline::Pipeline;
pub use pipeline::{Stages, StagesOf};
pub use rows::{LoadedRows, Rows, StageFilling};
pub use source::TileSource;
pub(super) use value::TILE_ROW;
pub use value::TileValue;

use super::Output;

/// What the entry points of [`MmaTiles`] and [`WgmmaTiles`](super::WgmmaTiles) take. The grid is tiles of rows, tiles of
/// columns, batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TileArgs<T> {
    /// A's pattern: [`RowMask`](crate::RowMask)s.
    pub masks: GlobalPtr<u32>,
    /// Values of A, row by row; 16-byte aligned, with [`PADDING`](crate::PADDING) more after the last.
    pub values: GlobalPtr<T>,
    /// Column modulo 256 of each value; 8-byte aligned, with as many to spare.
    pub places: GlobalPtr<u8>,
    /// Of a matrix that is packed: the first [`Pack`](super::Pack) of each unit, 64 rows after 64 rows, and one past the last. For
    /// [`PrepackedTiles`](super::PrepackedTiles) alone.
    pub units: GlobalPtr<u32>,
    /// The packs; 16-byte aligned.
    pub packs: GlobalPtr<u32>,
    /// B, K×N; its rows begin at multiples of the tile's [`vector`](super::Tile::vector).
    pub b: GlobalPtr<T>,
    /// Elements from one B of the batch to the next.
    pub b_batch: u64,
    /// C, M×N, and what is done to the accumulators.
    pub output: Output<T>,
    /// Rows of A and C.
    pub rows: u32,
    /// Columns of A, rows of B.
    pub cols: u32,
    /// Columns of B and C that this launch computes; a multiple of that vector.
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
