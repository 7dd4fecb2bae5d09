//! Which SpMM kernel suits a problem: a pure function, so that it can be tested and printed without a GPU.
use lacuna_kernels::entries;
use lacuna_kernels::spmm::{QUAD, Tile};

use crate::CsrMatrix;

/// What the chooser looks at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Rows of A.
    pub rows: usize,
    /// Nonzeros of A.
    pub nnz: usize,
    /// Nonzeros of A's longest row.
    pub longest_row: usize,
    /// Columns of B.
    pub n: usize,
    /// Columns that B's and C's addresses allow to load at once (1, 2 or 4), as whole buffers allow 4.
    pub vector: u32,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
}

impl Problem {
    /// The problem of multiplying `a` with `n` columns, whose addresses allow vectors of `vector`.
    pub fn of(a: &CsrMatrix, n: usize, vector: u32) -> Self {
        Self {
            rows: a.rows(),
            nnz: a.nnz(),
            longest_row: a.stats().max_row_length as usize,
            n,
            vector,
            multiprocessors: a.device().info().multiprocessors,
        }
    }
}

/// How SpMM is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpmmAlgorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// Groups of lanes take a row each: `lanes` side by side along the columns of B, `vector` columns a lane, and
    /// `split` such teams that share the row's nonzeros; `warps` of 32 lanes in a block.
    RowSplit {
        /// Columns a lane.
        vector: u32,
        /// Lanes side by side.
        lanes: u32,
        /// Teams a row.
        split: u32,
        /// Warps a block.
        warps: u32,
    },
}

/// A kernel, and how the chooser thinks of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Its entry point.
    pub entry: &'static str,
    /// The algorithm by which it can be asked for.
    pub algorithm: SpmmAlgorithm,
    /// Threads of a block.
    pub threads: u32,
    /// Shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Its tile.
    pub tile: Tile,
    /// The chooser's cost, comparable within one problem only.
    pub cost: f64,
}

/// All kernels that may be used on `problem`, cheapest first. Never empty: one column at a time is always legal.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    let mut choices: Vec<Choice> = entries::spmm()
        .iter()
        .filter(|entry| {
            let vector = entry.tile.vector;
            problem.vector.is_multiple_of(vector) && problem.n.is_multiple_of(vector as usize)
        })
        .map(|entry| Choice {
            entry: entry.name,
            algorithm: SpmmAlgorithm::RowSplit {
                vector: entry.tile.vector,
                lanes: entry.tile.lanes,
                split: entry.tile.split,
                warps: entry.threads / 32,
            },
            threads: entry.threads,
            shared_bytes: entry.shared_bytes,
            tile: entry.tile,
            cost: cost(problem, &entry.tile, f64::from(entry.threads / 32)),
        })
        .collect();
    choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    choices
}

/// Cycles from a load of B to the product, a quad, among many warps.
const QUAD_LATENCY: f64 = 450.0;
/// The same for a row so long that its warp runs alone in the end: its loads then overlap.
const LONE_QUAD: f64 = 60.0;
/// Cycles until a row's first nonzero is there.
const ROW_LATENCY: f64 = 330.0;
/// Warps of a multiprocessor among which these latencies are hidden.
const RESIDENT_WARPS: f64 = 24.0;
/// Cycles of the L1 cache a cache line that a request touches, against one for 128 bytes of data.
const LINE_COST: f64 = 0.5;
/// Cycles of a multiprocessor a 128 bytes of A that L2 must bring again for each tile of columns.
const A_TRAFFIC: f64 = 32.0;

/// The time of a kernel on a problem, in cycles of a multiprocessor up to a common factor: the larger of what keeps the
/// L1 cache busy and what its warps wait, and a part of the smaller. The constants are a fit to measurements on an H200
/// (docs/spmm.md, "The chooser").
fn cost(problem: &Problem, tile: &Tile, block_warps: f64) -> f64 {
    let [vector, lanes, split] = [tile.vector, tile.lanes, tile.split].map(f64::from);
    let rows = problem.rows as f64;
    let sms = f64::from(problem.multiprocessors);
    let column_tiles = (problem.n as f64 / (lanes * vector)).ceil();
    let mean_length = if problem.rows == 0 { 0.0 } else { problem.nnz as f64 / rows };
    let team_quads = |length: f64| length / f64::from(QUAD) / split;

    let warps = (rows * lanes * split / 32.0).ceil() * column_tiles;
    let lines = 32.0 / lanes * (lanes * vector / 32.0).max(1.0);
    let request = vector.max(LINE_COST * lines);
    let a_bytes = problem.nnz as f64 * 8.0 * column_tiles;
    let traffic =
        (warps * team_quads(mean_length) * f64::from(QUAD) * request + a_bytes / 128.0 * A_TRAFFIC) / sms;
    let blocks_per_sm = (warps / block_warps).ceil() / sms;
    let imbalance = (blocks_per_sm.ceil() / blocks_per_sm.max(f64::MIN_POSITIVE)).min(4.0);
    let busy = traffic * imbalance;

    let rounds = (warps / (sms * RESIDENT_WARPS)).max(1.0);
    let joining = if split > 1.0 { 0.5 } else { 0.0 };
    let average_row = QUAD_LATENCY * (team_quads(mean_length).ceil() + joining) + ROW_LATENCY;
    let longest_row = LONE_QUAD * team_quads(problem.longest_row as f64).ceil() + ROW_LATENCY;
    let waiting = (average_row * rounds).max(longest_row);
    busy.max(waiting) + 0.3 * busy.min(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(rows: usize, nnz: usize, n: usize, vector: u32) -> Problem {
        Problem { rows, nnz, longest_row: nnz.div_ceil(rows.max(1)), n, vector, multiprocessors: 132 }
    }

    fn best(rows: usize, nnz: usize, n: usize, vector: u32) -> Choice {
        choose(&problem(rows, nnz, n, vector))[0]
    }

    #[test]
    fn wide_problems_use_whole_warps_a_row() {
        let choice = best(8192, 8192 * 512, 128, 4);
        assert_eq!((choice.tile.vector, choice.tile.lanes, choice.tile.split), (4, 32, 1));
    }

    #[test]
    fn few_columns_share_a_row_among_teams() {
        let choice = best(1024, 1024 * 102, 1, 1);
        assert_eq!((choice.tile.lanes, choice.tile.split), (1, 32));
        let choice = best(1024, 1024 * 307, 32, 4);
        assert!(choice.tile.split >= 4, "{choice:?}");
    }

    #[test]
    fn one_long_row_is_shared_among_teams() {
        let even = Problem { longest_row: 6, ..problem(20_000, 100_000, 32, 4) };
        let uneven = Problem { longest_row: 6400, ..even };
        assert_eq!(choose(&even)[0].tile.split, 1);
        assert!(choose(&uneven)[0].tile.split >= 4);
    }

    #[test]
    fn only_legal_vectors_are_offered() {
        for vector in [1, 2, 4] {
            let choices = choose(&problem(64, 640, 64, vector));
            assert!(choices.iter().all(|choice| choice.tile.vector <= vector));
            assert!(choices.iter().any(|choice| choice.tile.vector == vector));
        }
    }

    #[test]
    fn costs_are_numbers_at_the_limits() {
        for rows in [0, 1, u32::MAX as usize] {
            for nnz in [0, u32::MAX as usize - 5000] {
                for n in [1, (1 << 30) - 1] {
                    let choices = choose(&Problem { multiprocessors: 1, ..problem(rows, nnz, n, 1) });
                    assert!(choices.iter().all(|choice| choice.cost.is_finite()), "{rows} {nnz} {n}");
                }
            }
        }
    }
}
