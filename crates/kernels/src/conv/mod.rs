//! Convolution of feature maps: out = act(conv(x, w) + bias + residual), with zeros of x left out.
//!
//! ```text
//!   input of a tile, of one channel      output tile of 32·FILTERS filters, in registers
//!   ┌───────────────┐                    ┌───────────┐
//!   │ .  3 .  .  1  │  four by four      │           │  a nonzero at position p is added to the outputs that it meets, by code that
//!   │ .  .  .  2 .  │  ─────────────►    │  TH × TW  │  p alone determines, so that these are registers; where a zero is, the warp
//!   │ …  with halo  │                    │           │  goes round that code
//!   └───────────────┘                    └───────────┘
//! ```
//! `sparse.rs`: a warp has a tile of output pixels and 32·FILTERS filters, and goes through channels. The warps of a block have
//! the same tile and filters and other channels, and add up at the end; where that leaves multiprocessors idle, blocks share
//! the channels too (`splits`), and `reduce.rs` adds their partial sums. `mma.rs` multiplies zeros too,
//! on tensor cores, `wgmma.rs` by warpgroups, `panels` of 16 bits with channels last, and `pointwise.rs` and `wgmma_pointwise.rs` where a filter has one tap. `few_channels.rs` is for first layers, `few_channels_mma` for those of 16 bits, `direct.rs` is for any other shape of filters, `depthwise` for
//! channels with a filter each. `finish.rs` is what follows a convolution that a vendor's library does. Sums are in an order that depends on the plan alone.
//!
//! Lower bounds: a fused multiply-add for each nonzero, its filter taps and each filter; the bytes of x, of the filters and of the result. What
//! comes on top: some four instructions and a branch for each position, for the 5.4·FILTERS products
//! that a position of a 7 × 7 tile has on average with 3 × 3 taps, if it is not zero.
mod accumulators;
mod depthwise;
mod direct;
mod few_channels;
mod few_channels_mma;
mod finish;
mod list;
mod mma;
mod pack;
mod pack_mma;
mod pack_pointwise;
mod panels;
mod pointwise;
mod positions;
mod reduce;
mod results;
mod source;
mod sparse;
mod split;
mod target;
mod wgmma;
mod wgmma_pointwise;

pub use depthwise::{
    AnyDepthwise, DepthwiseArgs, DepthwiseColumn, DepthwiseNchw, DepthwiseNhwc, DepthwisePlanes,
    PLANES_OF_BLOCK,
};
pub use direct::{DIRECT_PIXELS, DirectConv, DirectConvArgs};
pub use few_channels::{FEW_CHANNELS, FEW_COLUMNS, FewChannelsConv};
pub use few_channels_mma::{FewChannelsMmaConv, PackFewChannels, few_channels_pieces};
pub use finish::{FinishMaps, FinishMapsArgs};
pub use mma::{MMA_SIDE, MMA_TAPS, MmaConv, MmaConvArgs};
pub use pack::{PackFilters, PackFiltersArgs};
pub use pack_mma::{PackMma, PackMmaArgs};
pub use pack_pointwise::PackPointwise;
pub use panels::{PANEL_CHANNELS, PANEL_TAPS, PackPanels, WgmmaPanelConv};
pub use pointwise::{POINTWISE_PIXELS, PointwiseConv};
pub use reduce::{ReduceSplits, ReduceSplitsArgs};
pub use source::Source;
pub use sparse::{SparseConv, SparseConvArgs};
pub use split::MmaValue;
pub use target::Target;
pub use wgmma::WgmmaConv;
pub use wgmma_pointwise::WgmmaPointwiseConv;

use crate::ValueType;

/// How a kernel does its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// [`SparseConv`].
    SparseTile {
        /// Taps of a filter along a side.
        taps: u32,
        /// Input pixels from one output pixel to the next.
        stride: u32,
        /// Output pixels of a tile: rows and columns.
        tile: [u32; 2],
        /// Filters of a thread.
        filters: u32,
        /// Warps of a block.
        warps: u32,
    },
    /// [`MmaConv`].
    MmaTile {
        /// Positions of a tile's input at most.
        positions: u32,
        /// Filters of a tile.
        filters: u32,
    },
    /// [`WgmmaConv`].
    WgmmaTile {
        /// Tiles of a block.
        tiles: u32,
        /// Positions of a tile's input at most.
        positions: u32,
        /// Filters of a tile.
        filters: u32,
    },
    /// [`PointwiseConv`].
    PointwiseTile {
        /// Output pixels of a tile.
        pixels: u32,
        /// Filters of a tile.
        filters: u32,
        /// Warps of a block that share the channels.
        warps: u32,
    },
    /// [`WgmmaPointwiseConv`].
    WgmmaPointwise {
        /// Tiles of a block, of 64 output pixels each.
        tiles: u32,
        /// Filters of a tile.
        filters: u32,
    },
    /// [`WgmmaPanelConv`].
    WgmmaPanels {
        /// Output pixels of a tile, of all images.
        pixels: u32,
        /// Filters of a tile.
        filters: u32,
    },
    /// [`FewChannelsConv`].
    FewChannels {
        /// Taps of a filter along a side.
        taps: u32,
        /// Input pixels from one output pixel to the next.
        stride: u32,
        /// Output rows of a tile.
        rows: u32,
        /// Filters of a tile.
        filters: u32,
        /// Output rows and filters of a thread.
        thread: [u32; 2],
    },
    /// [`FewChannelsMmaConv`].
    FewChannelsMma {
        /// Taps of a filter along a side.
        taps: u32,
        /// Input pixels from one output pixel to the next.
        stride: u32,
        /// Output rows of a tile.
        rows: u32,
        /// Filters of a tile.
        filters: u32,
    },
    /// [`DirectConv`].
    Direct,
    /// [`DepthwiseColumn`].
    DepthwiseColumn {
        /// Taps of a filter along a side.
        taps: u32,
        /// Input pixels from one output pixel to the next.
        stride: u32,
        /// Output rows of a thread.
        rows: u32,
    },
    /// [`DepthwiseNchw`].
    DepthwiseNchw {
        /// Taps of a filter along a side.
        taps: u32,
        /// Input pixels from one output pixel to the next.
        stride: u32,
        /// Output rows and columns of a thread.
        tile: [u32; 2],
    },
    /// [`DepthwiseNhwc`].
    DepthwiseNhwc {
        /// Taps of a filter along a side.
        taps: u32,
        /// Input pixels from one output pixel to the next.
        stride: u32,
        /// Output rows and columns of a thread.
        tile: [u32; 2],
        /// Channels of a thread.
        vector: u32,
    },
    /// [`DepthwisePlanes`].
    DepthwisePlanes {
        /// Taps of a filter along a side.
        taps: u32,
        /// Input pixels from one output pixel to the next.
        stride: u32,
        /// Rows and columns of the input.
        side: u32,
    },
    /// [`AnyDepthwise`].
    AnyDepthwise,
    /// [`FinishMaps`].
    Finish,
    /// [`ReduceSplits`].
    Reduce,
    /// [`PackFewChannels`], [`PackFilters`], [`PackMma`], [`PackPanels`] and [`PackPointwise`].
    Pack,
}

impl Scheme {
    /// Whether it is for filters of one tap, and takes the pixels of an image as one run.
    pub const fn is_pointwise(self) -> bool {
        matches!(self, Self::PointwiseTile { .. } | Self::WgmmaPointwise { .. })
    }
}

/// What the host must know of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// How it works.
    pub scheme: Scheme,
    /// Type of maps and filters.
    pub value: ValueType,
}
