//! Convolution of feature maps: out = act(conv(x, w) + bias + residual), with zeros of x left out.
//!
//! ```text
//!   input of a tile, of one channel      a list of its nonzeros        output tile of 32·FILTERS filters, in registers
//!   ┌───────────────┐                    (in shared memory)            ┌───────────┐
//!   │ .  3 .  .  1  │   ballot           ┌──────┬──────┬──────┬─────┐  │           │  a nonzero at position p is added to
//!   │ .  .  .  2 .  │  ────────►         │ 1: 3 │ 4: 1 │ 8: 2 │ end │  │  TH × TW  │  the outputs that it meets, with
//!   │ …  with halo  │                    └──────┴──────┴──────┴─────┘  │           │  registers that p alone determines
//!   └───────────────┘                                                  └───────────┘
//! ```
//! `sparse.rs`: a warp has a tile of output pixels and 32·FILTERS filters, and goes through channels. The warps of a block have
//! the same tile and filters and other channels, and add up at the end; where that leaves multiprocessors idle, blocks share
//! the channels too (`splits`), and `reduce.rs` adds their partial sums. `direct.rs` is for any other shape of filters. Sums are in an
//! order that depends on the plan alone.
//!
//! Lower bounds: a fused multiply-add for each nonzero, its filter taps and each filter; the bytes of x, of the filters and of the result. What
//! comes on top: the branch to a position's code and the load of its nonzero, some ten instructions for the 5.4·FILTERS products
//! that a position of a 7 × 7 tile has on average with 3 × 3 taps.
mod direct;
mod list;
mod map;
mod pack;
mod positions;
mod reduce;
mod sparse;
mod target;

pub use direct::{DIRECT_PIXELS, DirectConv, DirectConvArgs};
pub use map::Map;
pub use pack::{PackFilters, PackFiltersArgs};
pub use reduce::{ReduceSplits, ReduceSplitsArgs};
pub use sparse::{SparseConv, SparseConvArgs};
pub use target::Target;

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
    /// [`DirectConv`].
    Direct,
    /// [`ReduceSplits`].
    Reduce,
    /// [`PackFilters`].
    Pack,
}

/// What the host must know of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// How it works.
    pub scheme: Scheme,
    /// Type of maps and filters.
    pub value: ValueType,
}
