//! Which SpMM kernel suits a problem: a pure function, so that it can be tested and printed without a GPU.
use lacuna_kernels::spmm::{QUAD, Scheme, Tile};
use lacuna_kernels::{Entry, IndexType, ValueType, entries};

use crate::{CsrMatrix, Index, Value};

/// What the chooser looks at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Rows of A.
    pub rows: usize,
    /// Columns of A.
    pub cols: usize,
    /// Nonzeros of A.
    pub nnz: usize,
    /// Nonzeros of A's longest row.
    pub longest_row: usize,
    /// Columns of B.
    pub n: usize,
    /// Columns that B's and C's addresses and strides allow to load at once (1, 2, 4 or 8). Whole buffers without gaps
    /// allow what N does.
    pub vector: u32,
    /// Products in one run.
    pub batch: usize,
    /// Type of the values.
    pub value: ValueType,
    /// Type of A's column indices.
    pub index: IndexType,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// The GPU's compute capability, 90 for 9.0.
    pub sm: u32,
}

impl Problem {
    /// The problem of multiplying `a` with `n` columns, whose addresses and strides allow vectors of `vector`.
    pub fn of<T: Value, I: Index>(a: &CsrMatrix<T, I>, n: usize, vector: u32) -> Self {
        Self {
            rows: a.rows(),
            cols: a.cols(),
            nnz: a.nnz(),
            longest_row: a.stats().max_row_length as usize,
            n,
            vector,
            batch: a.batch(),
            value: T::TYPE,
            index: I::TYPE,
            multiprocessors: a.device().info().multiprocessors,
            sm: a.device().info().sm,
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
            let Tile { value, index, vector, .. } = entry.tile;
            let fits = problem.vector.is_multiple_of(vector) && problem.n.is_multiple_of(vector as usize);
            fits && (value, index) == (problem.value, problem.index) && entry.min_sm <= problem.sm
        })
        .map(|entry| Choice {
            entry: entry.name,
            algorithm: algorithm(entry),
            threads: entry.threads,
            shared_bytes: entry.shared_bytes,
            tile: entry.tile,
            cost: cost(problem, entry),
        })
        .collect();
    choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    choices
}

/// The algorithm that an entry is.
fn algorithm(entry: &Entry<Tile>) -> SpmmAlgorithm {
    let Tile { vector, scheme, .. } = entry.tile;
    match scheme {
        Scheme::RowSplit { lanes, split } => {
            SpmmAlgorithm::RowSplit { vector, lanes, split, warps: entry.threads / 32 }
        }
    }
}

/// Cycles from a load of B to the product, a quad, among many warps.
const QUAD_LATENCY: f64 = 540.0;
/// The same for a row so long that its warp runs alone in the end: its loads then overlap.
const LONE_QUAD: f64 = 70.0;
/// Cycles until a row's first nonzero is there.
const ROW_LATENCY: f64 = 145.0;
/// Resident warps of a multiprocessor, for kernels that do not ask for fewer, to have more registers.
const RESIDENT_WARPS: f64 = 32.0;
/// Cycles of the L1 cache a cache line that a request touches, against one for 128 bytes of data.
const LINE_COST: f64 = 0.4;
/// Cycles of a multiprocessor a 128 bytes of A that L2 must bring again for each tile of columns.
const A_TRAFFIC: f64 = 32.0;
/// Cycles of a multiprocessor a 128 bytes of B that L2 brings to rows which cannot share them in L1.
const B_TRAFFIC: f64 = 0.6;

/// The time of a kernel on a problem, in cycles of a multiprocessor up to a common factor: the larger of what keeps the
/// L1 cache busy and what its warps wait, and a part of the smaller. The constants are a fit to measurements on an H200
/// (docs/spmm.md, "The chooser").
fn cost(problem: &Problem, entry: &Entry<Tile>) -> f64 {
    let block_warps = f64::from(entry.threads / 32);
    let resident_warps = match entry.bounds.min_blocks {
        0 => RESIDENT_WARPS.max(block_warps),
        blocks => (f64::from(blocks) * block_warps).min(RESIDENT_WARPS),
    };
    let Scheme::RowSplit { lanes, split } = entry.tile.scheme;
    let kernel = RowSplit { tile: entry.tile, lanes, split };
    let waiting = kernel.waiting(problem, resident_warps);
    let busy = kernel.busy(problem, block_warps, resident_warps);
    busy.max(waiting) + 0.5 * busy.min(waiting)
}

/// Nonzeros of an average row.
fn mean_length(problem: &Problem) -> f64 {
    problem.nnz as f64 / problem.rows.max(1) as f64
}

/// A kernel of the row-split scheme, as the model sees it.
struct RowSplit {
    tile: Tile,
    lanes: u32,
    split: u32,
}

impl RowSplit {
    /// Tiles of columns, those of all products together: a batch is like one B as wide as all of them.
    fn column_tiles(&self, problem: &Problem) -> f64 {
        (problem.n as f64 / f64::from(self.tile.block_columns)).ceil() * problem.batch as f64
    }

    /// Warps that the problem makes.
    fn warps(&self, problem: &Problem) -> f64 {
        let group = f64::from(self.lanes * self.split);
        (problem.rows as f64 * group / 32.0).ceil() * self.column_tiles(problem)
    }

    /// Quads of a team in a row of this length.
    fn team_quads(&self, length: f64) -> f64 {
        length / f64::from(QUAD * self.split)
    }

    /// Cycles in which L1 is busy: loads of B, A again for each tile of columns, and B again for rows apart.
    fn busy(&self, problem: &Problem, block_warps: f64, resident_warps: f64) -> f64 {
        let [vector, lanes] = [self.tile.vector, self.lanes].map(f64::from);
        let sms = f64::from(problem.multiprocessors);
        let warps = self.warps(problem);
        // A lane's part of a row of B, in words of four bytes.
        let words = vector * f64::from(problem.value.bytes()) / 4.0;
        let lines = 32.0 / lanes * (lanes * words / 32.0).max(1.0);
        let request = words.max(LINE_COST * lines);
        let loads = warps * self.team_quads(mean_length(problem)) * f64::from(QUAD) * request;
        let nonzero_bytes = f64::from(problem.value.bytes() + problem.index.bytes());
        let a_lines = problem.nnz as f64 * nonzero_bytes * self.column_tiles(problem) / 128.0;
        let b_lines = self.b_lines(problem, resident_warps / block_warps);
        let traffic = loads + a_lines * A_TRAFFIC + b_lines * B_TRAFFIC;

        let blocks_per_sm = (warps / block_warps).ceil() / sms;
        let imbalance = (blocks_per_sm.ceil() / blocks_per_sm.max(f64::MIN_POSITIVE)).min(4.0);
        traffic / sms * imbalance
    }

    /// Lines of B from L2 to L1. Rows that run on one SM at the same time, over the same columns, share them: those of a
    /// block, and of all resident blocks unless several tiles of columns run at once.
    fn b_lines(&self, problem: &Problem, resident_blocks: f64) -> f64 {
        let [rows, cols] = [problem.rows.max(1), problem.cols.max(1)].map(|count| count as f64);
        let block_rows = f64::from(self.tile.block_rows);
        let column_tiles = self.column_tiles(problem);
        let mixed =
            column_tiles > 1.0 && rows / block_rows < f64::from(problem.multiprocessors) * resident_blocks;
        let sharing = if mixed { block_rows } else { block_rows * resident_blocks }.min(rows);
        let density = (mean_length(problem) / cols).min(1.0);
        let distinct = cols * (1.0 - (1.0 - density).powf(sharing));
        let width = f64::from(self.tile.block_columns).min(problem.n as f64);
        rows / sharing * column_tiles * distinct * width * f64::from(problem.value.bytes()) / 128.0
    }

    /// Cycles that warps wait for chains of loads: one for each wave of resident warps, because rows are about equally
    /// long; or the chain of the longest row.
    fn waiting(&self, problem: &Problem, resident_warps: f64) -> f64 {
        let waves = (self.warps(problem) / (f64::from(problem.multiprocessors) * resident_warps)).ceil();
        let joining = if self.split > 1 { 0.5 } else { 0.0 };
        let average = QUAD_LATENCY * (self.team_quads(mean_length(problem)).ceil() + joining) + ROW_LATENCY;
        let longest = LONE_QUAD * self.team_quads(problem.longest_row as f64).ceil() + ROW_LATENCY;
        (average * waves).max(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(rows: usize, nnz: usize, n: usize, vector: u32) -> Problem {
        let longest_row = nnz.div_ceil(rows.max(1));
        Problem {
            rows,
            cols: 2048,
            nnz,
            longest_row,
            n,
            vector,
            batch: 1,
            value: ValueType::F32,
            index: IndexType::U32,
            multiprocessors: 132,
            sm: 90,
        }
    }

    fn best(rows: usize, nnz: usize, n: usize, vector: u32) -> Choice {
        choose(&problem(rows, nnz, n, vector))[0]
    }

    fn scheme(choice: &Choice) -> (u32, u32) {
        let Scheme::RowSplit { lanes, split } = choice.tile.scheme;
        (lanes, split)
    }

    #[test]
    fn wide_problems_use_whole_warps_a_row() {
        let choice = best(8192, 8192 * 512, 128, 4);
        assert_eq!((choice.tile.vector, scheme(&choice)), (4, (32, 1)));
    }

    #[test]
    fn few_columns_share_a_row_among_teams() {
        let choice = best(1024, 1024 * 102, 1, 1);
        assert_eq!(scheme(&choice), (1, 32));
        let choice = best(1024, 1024 * 307, 32, 4);
        assert!(scheme(&choice).1 >= 4, "{choice:?}");
    }

    #[test]
    fn many_tiles_of_columns_ask_for_large_blocks() {
        let choice = best(512, 512 * 205, 1568, 4);
        assert_eq!((scheme(&choice).0, choice.threads), (32, 1024));
    }

    #[test]
    fn one_long_row_is_shared_among_teams() {
        let even = Problem { cols: 20_000, longest_row: 6, ..problem(20_000, 100_000, 32, 4) };
        let uneven = Problem { longest_row: 6400, ..even };
        assert_eq!(scheme(&choose(&even)[0]).1, 1);
        assert!(scheme(&choose(&uneven)[0]).1 >= 4);
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
    fn each_type_has_kernels_for_every_n() {
        for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
            for index in [IndexType::U32, IndexType::U16] {
                for n in 1..20 {
                    let problem = Problem { value, index, ..problem(64, 640, n, 8) };
                    let choices = choose(&problem);
                    let vectors = |choice: &Choice| n.is_multiple_of(choice.tile.vector as usize);
                    assert!(!choices.is_empty() && choices.iter().all(vectors), "{value} {index} {n}");
                    let types = |choice: &Choice| (choice.tile.value, choice.tile.index) == (value, index);
                    assert!(choices.iter().all(types), "{value} {index} {n}");
                }
            }
        }
    }

    #[test]
    fn halves_take_sixteen_bytes_a_lane() {
        let choice = choose(&Problem { value: ValueType::F16, ..problem(8192, 8192 * 512, 256, 8) })[0];
        assert_eq!(choice.tile.vector, 8);
    }

    #[test]
    fn a_batch_is_more_work() {
        let one = problem(64, 64 * 100, 64, 4);
        let many = Problem { batch: 64, ..one };
        // One small product waits for memory; many fill the GPU and need fewer teams.
        assert!(scheme(&choose(&one)[0]).1 > scheme(&choose(&many)[0]).1);
        assert!(choose(&many)[0].cost > choose(&one)[0].cost);
    }

    #[test]
    fn costs_are_numbers_at_the_limits() {
        for rows in [0, 1, u32::MAX as usize] {
            for nnz in [0, u32::MAX as usize - 5000] {
                for (cols, n) in [(0, 1), (1, (1 << 30) - 1)] {
                    let choices = choose(&Problem { cols, multiprocessors: 1, ..problem(rows, nnz, n, 1) });
                    assert!(choices.iter().all(|choice| choice.cost.is_finite()), "{rows} {nnz} {n}");
                }
            }
        }
    }
}
