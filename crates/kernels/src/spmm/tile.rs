//! What the host knows of each kernel: its types, and its tile shape.
use super::Idea;
use crate::{Arithmetic, IndexType, ValueType};

/// A kernel's types and constants as numbers, for the heuristic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Type of the values of A, B and C.
    pub value: ValueType,
    /// Type of A's column indices.
    pub index: IndexType,
    /// Columns that a lane loads or stores at once. N, the strides of B and C, and their addresses in elements are
    /// multiples of it.
    pub vector: u32,
    /// Rows of C that a block computes, or that it computes at a time.
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
        /// Subwarps that share a row's nonzeros.
        split: u32,
        /// What it stages columns as: it is for A with columns that this can count.
        stage: IndexType,
        /// Whether blocks are persistent, and take row after row.
        persistent: bool,
        /// Whether, where they do, subwarps share long rows only.
        hybrid: bool,
        /// Whether it takes pieces of rows.
        pieces: bool,
    },
    /// As [`RowSplit`](Self::RowSplit), with the greatest product in place of the sum: [`Extremum`](super::Extremum).
    Extremum {
        /// Lanes side by side along the columns.
        lanes: u32,
        /// Subwarps that share a row's nonzeros.
        split: u32,
        /// Whether it also writes which nonzero won.
        winners: bool,
    },
    /// As [`RowSplit`](Self::RowSplit), but for one idea: for measurements, and never chosen.
    Ablation {
        /// The idea in which it differs.
        idea: Idea,
        /// Lanes side by side along the columns.
        lanes: u32,
        /// Subwarps that share a row's nonzeros.
        split: u32,
        /// What it stages columns as: it is for A with columns that this can count.
        stage: IndexType,
    },
    /// Blocks take a tile each, on tensor cores: [`MmaTiles`](super::MmaTiles).
    MmaTile {
        /// Parts of a step along K, for other warps each.
        slices: u32,
        /// What a product is.
        arithmetic: Arithmetic,
    },
    /// As [`MmaTile`](Self::MmaTile), for 16-bit values, by warpgroups: [`WgmmaTiles`](super::WgmmaTiles).
    WgmmaTile {
        /// Chunks of 64 columns of A in a step.
        chunks: u32,
        /// Producers load ahead what one nonzero in so many columns makes of a row.
        part: u32,
        /// Blocks that share a tile, a part of K each.
        blocks: u32,
    },
    /// As [`WgmmaTile`](Self::WgmmaTile), for prepacked weights: [`PrepackedTiles`](super::PrepackedTiles).
    PrepackedTile {
        /// What a product is.
        arithmetic: Arithmetic,
        /// Chunks of A in a step: of 64 columns, or 32 of `f32`.
        chunks: u32,
        /// Nonzeros of a step that producers load ahead; what a fuller one has beyond that comes late.
        ahead: u32,
        /// Blocks that share a tile, a part of K each.
        blocks: u32,
    },
    /// A gradient of the greatest or the least product: [`ValuesGradient`](super::ValuesGradient), [`BGradient`](super::BGradient).
    Gradient,
    /// No product: makes rows of the pieces of long ones, [`JoinPieces`](super::JoinPieces).
    JoinPieces,
    /// No product: makes the masks and places by which tiles are filled, [`Bitmasks`](super::Bitmasks).
    Bitmask,
}

impl Tile {
    /// Columns and rows of the boxes in which B comes, by a tensor map, if it does: those of a panel and of a step.
    pub const fn box_dim(&self) -> Option<[u32; 2]> {
        let chunks = match self.scheme {
            Scheme::WgmmaTile { chunks, .. } => chunks,
            // Small tiles of prepacked weights have few steps, of which the first comes sooner if threads copy.
            Scheme::PrepackedTile { chunks, arithmetic: Arithmetic::Half, .. }
                if self.block_rows > 64 || self.block_columns > 64 =>
            {
                chunks
            }
            _ => return None,
        };
        let columns = if self.block_columns < 64 { self.block_columns } else { 64 };
        if self.vector == 8 { Some([columns, chunks * 64]) } else { None }
    }
}

impl Scheme {
    /// What tensor cores multiply, if they do.
    pub const fn arithmetic(self) -> Option<Arithmetic> {
        match self {
            Self::MmaTile { arithmetic, .. } | Self::PrepackedTile { arithmetic, .. } => Some(arithmetic),
            Self::WgmmaTile { .. } => Some(Arithmetic::Half),
            Self::RowSplit { .. } | Self::Extremum { .. } | Self::Ablation { .. } => None,
            Self::Gradient | Self::JoinPieces | Self::Bitmask => None,
        }
    }
}
