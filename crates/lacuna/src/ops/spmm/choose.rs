//! Which SpMM kernel suits a problem: a pure function, so that it can be tested and printed without a GPU.
use lacuna_gpu::WARP;
use lacuna_kernels::spmm::{Idea, Scheme, Tile};
use lacuna_kernels::{Entry, IndexType, ValueType, entries};

use super::bitmask;
use super::grid::MAX_PERSISTENT_ROWS;
use super::model::CostModel;
use super::options::Precision;
use super::{OPERATION, Reduce};
use crate::op;
use crate::pattern::RowLengths;
use crate::{CsrMatrix, DeviceInfo, Index, Value};

/// The problem shape: all that the heuristic sees.
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
    /// How long A's rows are: how many are longer than each power of two.
    pub lengths: RowLengths,
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
    /// How exactly it is to be computed.
    pub precision: Precision,
    /// What becomes of a row's products.
    pub reduce: Reduce,
    /// How long a piece of a row may be, if that is asked for: [`Options::longest_piece`](super::Options::longest_piece).
    pub longest_piece: Option<usize>,
    /// Whether A is [prepacked](CsrMatrix::prepacked).
    pub prepacked: bool,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// The most bytes of shared memory that a block may have there.
    pub block_shared_bytes: u32,
    /// The GPU's compute capability, 90 for 9.0.
    pub sm: u32,
}

impl Problem {
    /// One product of `f32` on an H200, with rows of A that are all about as long.
    pub fn new(rows: usize, cols: usize, nnz: usize, n: usize) -> Self {
        Self {
            rows,
            cols,
            nnz,
            longest_row: nnz.div_ceil(rows.max(1)),
            lengths: RowLengths::even(rows, nnz),
            n,
            vector: 8,
            batch: 1,
            value: ValueType::F32,
            index: IndexType::U32,
            precision: Precision::Single,
            reduce: Reduce::Sum,
            longest_piece: None,
            prepacked: false,
            multiprocessors: 132,
            block_shared_bytes: 227 * 1024,
            sm: 90,
        }
    }

    /// The problem of multiplying `a` with `n` columns, whose addresses and strides allow vectors of `vector`.
    pub fn of<T: Value, I: Index>(a: &CsrMatrix<T, I>, n: usize, vector: u32) -> Self {
        let DeviceInfo { multiprocessors, block_shared_bytes, sm, .. } = *a.device().info();
        Self {
            longest_row: a.stats().max_row_length as usize,
            lengths: *a.row_lengths(),
            vector,
            batch: a.batch(),
            value: T::TYPE,
            index: I::TYPE,
            prepacked: a.is_prepacked(),
            multiprocessors,
            block_shared_bytes,
            sm,
            ..Self::new(a.rows(), a.cols(), a.nnz(), n)
        }
    }
}

/// How SpMM is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// The library chooses.
    #[default]
    Auto,
    /// Groups of lanes take a row each: `lanes` side by side along the columns of B, `vector` columns a lane, and
    /// `split` such subwarps that share the row's nonzeros; `warps` of 32 lanes in a block. The only one for the greatest and the
    /// least product.
    RowSplit {
        /// Columns a lane.
        vector: u32,
        /// Lanes side by side.
        lanes: u32,
        /// Subwarps a row.
        split: u32,
        /// Warps a block.
        warps: u32,
    },
    /// As [`RowSplit`](Self::RowSplit), by persistent blocks: as many as fit on the GPU at once, each with a tile of columns
    /// over which it takes row after row. For `f32`.
    Persistent {
        /// Columns a lane.
        vector: u32,
        /// Lanes side by side.
        lanes: u32,
        /// Subwarps a row.
        split: u32,
        /// Warps a block.
        warps: u32,
    },
    /// As [`Persistent`](Self::Persistent), for rows of very different lengths: subwarps share long rows only, and take one
    /// short row each. For all types.
    Hybrid {
        /// Columns a lane.
        vector: u32,
        /// Lanes side by side.
        lanes: u32,
        /// Subwarps a long row.
        split: u32,
        /// Warps a block.
        warps: u32,
    },
    /// Blocks take a tile of C each, on tensor cores; zeros of A are multiplied, too. From compute capability 8.0 on.
    MmaTile {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
        /// Parts of a step along K, which different warps multiply.
        slices: u32,
    },
    /// As [`MmaTile`](Self::MmaTile), for 16-bit values, by warpgroups: groups of four warps, whose products read shared memory
    /// by themselves and run on their own. On compute capability 9.0 only.
    WgmmaTile {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
        /// Of each step of a row, a prefetch for one nonzero in so many columns; nonzeros beyond that are loaded late.
        columns_per_prefetch: u32,
        /// Thread blocks of a cluster, which share a tile and split K: for few tiles.
        cluster: u32,
    },
    /// As [`WgmmaTile`](Self::WgmmaTile), for a [prepacked](CsrMatrix::prepacked) matrix.
    PrepackedTile {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
        /// Thread blocks of a cluster, which share a tile and split K: for few tiles.
        cluster: u32,
    },
    /// As [`RowSplit`](Self::RowSplit), but for one idea: for measuring what that brings. There are few such kernels, and
    /// the library never chooses one.
    Ablation {
        /// The idea in which it differs.
        idea: Idea,
        /// Columns a lane.
        vector: u32,
        /// Lanes side by side.
        lanes: u32,
        /// Subwarps a row.
        split: u32,
        /// Warps a block.
        warps: u32,
    },
}

/// A kernel, and what the heuristic thinks of it.
pub type Choice = op::Choice<Algorithm, Tile>;

/// Whether a kernel reads the pattern as bitmasks.
pub(super) fn is_by_tiles(tile: &Tile) -> bool {
    tile.scheme.arithmetic().is_some()
}

/// Whether it reads prepacked weights.
pub(super) fn is_prepacked(tile: &Tile) -> bool {
    matches!(tile.scheme, Scheme::PrepackedTile { .. })
}

/// The most bytes of B that it can address.
pub(super) fn b_bytes_limit(tile: &Tile) -> u64 {
    match tile.scheme {
        Scheme::Ablation { idea: Idea::IndexPreScaling, .. } => u32::MAX.into(),
        _ => u64::MAX,
    }
}

impl op::Problem for Problem {
    const OPERATION: &'static str = OPERATION;
    type Algorithm = Algorithm;
    type Tile = Tile;
    const ENTRIES: fn() -> &'static [Entry<Tile>] = entries::spmm;

    fn algorithms(&self, entry: &'static Entry<Tile>) -> impl IntoIterator<Item = Algorithm> {
        let Tile { value, vector, .. } = entry.tile;
        let fits = self.vector.is_multiple_of(vector) && self.n.is_multiple_of(vector as usize);
        let runs = entry.runs_on(self.sm) && entry.shared_bytes <= self.block_shared_bytes;
        let is_legal = fits && runs && value == self.value && is_meant(self, &entry.tile);
        is_legal.then(|| algorithm(entry))
    }

    fn cost(&self, entry: &'static Entry<Tile>, _algorithm: Algorithm) -> f64 {
        CostModel::hopper().cost(self, entry)
    }

    fn is_offered(algorithm: Algorithm) -> bool {
        !matches!(algorithm, Algorithm::Ablation { .. })
    }
}

/// All kernels that may be used on `problem`, cheapest first. Never empty: one column at a time is always legal.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    op::choose(problem)
}

/// As [`choose`], by a model with other constants: for fitting them to measurements.
pub fn choose_by(problem: &Problem, model: &CostModel) -> Vec<Choice> {
    let mut choices = choose(problem);
    for choice in &mut choices {
        choice.cost = model.cost(problem, choice.entry);
    }
    choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    choices
}

/// Whether a kernel's scheme is for this problem.
fn is_meant(problem: &Problem, tile: &Tile) -> bool {
    if problem.reduce.is_extremum() != matches!(tile.scheme, Scheme::Extremum { .. }) {
        return false;
    }
    match tile.scheme {
        // Those that tell winners stand in for these, in a run that wants them.
        Scheme::Extremum { winners, .. } => !winners && tile.index == problem.index,
        Scheme::RowSplit { stage, persistent, .. } => {
            let counted = !persistent || problem.rows <= MAX_PERSISTENT_ROWS;
            let fits = if gives_way(problem, tile) { IndexType::U32 } else { stage_of(problem) };
            counted && tile.index == problem.index && stage == fits
        }
        // Offsets into B want 32 bits, whatever K is.
        Scheme::Ablation { stage, .. } => {
            tile.index == problem.index && (stage == IndexType::U32 || stage == stage_of(problem))
        }
        Scheme::MmaTile { .. } => is_on_tensor_cores(problem, tile),
        Scheme::WgmmaTile { .. } => is_widest(problem, tile) && is_on_tensor_cores(problem, tile),
        Scheme::PrepackedTile { .. } => {
            problem.prepacked && is_widest(problem, tile) && is_on_tensor_cores(problem, tile)
        }
        Scheme::Gradient | Scheme::JoinPieces | Scheme::Bitmask => false,
    }
}

/// Whether no kernel of its shape has wider rows for this problem: those for N in fours stand in for those in eights.
fn is_widest(problem: &Problem, tile: &Tile) -> bool {
    let whole = 16 / tile.value.bytes();
    let is_whole = problem.vector.is_multiple_of(whole) && problem.n.is_multiple_of(whole as usize);
    tile.vector == whole || !is_whole
}

/// Whether a tile's products are exact enough, and the pattern may be given as bitmasks.
fn is_on_tensor_cores(problem: &Problem, tile: &Tile) -> bool {
    let terms = problem.nnz / problem.rows.max(1);
    let allows = |arithmetic| problem.precision.allows(arithmetic, terms);
    tile.scheme.arithmetic().is_some_and(allows) && has_bitmasks(problem)
}

/// What kernels by rows stage columns as: in 16 bits where K allows, which is faster. So each algorithm is one kernel.
fn stage_of(problem: &Problem) -> IndexType {
    if problem.cols <= IndexType::U16.max_columns() as usize { IndexType::U16 } else { IndexType::U32 }
}

/// Whether, where rows may be cut, the kernel of this shape that stages columns in 16 bits leaves its place to that with 32: of
/// `f32` with several whole rows a warp only the latter has a register left for pieces.
fn gives_way(problem: &Problem, tile: &Tile) -> bool {
    let Scheme::RowSplit { lanes, split: 1, persistent: false, .. } = tile.scheme else { return false };
    problem.may_be_cut() && lanes < WARP && tile.value == ValueType::F32 && tile.index == IndexType::U32
}

/// Whether A's pattern may be given as bitmasks.
fn has_bitmasks(problem: &Problem) -> bool {
    bitmask::fit([problem.rows, problem.cols, problem.nnz], problem.value, problem.index)
}

/// The algorithm that an entry is.
fn algorithm(entry: &Entry<Tile>) -> Algorithm {
    let Tile { vector, block_rows, block_columns, scheme, .. } = entry.tile;
    let warps = entry.threads / 32;
    match scheme {
        Scheme::RowSplit { lanes, split, persistent: false, .. } | Scheme::Extremum { lanes, split, .. } => {
            Algorithm::RowSplit { vector, lanes, split, warps }
        }
        Scheme::RowSplit { lanes, split, hybrid: true, .. } => {
            Algorithm::Hybrid { vector, lanes, split, warps }
        }
        Scheme::RowSplit { lanes, split, persistent: true, .. } => {
            Algorithm::Persistent { vector, lanes, split, warps }
        }
        Scheme::MmaTile { slices, .. } => {
            Algorithm::MmaTile { rows: block_rows, columns: block_columns, slices }
        }
        Scheme::WgmmaTile { part, blocks, .. } => Algorithm::WgmmaTile {
            rows: block_rows,
            columns: block_columns,
            columns_per_prefetch: part,
            cluster: blocks,
        },
        Scheme::PrepackedTile { blocks, .. } => {
            Algorithm::PrepackedTile { rows: block_rows, columns: block_columns, cluster: blocks }
        }
        Scheme::Ablation { idea, lanes, split, .. } => {
            Algorithm::Ablation { idea, vector, lanes, split, warps }
        }
        Scheme::Gradient | Scheme::JoinPieces | Scheme::Bitmask => Algorithm::Auto,
    }
}

#[cfg(test)]
pub(super) mod tests;
