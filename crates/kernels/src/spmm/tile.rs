//! What the host knows of each kernel.
use crate::{IndexType, ValueType};

/// A kernel's types and constants as numbers, for the chooser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Type of the values of A, B and C.
    pub value: ValueType,
    /// Type of A's column indices.
    pub index: IndexType,
    /// Columns that a lane loads or stores at once. N, the strides of B and C, and their addresses in elements are
    /// multiples of it.
    pub vector: u32,
    /// Rows of C that a block computes.
    pub block_rows: u32,
    /// Columns of C that a block computes.
    pub block_columns: u32,
    /// How it computes them.
    pub scheme: Scheme,
}

/// How a kernel computes its part of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Groups of lanes take a row each: [`RowSplit`](super::RowSplit).
    RowSplit {
        /// Lanes side by side along the columns.
        lanes: u32,
        /// Teams of such lanes that share a row's nonzeros.
        split: u32,
    },
}
