//! Which kernel suits a problem: a pure function, so that it can be tested and printed without a GPU.
use lacuna_kernels::attention::{MAX_KEYS, QUERIES, Scheme, Tile};
use lacuna_kernels::{Entry, IndexType, ValueType, entries};

use super::OPERATION;
use crate::op;

/// The problem shape: all that the heuristic sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Elements of the mask.
    pub nnz: usize,
    /// Keys.
    pub keys: usize,
    /// Keys that four neighbouring queries see together, summed over the mask: what [`QueryTile`] loads in place of nnz.
    /// `None` where they were not counted; then that is no choice of the library's.
    ///
    /// [`QueryTile`]: Algorithm::QueryTile
    pub query_tile_entries: Option<usize>,
    /// Elements of a row of Q, K, V and O.
    pub dim: usize,
    /// Elements that the dimension, strides and addresses allow to load at once (1, 2, 4 or 8).
    pub vector: u32,
    /// Type of the values.
    pub value: ValueType,
    /// Type of the mask's column indices.
    pub index: IndexType,
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
}

/// A fused kernel, and what the heuristic thinks of it.
pub type Choice = op::Choice<Algorithm, Tile>;

/// Whether a kernel reads the mask as query tiles.
pub(super) fn is_by_query_tiles(tile: &Tile) -> bool {
    tile.scheme == Scheme::QueryTile
}

impl op::Problem for Problem {
    const OPERATION: &'static str = OPERATION;
    type Algorithm = Algorithm;
    type Tile = Tile;
    const ENTRIES: fn() -> &'static [Entry<Tile>] = entries::attention;

    fn algorithms(&self, entry: &'static Entry<Tile>) -> impl IntoIterator<Item = Algorithm> {
        let Tile { value, vector, lanes, dimension, scheme, .. } = entry.tile;
        let (mask_fits, algorithm) = match scheme {
            Scheme::Row { index } => (index == self.index, Algorithm::Row { vector, lanes, dimension }),
            Scheme::QueryTile => {
                (self.keys <= MAX_KEYS as usize, Algorithm::QueryTile { vector, lanes, dimension })
            }
        };
        let fits = value == self.value
            && vector <= self.vector
            && self.dim.is_multiple_of(vector as usize)
            && self.dim <= dimension as usize;
        (mask_fits && fits).then_some(algorithm)
    }

    /// Cycles of an SM for all keys of a head. A key costs what the slower of two takes: L1, which gives 128 bytes a cycle,
    /// and the four schedulers, which issue a warp's instruction each.
    fn cost(&self, entry: &'static Entry<Tile>, _algorithm: Algorithm) -> f64 {
        const WARP: f64 = 32.0;
        let tile = &entry.tile;
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
        let keys = match tile.scheme {
            Scheme::Row { .. } => self.nnz as f64,
            // Rows that do not fill the lanes are worked out query by query, each from all entries.
            Scheme::QueryTile => {
                let times = if self.dim == tile.dimension as usize { 1.0 } else { QUERIES as f64 };
                self.query_tile_entries.map_or(f64::INFINITY, |entries| times * entries as f64)
            }
        };
        keys.max(1.0) * (l1.max(issued / 4.0) + 1.0)
    }
}

/// The fused kernels that can do this problem, the best first; none where the dimension is too large.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    op::choose(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(dim: usize, vector: u32, value: ValueType, index: IndexType) -> Problem {
        Problem { nnz: 1000, keys: 100, query_tile_entries: None, dim, vector, value, index }
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

    #[test]
    fn query_tiles_are_chosen_where_they_share_keys() {
        let best = |query_tile_entries| {
            let problem = Problem { query_tile_entries, ..problem(64, 4, ValueType::F32, IndexType::U32) };
            is_by_query_tiles(&choose(&problem)[0].entry.tile)
        };
        assert_eq!(
            [None, Some(1000), Some(980), Some(900), Some(260)].map(best),
            [false, false, false, true, true]
        );
        let narrow =
            Problem { query_tile_entries: Some(570), ..problem(48, 4, ValueType::F32, IndexType::U32) };
        assert!(!is_by_query_tiles(&choose(&narrow)[0].entry.tile), "rows that do not fill the lanes");
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
