//! What a kernel costs on a problem: the heuristic's model.
use lacuna_kernels::spmm::{Scheme, Tile};
use lacuna_kernels::{Arithmetic, Entry};

use super::blocks::{Ahead, Blocks, Step};
use super::choose::Problem;
use super::model::CostModel;
use super::row_split::RowSplit;
use super::rows::Rows;

impl CostModel {
    /// About the time of a kernel on a problem, in cycles of a multiprocessor.
    pub fn cost(&self, problem: &Problem, entry: &Entry<Tile>) -> f64 {
        let cycles = match entry.tile.scheme {
            Scheme::RowSplit { lanes, split, .. } | Scheme::Ablation { lanes, split, .. } => {
                RowSplit { model: self, problem, entry, lanes, split, rows: Rows::of(problem) }.cost()
            }
            Scheme::MmaTile { slices, arithmetic, .. } => {
                let halves = arithmetic == Arithmetic::Half;
                let chunks = slices * if halves { 2 } else { 1 };
                let step = Step { chunks, slices, arithmetic, ahead: Ahead::Enough, blocks: 1 };
                self.of_mma(halves).cost(problem, &entry.tile, &step)
            }
            Scheme::WgmmaTile { chunks, part, blocks } => {
                let ahead = Ahead::Part(part);
                let step =
                    Step { chunks: 2 * chunks, slices: 1, arithmetic: Arithmetic::Half, ahead, blocks };
                self.of_wgmma().cost(problem, &entry.tile, &step)
            }
            // What is prepacked has no pieces of rows that are loaded whether there are nonzeros or not.
            Scheme::PrepackedTile { chunks, ahead, blocks } => {
                let ahead = Ahead::Step(ahead);
                let step =
                    Step { chunks: 2 * chunks, slices: 1, arithmetic: Arithmetic::Half, ahead, blocks };
                self.of_prepacked().cost(problem, &entry.tile, &step)
            }
            Scheme::Bitmask => f64::INFINITY,
        };
        self.common.launch + cycles
    }

    fn of_mma(&self, halves: bool) -> Blocks {
        let of = if halves { &self.mma_16_bit } else { &self.mma_f32 };
        Blocks {
            start: of.start,
            step: of.step,
            product: of.product,
            row: of.row,
            nonzero: of.nonzero,
            b_line: of.b_line,
            not_hidden: of.not_hidden,
            reduction: of.reduction,
            cluster: 0.0,
            prefetch: 0.0,
            late: 0.0,
        }
    }

    fn of_wgmma(&self) -> Blocks {
        Blocks {
            start: self.wgmma.start,
            step: self.wgmma.step,
            product: self.wgmma.product,
            row: self.wgmma.row,
            nonzero: 0.0,
            b_line: self.wgmma.b_line,
            not_hidden: self.wgmma.not_hidden,
            reduction: 0.0,
            cluster: self.wgmma.cluster,
            prefetch: self.wgmma.prefetch,
            late: self.wgmma.late,
        }
    }

    fn of_prepacked(&self) -> Blocks {
        Blocks { row: self.prepacked.row, late: self.prepacked.late, ..self.of_wgmma() }
    }
}

/// Nonzeros of an average row.
pub(super) fn mean_length(problem: &Problem) -> f64 {
    problem.nnz as f64 / problem.rows.max(1) as f64
}
