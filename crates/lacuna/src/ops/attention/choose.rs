//! Which kernel suits a problem: a pure function, so that it can be tested and printed without a GPU.
use lacuna_kernels::attention::{BLOCK, MAX_KEYS, QUERIES, Scheme, Tile};
use lacuna_kernels::{Entry, IndexType, ValueType, entries};

use super::{BlockCounts, OPERATION, TilingCounts};
use crate::Precision;
use crate::op::{self, MAX_GRID_YZ};
use crate::ops::spmm::LONG_ROWS;

/// The problem shape: all that the heuristic sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Elements of the mask.
    pub nnz: usize,
    /// Queries.
    pub queries: usize,
    /// Keys.
    pub keys: usize,
    /// Heads.
    pub heads: usize,
    /// Keys that four neighbouring queries see together, summed over the mask: what [`QueryTile`] loads in place of nnz.
    /// `None` where they were not counted; then that is no choice of the library's.
    ///
    /// [`QueryTile`]: Algorithm::QueryTile
    pub query_tile_entries: Option<usize>,
    /// The mask's blocks of 64 queries × 64 keys. `None` where they were not counted; then [`WgmmaTile`] and [`MmaTile`] are no choice of the
    /// library's.
    ///
    /// [`WgmmaTile`]: Algorithm::WgmmaTile
    /// [`MmaTile`]: Algorithm::MmaTile
    pub blocks: Option<BlockCounts>,
    /// Whether the scale is above 0, or there is a soft cap.
    pub has_positive_scale: bool,
    /// Elements of a row of Q, K, V and O.
    pub dim: usize,
    /// Elements that the dimension, strides and addresses allow to load at once (1, 2, 4 or 8).
    pub vector: u32,
    /// Type of the values.
    pub value: ValueType,
    /// What may be lost of `f32`.
    pub precision: Precision,
    /// Type of the mask's column indices; `None` where the mask is given as blocks alone, which only [`WgmmaTile`] and [`MmaTile`] take.
    ///
    /// [`WgmmaTile`]: Algorithm::WgmmaTile
    /// [`MmaTile`]: Algorithm::MmaTile
    pub index: Option<IndexType>,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// The GPU's compute capability, 90 for 9.0.
    pub sm: u32,
}

impl Problem {
    /// One head of a mask of so many queries × keys and elements, with vectors of 16 bytes, on an H200.
    pub fn new(
        [queries, keys]: [usize; 2],
        nnz: usize,
        dim: usize,
        value: ValueType,
        index: IndexType,
    ) -> Self {
        Self {
            nnz,
            queries,
            keys,
            heads: 1,
            query_tile_entries: None,
            blocks: None,
            has_positive_scale: true,
            dim,
            vector: 16 / value.bytes(),
            value,
            precision: Precision::Single,
            index: Some(index),
            multiprocessors: 132,
            sm: 90,
        }
    }
}

/// How attention is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// As SDDMM, softmax and SpMM, with the scores in memory of the plan: for any dimension. Scores and weights are rounded to
    /// the type of the operands. Runs of such a plan on several streams must be ordered.
    ThreeSteps,
    /// In one pass that writes no score: a warp takes a query. Dimensions up to 256.
    Row {
        /// Elements that a lane loads at once.
        vector: u32,
        /// Lanes that share a row of K or V.
        lanes: u32,
        /// The largest dimension.
        dimension: u32,
    },
    /// As [`Row`](Self::Row), but a warp takes four neighbouring queries, and loads what any of them sees once
    /// for all: for masks with a band. The host lists these keys when the first plan of a pattern wants them. Up to 2²⁸ − 2
    /// keys.
    QueryTile {
        /// Elements that a lane loads at once.
        vector: u32,
        /// Lanes that share a row of K or V.
        lanes: u32,
        /// The largest dimension.
        dimension: u32,
    },
    /// On tensor cores, by warpgroups (compute capability 9.0): blocks of 64 queries × 64 keys in which any
    /// query sees a key are multiplied whole. Weights are rounded to the type of the operands. For masks whose blocks are full, or
    /// not too empty; up to 256 elements in vectors of eight, and scales above 0, or a soft cap. A product of `f32` is three of bfloat16, in
    /// vectors of four, where the [precision](super::Options::precision) allows it. The blocks are found and listed when the first plan of
    /// a pattern wants them.
    WgmmaTile {
        /// Queries of a thread block: 64 for each warpgroup.
        queries: u32,
        /// The largest dimension.
        dimension: u32,
    },
    /// As [`WgmmaTile`](Self::WgmmaTile), by warps: for GPUs from compute capability 8.0 on.
    MmaTile {
        /// Queries of a thread block: 64 for each four warps.
        queries: u32,
        /// The largest dimension.
        dimension: u32,
    },
}

/// A fused kernel, and what the heuristic thinks of it.
pub type Choice = op::Choice<Algorithm, Tile>;

impl op::Problem for Problem {
    const OPERATION: &'static str = OPERATION;
    type Algorithm = Algorithm;
    type Tile = Tile;
    const ENTRIES: fn() -> &'static [Entry<Tile>] = entries::attention;

    fn algorithms(&self, entry: &'static Entry<Tile>) -> impl IntoIterator<Item = Algorithm> {
        let Tile { value, vector, lanes, dimension, block_rows, scheme } = entry.tile;
        let (mask_fits, algorithm) = match scheme {
            Scheme::Row { index } => (Some(index) == self.index, Algorithm::Row { vector, lanes, dimension }),
            Scheme::QueryTile => {
                let fits = self.index.is_some() && self.keys <= MAX_KEYS as usize;
                (fits, Algorithm::QueryTile { vector, lanes, dimension })
            }
            Scheme::WgmmaTile | Scheme::MmaTile => {
                let tiles = self.queries.div_ceil(block_rows as usize);
                let is_exact = value != ValueType::F32 || self.allows_parts();
                let fits =
                    is_exact && self.has_positive_scale && tiles <= MAX_GRID_YZ && entry.runs_on(self.sm);
                let queries = block_rows;
                let algorithm = if scheme == Scheme::MmaTile {
                    Algorithm::MmaTile { queries, dimension }
                } else {
                    Algorithm::WgmmaTile { queries, dimension }
                };
                (fits, algorithm)
            }
            Scheme::BackwardTile { .. }
            | Scheme::BackwardMmaTile { .. }
            | Scheme::MaskBlocks { .. }
            | Scheme::TransposeBitmaps
            | Scheme::ModifiedRow { .. }
            | Scheme::ModifiedQueryTile
            | Scheme::ModifiedWgmmaTile
            | Scheme::ModifiedMmaTile
            | Scheme::ModifiedBackwardTile { .. }
            | Scheme::ModifiedBackwardMmaTile { .. } => {
                return None;
            }
        };
        let fits = value == self.value
            && vector <= self.vector
            && self.dim.is_multiple_of(vector as usize)
            && self.dim <= dimension as usize;
        (mask_fits && fits).then_some(algorithm)
    }

    /// Cycles of an SM for all keys of a head.
    fn cost(&self, entry: &'static Entry<Tile>, _algorithm: Algorithm) -> f64 {
        let tile = &entry.tile;
        match tile.scheme {
            Scheme::WgmmaTile | Scheme::MmaTile => {
                self.blocks.map_or(f64::INFINITY, |blocks| self.cost_of_blocks(&blocks, entry))
            }
            Scheme::Row { .. } => self.cost_of_keys(tile, self.nnz as f64, 1.0),
            // Rows that do not fill the lanes are worked out query by query, each from all entries.
            Scheme::QueryTile => {
                let queries = QUERIES as f64;
                let times = if self.dim == tile.dimension as usize { 1.0 } else { queries };
                let keys = self.query_tile_entries.map_or(f64::INFINITY, |entries| times * entries as f64);
                self.cost_of_keys(tile, keys, queries)
            }
            Scheme::BackwardTile { .. }
            | Scheme::BackwardMmaTile { .. }
            | Scheme::MaskBlocks { .. }
            | Scheme::TransposeBitmaps
            | Scheme::ModifiedRow { .. }
            | Scheme::ModifiedQueryTile
            | Scheme::ModifiedWgmmaTile
            | Scheme::ModifiedMmaTile
            | Scheme::ModifiedBackwardTile { .. }
            | Scheme::ModifiedBackwardMmaTile { .. } => f64::INFINITY,
        }
    }
}

impl Problem {
    /// Whether products of `f32` may be three of bfloat16: sums of both are long, or nobody minds.
    fn allows_parts(&self) -> bool {
        let keys = self.nnz / self.queries.max(1);
        match self.precision {
            Precision::Fma => false,
            Precision::Single => self.dim.min(keys) >= LONG_ROWS,
            Precision::Tf32 => true,
        }
    }

    /// Of kernels that load so many keys, a warp for so many queries. A key costs what the slower of two takes: L1, which gives 128
    /// bytes a cycle, and the four schedulers, which issue a warp's instruction each.
    fn cost_of_keys(&self, tile: &Tile, keys: f64, queries_of_warp: f64) -> f64 {
        const WARP: f64 = 32.0;
        let lanes = f64::from(tile.lanes);
        let bytes = f64::from(tile.value.bytes());
        // Of K and V, for one key.
        let elements = 2.0 * f64::from(tile.dimension);
        let loads = elements / f64::from(tile.vector) / WARP;
        let converted = if bytes < 4.0 { elements / WARP } else { 0.0 };
        // Two of the four queries see no key of most batches.
        let queries = if tile.scheme == Scheme::QueryTile { 3.0 } else { 1.0 };
        // A query's products; a shuffle and two selections for each sum that is handed on; a column, twice, and a weight.
        let query = elements / WARP + 3.0 * lanes / WARP;
        let issued = queries * query + converted + 2.0 * loads + 3.0 * lanes / WARP;
        // No request for less than a line takes less than a cycle.
        let l1 = loads.max(2.0 * self.dim as f64 * bytes / 128.0);
        // Beside blocks it counts that a warp's keys come one batch after another, which few tokens do not hide.
        let waiting = if self.blocks.is_some() {
            let warps = self.queries.max(1) as f64 / queries_of_warp;
            BATCH_CYCLES * keys / warps / WARP * f64::from(self.multiprocessors) / self.heads.max(1) as f64
        } else {
            0.0
        };
        // In `f32` keys take longer than L1 and schedulers alone, which shows beside blocks.
        let of_limit = if self.blocks.is_some() && bytes == 4.0 { OF_LIMIT } else { 1.0 };
        of_limit * keys.max(1.0) * (l1.max(issued / 4.0) + 1.0) + waiting
    }

    /// Of blocks. An entry takes its copies and what its groups multiply, seen or not. Where heads are few, the longest tile is
    /// waited for; so are the last waves of tiles that are alike.
    fn cost_of_blocks(&self, blocks: &BlockCounts, entry: &Entry<Tile>) -> f64 {
        let Entry { tile, bounds, .. } = entry;
        let (groups, dim) = (f64::from(tile.block_rows / BLOCK), tile.dimension);
        let TilingCounts { tiles, entries, longest } = blocks.tilings[groups as usize - 1];
        let by_dim = match (tile.scheme == Scheme::MmaTile, tile.value == ValueType::F32) {
            (true, true) => &MMA_SPLIT_ENTRY,
            (true, false) => &MMA_ENTRY,
            (false, true) => &SPLIT_ENTRY,
            (false, false) => &ENTRY,
        };
        let [of_entry, of_group] = by_dim[(dim as usize / 64).ilog2() as usize];
        let entry = of_entry + groups * of_group;
        let tile_cycles = TILE + GROUP_OF_TILE * groups;
        let alone = if groups > 1.0 || dim > 64 { 1.0 } else { ALONE };
        let all = entries as f64 * entry + tiles as f64 * tile_cycles;
        let longest = longest as f64 * entry + tile_cycles;
        // Tiles that a multiprocessor takes one after another, of those that it has at once; where tiles differ, short ones fill the
        // last wave.
        let (heads, at_once) = (self.heads.max(1) as f64, f64::from(bounds.min_blocks.max(1)));
        let waves = (tiles as f64 * heads / (f64::from(self.multiprocessors) * at_once)).ceil();
        let alike = 2.0 * all / (tiles as f64).max(1.0) - longest;
        all.max((alone * longest).max(waves * at_once * alike) * f64::from(self.multiprocessors) / heads)
    }
}

/// Cycles of a warp for 32 keys, from their columns to their sums. This and the following are set by hand from times on an H100, at 1.755 GHz
/// (docs/log/attention.md, "Blocks").
const BATCH_CYCLES: f64 = 2800.0;
/// How many times their limit keys of `f32` take: see docs/log/attention.md, "`f32` in parts, and blocks by warps". This, and what is of `f32` and by
/// warps below, are from times on an H200.
const OF_LIMIT: f64 = 1.6;
/// Cycles of a multiprocessor for an entry and for one of its groups, of rows of up to 64 elements (docs/log/attention.md, "Panels in place
/// of core matrices"), of up to 128, and of more, whose copies take most of the time (there, "Tiles of wide rows").
const ENTRY: [[f64; 2]; 3] = [[245.0, 415.0], [1101.6, 550.2], [4148.0, 367.2]];
/// The same of `f32`.
const SPLIT_ENTRY: [[f64; 2]; 3] = [[810.0, 920.0], [3210.0, 1000.0], [8100.0, 1000.0]];
/// The same by warps in place of warpgroups, and of `f32` (there, "`f32` and wide rows by warps").
const MMA_ENTRY: [[f64; 2]; 3] = [[115.0, 890.0], [50.0, 1650.0], [1000.0, 3600.0]];
const MMA_SPLIT_ENTRY: [[f64; 2]; 3] = [[300.0, 2700.0], [1000.0, 4000.0], [2000.0, 8000.0]];
/// The same for a tile and one of its groups.
const TILE: f64 = 2000.0;
const GROUP_OF_TILE: f64 = 2250.0;
/// How many times its part of two thread blocks on a multiprocessor a tile takes by itself.
const ALONE: f64 = 1.5;

/// The kernel that takes the place of this one where scores are held within a soft cap, or lessened by distance.
pub(super) fn modifying(entry: &'static Entry<Tile>) -> &'static Entry<Tile> {
    let scheme = match entry.tile.scheme {
        Scheme::Row { index } => Scheme::ModifiedRow { index },
        Scheme::QueryTile => Scheme::ModifiedQueryTile,
        Scheme::WgmmaTile => Scheme::ModifiedWgmmaTile,
        Scheme::MmaTile => Scheme::ModifiedMmaTile,
        Scheme::BackwardTile { owns_keys } => Scheme::ModifiedBackwardTile { owns_keys },
        Scheme::BackwardMmaTile { owns_keys } => Scheme::ModifiedBackwardMmaTile { owns_keys },
        _ => return entry,
    };
    let tile = Tile { scheme, ..entry.tile };
    entries::attention().iter().find(|other| other.tile == tile).expect("the list has it")
}

/// The fused kernels that can do this problem, the best first; none where the dimension is too large.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    op::choose(problem)
}

#[cfg(test)]
mod tests;
