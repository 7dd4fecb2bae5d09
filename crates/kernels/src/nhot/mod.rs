//! Embedding-bag lookup: Y = X·W, with X rows of few nonzeros (bags) and W a dense table. Each row of Y is a sum, or a mean, of the
//! table's rows that a bag names.
//!
//! ```text
//!   bag: indices 7 2 9 4 | 1 3 8 6        W (table)                     A subwarp of LANES lanes covers a part of a row's
//!        subwarp 0   subwarp 1      ┌────────────┬─────────┐             columns, V a lane, CHUNKS times; parts are blocks of
//!                                  │            │         │             their own. SPLIT subwarps share a bag: each takes
//!   a lane loads an index,     2 ──┤▓▓▓▓▓▓▓▓▓▓▓▓│         │             neighbouring nonzeros. It loads an index a lane, hands
//!   and hands it to the others 7 ──┤▓▓▓▓▓▓▓▓▓▓▓▓│         │             them round by shuffles, and has ROWS rows of the table
//!   by shuffles                    └────────────┴─────────┘             under way together; the next indices come meanwhile.
//!                                    part 0       part 1                Subwarps add up by shuffles, then in shared memory.
//! ```
//! The order of a sum is fixed by the bag's length and the constants. A nonzero of the padding index is left out: its row is
//! not loaded. The gradient of the table is the same kernel on the transposed bags, and that of the weights a dot product a
//! nonzero.
//!
//! Source: Argueta and Chiang, *Accelerating Sparse Matrix Operations in Neural Networks on Graphics Processing Units* (ACL
//! 2019), section 4.1 and algorithm 2. There a thread has an element of Y, and goes through a bag alone.
mod epilogue;
mod index;
mod list;
mod lookup;
mod nonzeros;
mod weights;

pub use index::TableIndex;
pub use lookup::{Lookup, LookupArgs};
pub use nonzeros::Nonzeros;
pub use weights::{WeightArgs, WeightGradient};

use crate::ValueType;

/// What the host must know of a kernel's shape. A grid is one dimension of blocks: of bags, and of parts of the columns, the
/// parts of a block of bags side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// What is computed.
    pub pass: Pass,
    /// Type of the table and the result.
    pub value: ValueType,
    /// Bits of an index.
    pub index_bits: u32,
    /// Elements that a lane loads at once.
    pub vector: u32,
    /// Lanes of a subwarp.
    pub lanes: u32,
    /// Vectors of a lane.
    pub chunks: u32,
    /// Subwarps that share a bag.
    pub split: u32,
    /// Rows of the table that a subwarp has under way together.
    pub rows: u32,
    /// Bags of a block.
    pub block_bags: u32,
    /// Columns of a block; of [`Pass::Weights`] all there are.
    pub block_columns: u32,
}

/// What a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Sums or means of rows: the lookup, and the gradient of the table.
    Lookup,
    /// The gradient of the weights.
    Weights,
}
