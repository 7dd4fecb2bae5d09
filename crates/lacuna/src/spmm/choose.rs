//! Which SpMM kernel suits a problem: a pure function, so that it can be tested and printed without a GPU.
use lacuna_kernels::Arithmetic;
use lacuna_kernels::spmm::{Idea, Scheme, Tile};
use lacuna_kernels::{Bounds, Entry, IndexType, ValueType, entries};

use super::cost::CostModel;
use super::grid::MAX_DEALT_ROWS;
use super::options::{LONG_ROWS, Precision};
use crate::{CsrMatrix, Index, Value, masks};

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
    /// How exactly it is to be computed.
    pub precision: Precision,
    /// Whether A is [packed](CsrMatrix::packed), and lies in packs.
    pub packed: bool,
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: u32,
    /// The most bytes of shared memory that a block may have there.
    pub block_shared_bytes: u32,
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
            precision: Precision::Single,
            packed: a.packs().is_some(),
            multiprocessors: a.device().info().multiprocessors,
            block_shared_bytes: a.device().info().block_shared_bytes,
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
    /// As [`RowSplit`](Self::RowSplit), by blocks that stay: as many as fit on the GPU at once, each with a tile of columns
    /// over which it takes row after row. For `f32`.
    Persistent {
        /// Columns a lane.
        vector: u32,
        /// Lanes side by side.
        lanes: u32,
        /// Teams a row.
        split: u32,
        /// Warps a block.
        warps: u32,
    },
    /// As [`Persistent`](Self::Persistent), for rows of very different lengths: teams share long rows only, and take one
    /// short row each.
    Mixed {
        /// Columns a lane.
        vector: u32,
        /// Lanes side by side.
        lanes: u32,
        /// Teams a long row.
        split: u32,
        /// Warps a block.
        warps: u32,
    },
    /// Blocks take a tile of C each, on tensor cores; zeros of A are multiplied, too. From compute capability 8.0 on.
    Tiles {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
        /// Parts of a step along K, which different warps multiply.
        slices: u32,
    },
    /// As [`Tiles`](Self::Tiles), for 16-bit values, by warpgroups: groups of four warps, whose products read shared memory
    /// by themselves and run on their own. On compute capability 9.0 only.
    Groups {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
        /// Of each step of a row is loaded ahead what one nonzero in so many columns makes; what it has beyond that comes late.
        part: u32,
        /// Blocks that share a tile, a part of K each: for few tiles.
        blocks: u32,
    },
    /// As [`Groups`](Self::Groups), for a [packed](CsrMatrix::packed) matrix.
    Packed {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
        /// Blocks that share a tile, a part of K each: for few tiles.
        blocks: u32,
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
    /// The threads and blocks of a multiprocessor that it was compiled for.
    pub bounds: Bounds,
    /// Its tile.
    pub tile: Tile,
    /// The chooser's cost, comparable within one problem only.
    pub cost: f64,
}

impl Choice {
    /// Whether it reads the pattern as masks.
    pub(super) fn is_by_tiles(&self) -> bool {
        self.tile.scheme.arithmetic().is_some()
    }

    /// Whether it reads A in packs.
    pub(super) fn is_packed(&self) -> bool {
        matches!(self.tile.scheme, Scheme::Packed { .. })
    }

    /// Whether the library may choose it.
    fn is_offered(&self) -> bool {
        !matches!(self.tile.scheme, Scheme::Ablation { .. })
    }

    /// The most bytes of B that it can address.
    pub(super) fn b_bytes_limit(&self) -> u64 {
        match self.tile.scheme {
            Scheme::Ablation { idea: Idea::IndexPreScaling, .. } => u32::MAX.into(),
            _ => u64::MAX,
        }
    }
}

/// All kernels that may be used on `problem`, cheapest first. Never empty: one column at a time is always legal.
pub fn choose(problem: &Problem) -> Vec<Choice> {
    choose_by(problem, &CostModel::of(problem.value))
}

/// As [`choose`], by a model with other constants: for fitting them to measurements.
pub fn choose_by(problem: &Problem, model: &CostModel) -> Vec<Choice> {
    let mut choices: Vec<Choice> = able(problem, model).filter(Choice::is_offered).collect();
    choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    choices
}

/// The kernel that is this algorithm, where it may be used on `problem`; for [`SpmmAlgorithm::Auto`] the cheapest. Kernels
/// for measurements are found here alone.
pub(super) fn find(problem: &Problem, wanted: SpmmAlgorithm) -> Option<Choice> {
    match wanted {
        SpmmAlgorithm::Auto => choose(problem).into_iter().next(),
        _ => able(problem, &CostModel::of(problem.value)).find(|choice| choice.algorithm == wanted),
    }
}

/// All kernels that can do `problem`.
fn able(problem: &Problem, model: &CostModel) -> impl Iterator<Item = Choice> {
    let can = |entry: &&Entry<Tile>| {
        let Tile { value, vector, .. } = entry.tile;
        let fits = problem.vector.is_multiple_of(vector) && problem.n.is_multiple_of(vector as usize);
        let runs = entry.runs_on(problem.sm) && entry.shared_bytes <= problem.block_shared_bytes;
        fits && runs && value == problem.value && is_meant(problem, &entry.tile)
    };
    let choice = |entry: &Entry<Tile>| {
        let choice = Choice {
            entry: entry.name,
            algorithm: algorithm(entry),
            threads: entry.threads,
            shared_bytes: entry.shared_bytes,
            bounds: entry.bounds,
            tile: entry.tile,
            cost: f64::INFINITY,
        };
        Choice { cost: model.cost(problem, &choice), ..choice }
    };
    entries::spmm().iter().filter(can).map(choice)
}

/// Whether a kernel's scheme is for this problem.
fn is_meant(problem: &Problem, tile: &Tile) -> bool {
    match tile.scheme {
        Scheme::RowSplit { stage, persistent, .. } => {
            let counted = !persistent || problem.rows <= MAX_DEALT_ROWS;
            counted && tile.index == problem.index && stage == stage_of(problem)
        }
        // Offsets into B want 32 bits, whatever K is.
        Scheme::Ablation { stage, .. } => {
            tile.index == problem.index && (stage == IndexType::U32 || stage == stage_of(problem))
        }
        Scheme::Groups { .. } => has_masks(problem) && problem.precision != Precision::Fma,
        Scheme::Packed { .. } => problem.packed && has_masks(problem) && problem.precision != Precision::Fma,
        Scheme::Tiles { arithmetic, .. } => {
            let exact_enough = match (arithmetic, problem.precision) {
                (_, Precision::Fma) | (Arithmetic::Tf32, Precision::Single) => false,
                (Arithmetic::Split, Precision::Single) => {
                    problem.nnz >= LONG_ROWS.saturating_mul(problem.rows)
                }
                (Arithmetic::Split, Precision::Tf32) => false,
                (Arithmetic::Tf32, Precision::Tf32) | (Arithmetic::Half, _) => true,
            };
            exact_enough && has_masks(problem)
        }
        Scheme::Masks => false,
    }
}

/// What kernels by rows stage columns as: in 16 bits where K allows, which is faster. So each algorithm is one kernel.
fn stage_of(problem: &Problem) -> IndexType {
    if problem.cols <= IndexType::U16.max_columns() as usize { IndexType::U16 } else { IndexType::U32 }
}

/// Whether A's pattern may be given as masks.
fn has_masks(problem: &Problem) -> bool {
    let nonzero_bytes = problem.value.bytes() + problem.index.bytes();
    masks::bytes(problem.rows, problem.cols, problem.nnz, nonzero_bytes).is_some()
}

/// The algorithm that an entry is.
fn algorithm(entry: &Entry<Tile>) -> SpmmAlgorithm {
    let Tile { vector, block_rows, block_columns, scheme, .. } = entry.tile;
    let warps = entry.threads / 32;
    match scheme {
        Scheme::RowSplit { lanes, split, persistent: false, .. } => {
            SpmmAlgorithm::RowSplit { vector, lanes, split, warps }
        }
        Scheme::RowSplit { lanes, split, mixed: true, .. } => {
            SpmmAlgorithm::Mixed { vector, lanes, split, warps }
        }
        Scheme::RowSplit { lanes, split, persistent: true, .. } => {
            SpmmAlgorithm::Persistent { vector, lanes, split, warps }
        }
        Scheme::Tiles { slices, .. } => {
            SpmmAlgorithm::Tiles { rows: block_rows, columns: block_columns, slices }
        }
        Scheme::Groups { part, blocks, .. } => {
            SpmmAlgorithm::Groups { rows: block_rows, columns: block_columns, part, blocks }
        }
        Scheme::Packed { blocks, .. } => {
            SpmmAlgorithm::Packed { rows: block_rows, columns: block_columns, blocks }
        }
        Scheme::Ablation { idea, lanes, split, .. } => {
            SpmmAlgorithm::Ablation { idea, vector, lanes, split, warps }
        }
        Scheme::Masks => SpmmAlgorithm::Auto,
    }
}

#[cfg(test)]
mod tests;
