//! Which kernel suits a problem: a pure function, so that it can be tested and printed without a GPU.
use lacuna_kernels::attention::{BLOCK, MAX_KEYS, QUERIES, Scheme, Tile};
use lacuna_kernels::{Entry, IndexType, ValueType, entries};

use super::{BlockCounts, OPERATION, TilingCounts};
use crate::op::{self, MAX_GRID_YZ};

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
    /// The mask's blocks of 64 queries × 64 keys. `None` where they were not counted; then [`WgmmaTile`] is no choice of the
    /// library's.
    ///
    /// [`WgmmaTile`]: Algorithm::WgmmaTile
    pub blocks: Option<BlockCounts>,
    /// Whether the scale is above 0, or there is a soft cap.
    pub has_positive_scale: bool,
    /// Elements of a row of Q, K, V and O.
    pub dim: usize,
    /// Elements that the dimension, strides and addresses allow to load at once (1, 2, 4 or 8).
    pub vector: u32,
    /// Type of the values.
    pub value: ValueType,
    /// Type of the mask's column indices; `None` where the mask is given as blocks alone, which only [`WgmmaTile`] takes.
    ///
    /// [`WgmmaTile`]: Algorithm::WgmmaTile
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
    /// On tensor cores, by warpgroups (compute capability 9.0, `f16` and `bf16`): blocks of 64 queries × 64 keys in which any
    /// query sees a key are multiplied whole. Weights are rounded to the type of the operands. For masks whose blocks are full, or
    /// not too empty; up to 256 elements in vectors of eight, and scales above 0, or a soft cap. The blocks are found and listed when the first plan of
    /// a pattern wants them.
    WgmmaTile {
        /// Queries of a thread block: 64 for each warpgroup.
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
            Scheme::WgmmaTile => {
                let tiles = self.queries.div_ceil(block_rows as usize);
                let fits = self.has_positive_scale && tiles <= MAX_GRID_YZ && entry.runs_on(self.sm);
                (fits, Algorithm::WgmmaTile { queries: block_rows, dimension })
            }
            Scheme::BackwardTile { .. }
            | Scheme::MaskBlocks { .. }
            | Scheme::TransposeBitmaps
            | Scheme::ModifiedRow { .. }
            | Scheme::ModifiedQueryTile
            | Scheme::ModifiedWgmmaTile
            | Scheme::ModifiedBackwardTile { .. } => {
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
            Scheme::WgmmaTile => {
                self.blocks.map_or(f64::INFINITY, |blocks| self.cost_of_blocks(&blocks, tile))
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
            | Scheme::MaskBlocks { .. }
            | Scheme::TransposeBitmaps
            | Scheme::ModifiedRow { .. }
            | Scheme::ModifiedQueryTile
            | Scheme::ModifiedWgmmaTile
            | Scheme::ModifiedBackwardTile { .. } => f64::INFINITY,
        }
    }
}

impl Problem {
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
        keys.max(1.0) * (l1.max(issued / 4.0) + 1.0) + waiting
    }

    /// Of blocks. An entry takes its copies and what its groups multiply, seen or not; where heads are few, the longest tile is
    /// waited for.
    fn cost_of_blocks(&self, blocks: &BlockCounts, tile: &Tile) -> f64 {
        let (groups, dim) = (f64::from(tile.block_rows / BLOCK), f64::from(tile.dimension));
        let TilingCounts { tiles, entries, longest } = blocks.tilings[groups as usize - 1];
        let entry = ENTRY[0] + ENTRY[1] * dim + groups * (GROUP_OF_ENTRY[0] + GROUP_OF_ENTRY[1] * dim);
        let tile_cycles = TILE + GROUP_OF_TILE * groups;
        let alone = if groups > 1.0 || dim > 64.0 { 1.0 } else { ALONE };
        let all = entries as f64 * entry + tiles as f64 * tile_cycles;
        let longest = alone * (longest as f64 * entry + tile_cycles);
        all.max(longest * f64::from(self.multiprocessors) / self.heads.max(1) as f64)
    }
}

/// Cycles of a warp for 32 keys, from their columns to their sums. This and the following are set by hand from times on an H100, at 1.755 GHz
/// (docs/log/attention.md, "Blocks").
const BATCH_CYCLES: f64 = 2800.0;
/// Cycles of a multiprocessor for an entry, of one of its groups, both also for each element of a row; and for a tile and one of
/// its groups.
const ENTRY: [f64; 2] = [180.0, 7.2];
const GROUP_OF_ENTRY: [f64; 2] = [60.0, 3.83];
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
        Scheme::BackwardTile { owns_keys } => Scheme::ModifiedBackwardTile { owns_keys },
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
mod tests {
    use super::*;

    fn problem(dim: usize, vector: u32, value: ValueType, index: IndexType) -> Problem {
        Problem { vector, ..Problem::new([100, 100], 1000, dim, value, index) }
    }

    #[test]
    fn the_smallest_that_holds_a_row_is_chosen() {
        let best = |dim, vector, value| choose(&problem(dim, vector, value, IndexType::U32))[0].entry.name;
        for (dim, entry) in [(32, "v4_l8_c1"), (40, "v4_l8_c2"), (64, "v4_l8_c2"), (128, "v4_l16_c2")] {
            assert_eq!(best(dim, 4, ValueType::F32), format!("attention_f32_row_{entry}"));
        }
        for (dim, entry) in [(32, "v8_l4_c1"), (64, "v8_l8_c1"), (128, "v8_l8_c2"), (256, "v8_l16_c2")] {
            assert_eq!(best(dim, 8, ValueType::Bf16), format!("attention_bf16_row_{entry}"));
        }
    }

    fn is_by_query_tiles(problem: &Problem) -> bool {
        choose(problem)[0].entry.tile.scheme == Scheme::QueryTile
    }

    #[test]
    fn query_tiles_are_chosen_where_they_share_keys() {
        let best = |query_tile_entries| {
            let problem = Problem { query_tile_entries, ..problem(64, 4, ValueType::F32, IndexType::U32) };
            is_by_query_tiles(&problem)
        };
        assert_eq!(
            [None, Some(1000), Some(980), Some(900), Some(260)].map(best),
            [false, false, false, true, true]
        );
        let narrow =
            Problem { query_tile_entries: Some(570), ..problem(48, 4, ValueType::F32, IndexType::U32) };
        assert!(!is_by_query_tiles(&narrow), "rows that do not fill the lanes");
    }

    /// Causal masks of so many tokens, 8 heads of 64: tiles that took least on an H100.
    #[test]
    fn many_tokens_take_large_tiles() {
        let best = |tokens: usize| {
            let strips = tokens / 64;
            let tiling = |groups: usize| {
                let tiles = strips.div_ceil(groups);
                TilingCounts {
                    tiles,
                    entries: (1..=tiles).map(|tile| (tile * groups).min(strips)).sum(),
                    longest: strips,
                }
            };
            let blocks = BlockCounts { tilings: [1, 2, 3].map(tiling) };
            let nnz = tokens * tokens / 2;
            let problem = Problem::new([tokens, tokens], nnz, 64, ValueType::F16, IndexType::U32);
            choose(&Problem { heads: 8, blocks: Some(blocks), ..problem })[0].entry.name
        };
        assert_eq!([1024, 2048].map(best), ["attention_f16_wgmma_l32_g1"; 2]);
        assert_eq!([4096, 12_288].map(best), ["attention_f16_wgmma_l32_g3"; 2]);
    }

    /// About the mask of SC 2020 of 1,024 tokens: 15 us by blocks, 45 by query tiles on an H100.
    #[test]
    fn few_tokens_take_blocks_too() {
        let tiling = |groups: usize| {
            let tiles = 16usize.div_ceil(groups);
            TilingCounts { tiles, entries: 16 * (tiles + 1) / 2, longest: 16 }
        };
        let blocks = BlockCounts { tilings: [1, 2, 3].map(tiling) };
        let problem = Problem::new([1024, 1024], 244_289, 64, ValueType::F16, IndexType::U32);
        let problem = Problem { heads: 8, blocks: Some(blocks), query_tile_entries: Some(71_000), ..problem };
        assert_eq!(choose(&problem)[0].entry.name, "attention_f16_wgmma_l32_g1");
    }

    #[test]
    fn blocks_of_few_keys_are_taken_key_by_key() {
        let best = |keys_of_a_block: usize| {
            let tiling = TilingCounts { tiles: 64, entries: 64 * 64, longest: 64 };
            let blocks = BlockCounts { tilings: [tiling; 3] };
            let nnz = keys_of_a_block * tiling.entries;
            let problem = Problem::new([4096, 4096], nnz, 64, ValueType::Bf16, IndexType::U32);
            choose(&Problem { heads: 64, blocks: Some(blocks), ..problem })[0].entry.tile.scheme
        };
        assert!(matches!(best(70), Scheme::Row { .. }));
        assert_eq!(best(500), Scheme::WgmmaTile);
    }

    #[test]
    fn blocks_take_compute_capability_9_and_scales_above_0() {
        let able = Problem::new([64, 64], 100, 64, ValueType::F16, IndexType::U32);
        let is_legal = |problem: &Problem| {
            choose(problem).iter().any(|choice| choice.entry.tile.scheme == Scheme::WgmmaTile)
        };
        assert!(is_legal(&able));
        for other in [
            Problem { sm: 100, ..able },
            Problem { has_positive_scale: false, ..able },
            Problem { vector: 4, ..able },
            Problem { dim: 264, ..able },
            Problem { value: ValueType::F32, ..able },
            // More tiles of 192 than a grid has rows.
            Problem { queries: 192 * 65_535 + 1, ..able },
        ] {
            assert!(!is_legal(&other), "{other:?}");
        }
    }

    #[test]
    fn each_kernel_has_one_that_modifies_scores() {
        for entry in entries::attention() {
            let has_one = matches!(
                entry.tile.scheme,
                Scheme::Row { .. } | Scheme::QueryTile | Scheme::WgmmaTile | Scheme::BackwardTile { .. }
            );
            let suffix = if has_one { "_modified" } else { "" };
            assert_eq!(modifying(entry).name, format!("{}{suffix}", entry.name));
        }
    }

    #[test]
    fn blocks_alone_take_no_other_kernel() {
        let of_pattern = Problem::new([64, 64], 100, 64, ValueType::F16, IndexType::U32);
        let legal = choose(&Problem { index: None, ..of_pattern });
        assert!(!legal.is_empty());
        assert!(legal.iter().all(|choice| choice.entry.tile.scheme == Scheme::WgmmaTile));
    }

    #[test]
    fn every_dimension_has_a_kernel_at_every_alignment() {
        for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
            for index in [IndexType::U32, IndexType::U16] {
                for (dim, vector) in (1..=256).flat_map(|dim| [1, 2, 4, 8].map(|vector| (dim, vector))) {
                    let legal = choose(&problem(dim, vector, value, index));
                    assert!(!legal.is_empty(), "{value} {index} {dim} {vector}");
                    for choice in legal {
                        assert!(dim.is_multiple_of(choice.entry.tile.vector as usize));
                        assert!(choice.entry.tile.vector <= vector);
                    }
                }
                assert!(choose(&problem(257, 8, value, index)).is_empty());
            }
        }
    }
}
