//! Inference of a sparse feed-forward network, layer by layer: Y ← act(Y·Wᵀ + b), with W sparse (outputs × inputs) and a row of Y
//! for each sample.
//!
//! ```text
//!   features, 32 rows a tile                  group of R outputs with the same inputs
//!        input 0   row 0 … row 31             ┌ inputs   i0  i1  i2 …         a lane is a row; it loads input i of its row,
//!        input 1   row 0 … row 31             │ weights  R   R   R            and adds R products to R sums: one load of
//!        …                                    └ outputs  o0 … oR-1            128 bytes serves R edges of 32 rows
//! ```
//! [`InputGroups`] does a layer so, and [`GroupTiles`] where groups are large: with inputs staged in shared memory. [`GroupMma`] does it on
//! tensor cores, and [`FusedLayers`] several layers. [`Baseline`] and [`StagedEll`] are the two kernels of the paper, on rows as they are
//! in memory.
//!
//! Rows that are all zero stay so where every later layer maps zero to zero. A layer marks the rows that are not (`alive`), and
//! [`Compact`] lists these. The next layer reads the listed rows, and writes as many. How many rows there are is known on the
//! device alone ([`Rows`]): grids are as large as the GPU, and blocks go on until no rows are left.
//!
//! Source: Hidayetoğlu et al., *At-Scale Sparse Deep Neural Network Inference With Efficient GPU Implementation* (HPEC 2020),
//! listings 1 and 2. Groups are ours.
mod arrange;
mod baseline;
mod compact;
mod exact;
mod features;
mod fused;
mod group_mma;
mod group_tiles;
mod input;
mod input_groups;
mod list;
mod staged_ell;

pub use arrange::{ArrangeArgs, ArrangeRows, Scores, ScoresArgs};
pub use baseline::{Baseline, BaselineArgs};
pub use compact::{Compact, CompactArgs};
pub use exact::{MMA_INPUTS, MMA_OUTPUTS, MMA_WORDS, NO_INPUT, weight_place};
pub use features::{ExpandBits, ExpandBitsArgs, ScatterArgs, ScatterValues};
pub use fused::{
    FUSED_NONE, FUSED_WIDTH, FusedArgs, FusedLayer, FusedLayers, LAYER_WORDS, MAX_FUSED, fused_banks,
    fused_place,
};
pub use group_mma::{GroupMma, GroupMmaArgs};
pub use group_tiles::GroupTiles;
pub use input::LayerInput;
pub use input_groups::{GroupsArgs, InputGroups};
pub use staged_ell::{PADDED, StagedArgs, StagedEll};

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, WARP};

use crate::ValueType;

/// Rows of a tile of features: those of one input lie side by side.
pub const TILE_ROWS: u32 = WARP;

/// Stands for no output, where a group has fewer than its kernel's.
pub const NO_OUTPUT: u32 = u32::MAX;

/// What the host must know of a kernel's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// How it works.
    pub scheme: Scheme,
    /// Whether its input is a bit a number, rather than `f32`.
    pub input_bits: bool,
    /// The type of its weights.
    pub weights: ValueType,
}

/// How a kernel works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A layer, by groups of outputs with the same inputs: so many outputs at most, and tiles of rows that a warp has at once.
    InputGroups {
        /// Outputs of a group at most.
        outputs: u32,
        /// Tiles of 32 rows.
        tiles: u32,
    },
    /// As `InputGroups`, with inputs that are staged in shared memory.
    GroupTiles {
        /// Outputs of a group at most.
        outputs: u32,
        /// Tiles of 32 rows.
        tiles: u32,
    },
    /// As `GroupTiles` with 16 outputs and a tile, on tensor cores: weights are bfloat16, and products exact.
    GroupMma,
    /// The same for several layers in one kernel, whose features stay in shared memory.
    FusedLayers,
    /// A layer by the paper's listing 1: so many outputs a block.
    Baseline {
        /// Outputs of a block.
        outputs: u32,
    },
    /// A layer by the paper's listing 2.
    StagedEll {
        /// Outputs of a block.
        outputs: u32,
        /// Rows that a block has at once.
        rows: u32,
        /// Inputs of a stage.
        inputs: u32,
    },
    /// Lists the rows that are alive.
    Compact,
    /// Makes numbers of bits.
    ExpandBits,
    /// Writes listed numbers to their places; in tiles of 32 rows, or row by row.
    Scatter {
        /// Whether features lie in tiles.
        tiled: bool,
    },
    /// Puts rows of numbers into tiles.
    Arrange,
    /// Writes the results of all samples.
    Scores {
        /// Whether features lie in tiles.
        tiled: bool,
    },
}

/// The rows that a layer works on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// One number: how many rows.
    pub count: GlobalPtr<u32>,
    /// For each of them, which row of the input it is. Address 0: the same.
    pub source: GlobalPtr<u32>,
    /// A bit a row, of those that have a result that is not zero; a word is a tile of 32 rows. All bits are 0 before. Address 0
    /// where nobody asks.
    pub alive: GlobalMut<u32>,
}

impl Rows {
    /// How many rows there are.
    ///
    /// # Safety
    /// As kernels' arguments say.
    #[inline(always)]
    unsafe fn count<G: Gpu>(&self, gpu: G) -> u32 {
        // SAFETY: as promised by the caller; nobody writes the number while layers run.
        let [count] = unsafe { gpu.load_readonly(self.count) };
        count
    }

    /// Which row of the input a row is.
    ///
    /// # Safety
    /// It is one of the rows.
    #[inline(always)]
    unsafe fn source<G: Gpu>(&self, gpu: G, row: u32) -> u32 {
        if self.source.address() == 0 {
            return row;
        }
        // SAFETY: as promised by the caller; nobody writes the list while layers run.
        let [source] = unsafe { gpu.load_readonly(self.source.add(row as usize)) };
        source
    }

    /// Marks rows of a tile as alive: those whose bits are set.
    ///
    /// # Safety
    /// It is one of the tiles that have rows.
    #[inline(always)]
    unsafe fn mark<G: Gpu>(&self, gpu: G, tile: u32, rows: u32) {
        if rows != 0 {
            // SAFETY: as promised by the caller.
            unsafe { gpu.atomic_or(self.alive.add(tile as usize), rows) };
        }
    }
}

/// What a layer makes of a sum: numbers below `lo` become `lo`, those above `hi` become `hi`, and NaN stays.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The least result.
    pub lo: f32,
    /// The greatest.
    pub hi: f32,
}

impl Limits {
    #[inline(always)]
    fn of(self, sum: f32) -> f32 {
        // Two selections, without a branch.
        let most = if sum > self.hi { self.hi } else { sum };
        if sum < self.lo { self.lo } else { most }
    }
}

/// A bit for each number that is not zero.
#[inline(always)]
fn alive([a, b, c, d]: [f32; 4]) -> u32 {
    u32::from(a != 0.0) | u32::from(b != 0.0) << 1 | u32::from(c != 0.0) << 2 | u32::from(d != 0.0) << 3
}
