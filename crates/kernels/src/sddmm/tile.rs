//! What the host knows of each kernel: its types, and its tile shape.
use crate::{Arithmetic, IndexType, ValueType};

/// A kernel's types and constants as numbers, for the heuristic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Type of the values of A, B, C and D.
    pub value: ValueType,
    /// Type of C's column indices.
    pub index: IndexType,
    /// Elements that a lane loads at once. K, the strides of A and B, and their addresses in elements are multiples of it.
    pub vector: u32,
    /// What a block works on: nonzeros; or rows, or tiles of a dense matrix.
    pub block_items: u32,
    /// How it works.
    pub scheme: Scheme,
}

impl Tile {
    /// Of a kernel that multiplies nothing, with so many items a block.
    pub(super) const fn without_products(index: IndexType, block_items: u32, scheme: Scheme) -> Self {
        Self { value: ValueType::F32, index, vector: 1, block_items, scheme }
    }
}

/// What a kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Groups of lanes take a tile of neighbouring nonzeros each: [`NonzeroSplit`](super::NonzeroSplit).
    NonzeroSplit {
        /// Lanes of a group.
        lanes: u32,
        /// Vectors that a lane has of a chunk of K.
        vectors: u32,
        /// Nonzeros whose rows of B are under way together.
        at_once: u32,
    },
    /// Groups of lanes take the nonzeros of a row in a panel of columns each: [`ColumnPanels`](super::ColumnPanels). A
    /// block's items are tiles.
    ColumnPanel {
        /// Lanes of a group.
        lanes: u32,
        /// Vectors that a lane has of K.
        vectors: u32,
        /// Nonzeros whose rows of B are under way together.
        at_once: u32,
    },
    /// Blocks take a tile of D each, on tensor cores: [`MmaTiles`](super::MmaTiles). Its rows are the block's items.
    MmaTile {
        /// Columns of a tile.
        columns: u32,
        /// What a product is.
        arithmetic: Arithmetic,
    },
    /// Blocks take a tile of D each, by warpgroups: [`WgmmaTiles`](super::WgmmaTiles). Its rows are the block's items.
    WgmmaTile {
        /// Columns of a tile.
        columns: u32,
        /// What a product is.
        arithmetic: Arithmetic,
    },
    /// No product: makes the row of each nonzero, [`RowIndices`](super::RowIndices).
    RowIndices,
    /// No product: makes the order in which tiles are taken, [`TileSchedule`](super::TileSchedule).
    Schedule,
    /// No product: adds the sums of splits up, [`SumSplits`](super::SumSplits).
    SumSplits,
    /// No product: transposes a dense matrix, [`DenseTranspose`](super::DenseTranspose).
    Transpose,
}

impl Scheme {
    /// What tensor cores multiply, where they do.
    pub const fn arithmetic(self) -> Option<Arithmetic> {
        match self {
            Self::MmaTile { arithmetic, .. } | Self::WgmmaTile { arithmetic, .. } => Some(arithmetic),
            _ => None,
        }
    }
}
