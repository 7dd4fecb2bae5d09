//! What tile kernels cost.
use lacuna_kernels::spmm::Tile;
use lacuna_kernels::{Arithmetic, RowMask};

use super::choose::Problem;
use super::cost::mean_length;
use super::model::TileConstants;

/// A step along K.
pub(super) struct Step {
    /// Chunks of 32 columns of A.
    pub(super) chunks: u32,
    /// Parts of it, which different warps multiply.
    pub(super) slices: u32,
    /// What is multiplied.
    pub(super) arithmetic: Arithmetic,
    /// What of A is loaded ahead.
    pub(super) ahead: Ahead,
    /// Blocks that share a tile, a part of all steps each.
    pub(super) blocks: u32,
}

impl Step {
    /// One of so many pairs of chunks of 16-bit values, which are multiplied in one piece.
    pub(super) fn of_halves(pairs: u32, ahead: Ahead, blocks: u32) -> Self {
        Self { chunks: 2 * pairs, slices: 1, arithmetic: Arithmetic::Half, ahead, blocks }
    }
}

/// What of a step of A is loaded ahead. The rest comes late.
pub(super) enum Ahead {
    /// All of it, nearly always.
    Enough,
    /// Of a row what one nonzero in so many columns makes.
    Part(u32),
    /// So many nonzeros, of a prepacked matrix.
    Step(u32),
}

/// Values that an average row's pieces of 16 bytes begin early: 16-bit values, any start.
const EARLY: f64 = 3.5;
/// Accumulators of a tile whose exchange in a cluster takes as long as the barriers around it.
const CLUSTER_ACCUMULATORS: f64 = 16_384.0;
/// By how many deviations from the mean the fullest row is that a warp has to wait for.
const FULLEST: f64 = 2.0;

impl TileConstants {
    /// Cycles of such a kernel: each multiprocessor takes its blocks one after the other, and a block its steps; a step
    /// takes what its products or its filling take, and a part of the smaller.
    pub(super) fn cost(&self, problem: &Problem, tile: &Tile, step: &Step) -> f64 {
        let [rows, columns] = [tile.block_rows, tile.block_columns].map(f64::from);
        let [slices, sharing] = [step.slices, step.blocks].map(f64::from);
        let count = |whole: usize, part: f64| (whole as f64 / part).ceil();
        let tiles = count(problem.rows, rows) * count(problem.n, columns) * problem.batch as f64;
        let rounds = (tiles * sharing / f64::from(problem.multiprocessors)).ceil();
        let exchange = self.cluster * (1.0 + rows * columns / CLUSTER_ACCUMULATORS);
        let reduction = self.reduction * (slices - 1.0) + exchange * (sharing - 1.0);
        let chunks = f64::from(step.chunks);
        let step_columns = chunks * f64::from(RowMask::COLUMNS);
        let steps = count(problem.cols, step_columns);

        let products = match step.arithmetic {
            Arithmetic::Half => 0.5,
            Arithmetic::Split => 2.0,
            Arithmetic::Tf32 => 1.0,
            Arithmetic::SplitTf32 => 3.0,
            Arithmetic::SplitBf16 => 1.5,
        };
        let pieces = chunks * (rows / 8.0) * (columns / 16.0) * 4.0;
        let multiplying = self.product * products * pieces;
        let line_bytes = step_columns * columns * f64::from(problem.value.bytes());
        let row_nonzeros = mean_length(problem) / steps.max(1.0);
        let filling = self.row * chunks * rows
            + self.nonzero * rows * row_nonzeros
            + self.b_line * line_bytes / 128.0
            + match step.ahead {
                Ahead::Enough => 0.0,
                Ahead::Part(part) => self.ahead(problem, rows, step_columns, f64::from(part)),
                Ahead::Step(ahead) => self.late * (rows * row_nonzeros - f64::from(ahead)).max(0.0),
            };
        let step = multiplying.max(filling) + self.not_hidden * multiplying.min(filling) + self.step;
        rounds * (self.start + (steps / sharing).ceil() * step + reduction)
    }

    /// Cycles for the part of each row that is loaded ahead, and for what the fullest rows have beyond that.
    fn ahead(&self, problem: &Problem, rows: f64, columns: f64, part: f64) -> f64 {
        let ahead = columns / part;
        let density = (mean_length(problem) / problem.cols.max(1) as f64).min(1.0);
        let fullest = columns * density + FULLEST * (columns * density * (1.0 - density)).sqrt();
        let pieces = rows * ahead * f64::from(problem.value.bytes()) / 16.0;
        self.prefetch * pieces + self.late * (fullest + EARLY - ahead).max(0.0)
    }
}
