//! O = softmax(scale·Q·Kᵀ ⊙ mask)·V, fused: for an arbitrary sparse mask (CSR, queries × keys), and no score is ever written. Scores may
//! be held within a soft cap, and lessened by distance.
//!
//! Source: Gale, Zaharia, Young, Elsen, *Sparse GPU Kernels for Deep Learning* (SC 2020), section VII-C, for the operation;
//! Dao, Fu, Ermon, Rudra, Ré, *FlashAttention* (2022), section 3.1, for the softmax that goes along.
mod backward;
mod find_blocks;
mod lanes;
mod list;
mod mma;
mod online;
mod query_tile;
mod row;
mod rows;
mod score;
mod tile_rows;
mod transpose_bitmaps;
mod warp_mask;
mod warp_products;
mod wgmma;

use lacuna_gpu::{GlobalMut, GlobalPtr};

use crate::{IndexType, ValueType};

pub use backward::{BackwardMmaTiles, BackwardOperands, BackwardTiles, TERMS};
pub use find_blocks::{CsrMask, FindBlocks, FindBlocksArgs, WINDOW_BLOCKS, WriteBitmaps, WriteBitmapsArgs};
pub use mma::{MmaPanelTiles, MmaTiles};
pub use query_tile::{MAX_KEYS, QUERIES, QueryTileEntry, QueryTiles};
pub use rows::Rows;
pub use transpose_bitmaps::{TransposeBitmaps, TransposeBitmapsArgs};
pub use wgmma::{
    BITMAP_WORDS, BLOCK, BlockArgs, BlockEntry, BlockMask, WgmmaTiles, WgmmaValue, bits_of_pairs,
    place_of_bit,
};

/// What the entry points of [`Rows`] take, for values of `T` and column indices of `I`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Args<T, I> {
    /// The mask's rows: as many records of [`RowRecord`](crate::RowRecord) words as queries, in the order in which they
    /// are to be worked on.
    pub row_table: GlobalPtr<u32>,
    /// Column of each element of the mask, row by row.
    pub columns: GlobalPtr<I>,
    /// What is multiplied.
    pub operands: Operands<T>,
}

/// What the entry points of [`QueryTiles`] take, for values of `T`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct QueryTileArgs<T> {
    /// `tiles` records of [`RowRecord`](crate::RowRecord) words, in the order in which they are to be worked on: the
    /// first of [`QUERIES`] queries, and where their entries begin and end.
    pub tile_table: GlobalPtr<u32>,
    /// [`QueryTileEntry`]s.
    pub entries: GlobalPtr<u32>,
    /// What is multiplied.
    pub operands: Operands<T>,
    /// Records in the table.
    pub tiles: u32,
}

/// Q, K, V and O. The grid's y is the batch: heads with one mask. Of kernels by blocks it is the x.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Operands<T> {
    /// Q, `rows` × `dim` for each head.
    pub q: GlobalPtr<T>,
    /// K, `cols` × `dim` for each head.
    pub k: GlobalPtr<T>,
    /// V, `cols` × `dim` for each head.
    pub v: GlobalPtr<T>,
    /// O, `rows` × `dim` for each head.
    pub o: GlobalMut<T>,
    /// The natural logarithm of each row's sum of exponentials, `rows` for each head; address 0 where it is not wanted.
    pub logsumexp: GlobalMut<f32>,
    /// What a step of distance takes of a score, for each head; address 0 where it takes nothing.
    pub slopes: GlobalPtr<f32>,
    /// Their sizes, and how they lie.
    pub shape: Shape,
    /// Heads of the first group that other launches have.
    pub first_of_group: u32,
}

/// Sizes of Q, K, V and O, and how they lie.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Elements from one head's Q to the next.
    pub q_batch_stride: u64,
    /// Elements from K of one group of heads to that of the next, and of V.
    pub kv_batch_stride: u64,
    /// The same of O.
    pub o_batch_stride: u64,
    /// Bytes from one row of Q to the next.
    pub q_stride_bytes: u32,
    /// The same of K, and of V.
    pub kv_stride_bytes: u32,
    /// The same of O.
    pub o_stride_bytes: u32,
    /// Queries.
    pub rows: u32,
    /// Keys.
    pub cols: u32,
    /// Elements of a row of Q, K, V and O.
    pub dim: u32,
    /// Multiplies the scores, times log₂ e: the scale, or the soft cap.
    pub scale: f32,
    /// With a soft cap what multiplies a product to give twice the part of it, times log₂ e; 0 without.
    pub softcap: f32,
    /// Heads of a group, which share K and V.
    pub group_heads: u32,
}

/// A kernel's types and constants as numbers, for the heuristic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Type of the values of Q, K, V and O.
    pub value: ValueType,
    /// Elements that a lane loads at once. The dimension, and the addresses in elements, are multiples of it.
    pub vector: u32,
    /// Lanes that share a row of K or V.
    pub lanes: u32,
    /// The largest dimension.
    pub dimension: u32,
    /// Queries, or tiles of four queries, of a block.
    pub block_rows: u32,
    /// How it goes about it.
    pub scheme: Scheme,
}

/// What a warp works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A query: [`Rows`].
    Row {
        /// Type of the mask's column indices.
        index: IndexType,
    },
    /// Four neighbouring queries, whose keys it loads once: [`QueryTiles`].
    QueryTile,
    /// Blocks of 64 queries and 64 keys, by warpgroups: [`WgmmaTiles`].
    WgmmaTile,
    /// The same by warps: [`MmaTiles`] and [`MmaPanelTiles`].
    MmaTile,
    /// Gradients by such blocks: [`BackwardTiles`].
    BackwardTile {
        /// Of K and V; if not, of Q.
        owns_keys: bool,
    },
    /// The same by warps: [`BackwardMmaTiles`].
    BackwardMmaTile {
        /// Of K and V; if not, of Q.
        owns_keys: bool,
    },
    /// As [`WgmmaTile`](Self::WgmmaTile), with scores that may be capped, and lessened by distance.
    ModifiedWgmmaTile,
    /// As [`MmaTile`](Self::MmaTile), likewise.
    ModifiedMmaTile,
    /// The same of [`Row`](Self::Row).
    ModifiedRow {
        /// Type of the mask's column indices.
        index: IndexType,
    },
    /// The same of [`QueryTile`](Self::QueryTile).
    ModifiedQueryTile,
    /// The same of [`BackwardTile`](Self::BackwardTile).
    ModifiedBackwardTile {
        /// Of K and V; if not, of Q.
        owns_keys: bool,
    },
    /// The same of [`BackwardMmaTile`](Self::BackwardMmaTile).
    ModifiedBackwardMmaTile {
        /// Of K and V; if not, of Q.
        owns_keys: bool,
    },
    /// No product: makes such blocks of a mask, [`FindBlocks`] and [`WriteBitmaps`].
    MaskBlocks {
        /// Type of the mask's column indices.
        index: IndexType,
    },
    /// No product: makes the bitmaps of a transposed mask, [`TransposeBitmaps`].
    TransposeBitmaps,
}
