//! Bias and activation of a dense matrix, in one pass: out = act(x + bias + residual), elementwise.
//!
//! ```text
//!                 block_columns = LANES·V                A block has 2·THREADS/LANES rows of LANES·V columns. A thread has
//!            ┌────────┬────────┬────────┐                V neighbours (16 bytes, or 1 element where rows are not aligned)
//!   row r    │ lane 0 │ lane 1 │ lane 2 │ ...            of two rows, THREADS/LANES apart, and asks for all of both before
//!   row r+1  │ lane 0 │ lane 1 │ lane 2 │  next LANES    it computes. A bias per column is loaded once for both, one per
//!            └────────┴────────┴────────┘                row by each lane.
//! ```
//! Each element is read and written by one thread, first read, then written: the result may take the place of x. Gaps of a
//! row's stride are neither read nor written. All is computed in f32 and rounded once.
//!
//! Vectors stay words of 32 bits, of one number or two, and each word is worked on by a straight line of code: there is no array
//! that a loop goes through, and so none that could come to lie in local memory.
//!
//! Lower bound: the bytes of x, of the residual and of the result, once each, as a plain copy moves them; GELU takes some twenty
//! instructions an element beside.
mod activation;
mod kernel;
mod list;

pub use activation::Activation;
pub use kernel::{BiasAct, BiasActArgs};

use crate::ValueType;

/// What the host must know of a kernel's shape. A grid is one dimension of blocks: of rows, and of parts of the columns, the
/// parts of a block of rows side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Type of the values.
    pub value: ValueType,
    /// Elements that a thread loads at once.
    pub vector: u32,
    /// Threads that share a row.
    pub lanes: u32,
    /// Rows of a block.
    pub block_rows: u32,
    /// Columns of a block.
    pub block_columns: u32,
}
