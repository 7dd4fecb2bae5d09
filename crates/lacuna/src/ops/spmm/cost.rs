//! What a kernel costs on a problem: the heuristic's model.
use lacuna_kernels::spmm::{Scheme, Tile};
use lacuna_kernels::{Arithmetic, Entry, RowMask};

use super::choose::Problem;
use super::model::CostModel;
use super::row_split::RowSplit;
use super::rows::Rows;
use super::tiles::{Ahead, Step};

impl CostModel {
    /// About the time of a kernel on a problem, in cycles of a multiprocessor; with long rows in pieces where that is less.
    pub fn cost(&self, problem: &Problem, entry: &Entry<Tile>) -> f64 {
        match problem.pieces(entry, self) {
            Some((_, cost)) => cost,
            None => self.whole_rows_cost(problem, entry),
        }
    }

    /// The same with all rows whole.
    pub(super) fn whole_rows_cost(&self, problem: &Problem, entry: &Entry<Tile>) -> f64 {
        let cycles = match entry.tile.scheme {
            Scheme::RowSplit { .. } | Scheme::Extremum { .. } | Scheme::Ablation { .. } => {
                self.by_rows(problem, entry).map_or(f64::INFINITY, |kernel| kernel.cost())
            }
            Scheme::MmaTile { slices, arithmetic, .. } => {
                let (constants, wide) = match arithmetic {
                    Arithmetic::Half => (&self.mma_16_bit, 2),
                    _ => (&self.mma_f32, 1),
                };
                let ahead = Ahead::Enough;
                let step = Step { chunks: slices * wide, slices, arithmetic, ahead, blocks: 1 };
                constants.cost(problem, &entry.tile, &step)
            }
            Scheme::WgmmaTile { chunks, part, blocks } => {
                self.wgmma.cost(problem, &entry.tile, &Step::of_halves(chunks, Ahead::Part(part), blocks))
            }
            Scheme::PrepackedTile { arithmetic: Arithmetic::Half, chunks, ahead, .. }
                if !are_rows_for(problem, &entry.tile, chunks, ahead) =>
            {
                f64::INFINITY
            }
            Scheme::PrepackedTile { arithmetic: Arithmetic::Half, chunks, ahead, blocks } => {
                let step = Step::of_halves(chunks, Ahead::Step(ahead), blocks);
                self.prepacked.cost(problem, &entry.tile, &step)
            }
            Scheme::PrepackedTile { arithmetic, chunks, ahead, blocks } => {
                let step = Step { chunks, slices: 1, arithmetic, ahead: Ahead::Step(ahead), blocks };
                self.prepacked_f32.cost(problem, &entry.tile, &step)
            }
            Scheme::Gradient | Scheme::JoinPieces | Scheme::Bitmask => f64::INFINITY,
        };
        self.common.launch + cycles
    }

    /// Cycles in which, by a kernel by rows, the longest row runs on when all others have ended.
    pub(super) fn longest_row_alone(&self, problem: &Problem, entry: &Entry<Tile>) -> f64 {
        self.by_rows(problem, entry).map_or(0.0, |kernel| kernel.longest_row_alone())
    }

    /// A kernel by rows on a problem.
    fn by_rows<'a>(&'a self, problem: &'a Problem, entry: &'a Entry<Tile>) -> Option<RowSplit<'a>> {
        let (Scheme::RowSplit { lanes, split, .. }
        | Scheme::Extremum { lanes, split, .. }
        | Scheme::Ablation { lanes, split, .. }) = entry.tile.scheme
        else {
            return None;
        };
        Some(RowSplit { model: self, problem, entry, lanes, split, rows: Rows::of(problem) })
    }
}

/// Rows of the tallest tiles of prepacked 16-bit values.
const TALLEST: u32 = 192;

/// Whether the tallest tiles are for a problem: where they divide A's rows, as tiles of a power of two do not, and where a step of
/// average rows is loaded ahead whole. Few producers fill much, and wait for what comes late.
fn are_rows_for(problem: &Problem, tile: &Tile, chunks: u32, ahead: u32) -> bool {
    let elements = f64::from(tile.block_rows * chunks * 2 * RowMask::COLUMNS);
    let nonzeros = elements * mean_length(problem) / problem.cols.max(1) as f64;
    tile.block_rows < TALLEST || problem.rows.is_multiple_of(TALLEST as usize) && nonzeros <= f64::from(ahead)
}

/// Nonzeros of an average row.
pub(super) fn mean_length(problem: &Problem) -> f64 {
    problem.nnz as f64 / problem.rows.max(1) as f64
}
