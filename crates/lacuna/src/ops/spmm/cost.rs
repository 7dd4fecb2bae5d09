//! What a kernel costs on a problem: the chooser's model, and its constants.
use lacuna_kernels::spmm::{Scheme, Tile};
use lacuna_kernels::{Arithmetic, Entry, ValueType};

use super::blocks::{Ahead, Blocks, Step};
use super::choose::Problem;
use super::grid::is_persistent;
use super::row_split::RowSplit;

/// Defines the model's constants once, and from them the struct, its values in order, and its text.
macro_rules! constants {
    ($($(#[$about:meta])* $name:ident: $h200:expr,)*) => {
        /// The constants of the chooser's cost model. They belong to a GPU; `lacuna-bench fit` finds them from
        /// measurements.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct CostModel {
            $($(#[$about])* pub $name: f64,)*
        }

        impl CostModel {
            /// For `f32`, fitted to an H200 (docs/log/spmm.md, "The cost model").
            pub const H200: Self = Self { $($name: $h200,)* };
            /// The constants' names, in the order of [`values`](Self::values).
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];

            /// The constants, in the order of [`NAMES`](Self::NAMES).
            pub fn values(&self) -> Vec<f64> {
                vec![$(self.$name,)*]
            }

            /// The constants, in the order of [`NAMES`](Self::NAMES), to change.
            pub fn values_mut(&mut self) -> Vec<&mut f64> {
                vec![$(&mut self.$name,)*]
            }
        }
    };
}
constants! {
    /// Cycles from a load of B to the product, a quad, among many warps.
    quad_latency: 867.0,
    /// The same for a row so long that its warp runs alone in the end: its loads then overlap.
    lone_quad: 730.0,
    /// Cycles until a row's first nonzero is there.
    row_latency: 4310.0,
    /// Joining the sums of subwarps, in quads.
    joining: 1.05,
    /// Resident warps of a multiprocessor, for kernels that do not ask for fewer, to have more registers.
    resident_warps: 20.1,
    /// Cycles of the L1 cache a cache line that a request touches, against one for 128 bytes of data.
    line_cost: 0.226,
    /// Cycles of a multiprocessor a 128 bytes of A that L2 must bring again for each tile of columns.
    a_traffic: 150.0,
    /// Cycles of a multiprocessor a 128 bytes of B that L2 brings to rows which cannot share them in L1.
    b_traffic: 9.48,
    /// How much uneven blocks on the multiprocessors can stretch the work, at most.
    most_imbalance: 1.24,
    /// Of persistent kernels, which are there for `f32` alone: cycles of a multiprocessor a 128 bytes of B, which L2 brings once to a block.
    persistent_b_traffic: 6.96,
    /// Cycles of such rows to those of the others.
    persistent_scale: 0.842,
    /// Cycles from a load of B to the product, a quad, in such rows to those in the others: they have fewer registers, and so
    /// fewer loads under way.
    persistent_latency: 1.79,
    /// The same once more where blocks have fewer warps, and each more registers.
    fewer_warps: 0.774,
    /// How much shorter such loads are if all of B is brought into L1 ahead: the part of them that is saved.
    ahead_gain: 0.0305,
    /// Cycles until such a block's first row, and once more where it begins anew with short rows.
    persistent_start: 6340.0,
    /// Cycles from the end of a block to the first load of the next, where a multiprocessor holds one at a time.
    lone_block: 11800.0,
    /// Of tiles: cycles from a block's start to its first product and from its last product to its end.
    tile_start: 2240.0,
    /// Cycles that a step's barriers cost.
    tile_step: 730.0,
    /// Cycles of a multiprocessor a product of 16×8×8 on tensor cores, those in bfloat16 and halves as half of one.
    tile_product: 0.972,
    /// Cycles of a multiprocessor a row of a chunk, 32 columns, that producers clear.
    tile_row: 14.3,
    /// Cycles of a multiprocessor a nonzero that producers put there.
    tile_nonzero: 0.0454,
    /// Cycles of a multiprocessor a 128 bytes of B that producers copy.
    tile_line: 2.66,
    /// Cycles of tiles to those of rows.
    tile_scale: 3.46,
    /// The part of the smaller of multiplying and filling a tile that is not hidden behind the larger.
    tile_not_hidden: 2.27,
    /// Cycles of a tile's end for each slice but one, whose sums are added.
    tile_joining: 140.0,
    /// Of warpgroups, which take 16-bit values only (with `f32` these constants count for nothing): cycles from a block's start to its first product and from its last product to its end.
    group_start: 292.0,
    /// Cycles that a step's barriers cost.
    group_step: 106.0,
    /// Cycles of a multiprocessor two products of 16×8×8 in halves on tensor cores.
    group_product: 1.0,
    /// Cycles of a multiprocessor a row of a chunk, 32 columns, that producers clear.
    group_row: 3.0,
    /// Cycles of a multiprocessor a nonzero that producers put there.
    group_nonzero: 0.5,
    /// Cycles of a multiprocessor 16 bytes of a row that producers load ahead, whether it has as many or not.
    group_piece: 0.5,
    /// Cycles of a step that a row's nonzero costs which was not loaded ahead.
    group_late: 3.0,
    /// Of packed matrices, whose other constants are those of warpgroups: cycles of a multiprocessor a row of a chunk, 32 columns.
    packed_row: 1.0,
    /// Cycles of a multiprocessor a nonzero that producers put there, and clear again.
    packed_nonzero: 0.1,
    /// Cycles of a step that a nonzero costs which was not loaded ahead.
    packed_late: 0.3,
    /// Cycles of a multiprocessor a 128 bytes of B that producers bring.
    group_line: 3.84,
    /// Cycles of warpgroups to those of rows.
    group_scale: 1.21,
    /// The part of the smaller of multiplying and filling a stage that is not hidden behind the larger.
    group_not_hidden: 0.3,
    /// Cycles of a tile's end for each block but one that shares it, whose sums are added, a 32 columns.
    group_joining: 640.0,
    /// The part of the smaller of working and waiting that is not hidden behind the larger.
    not_hidden: 1.7,
}

impl CostModel {
    /// The constants of 16-bit values, fitted to an H200 likewise.
    pub const H200_HALVES: Self = Self {
        quad_latency: 4.97,
        lone_quad: 36.7,
        row_latency: 89.8,
        joining: 6.21,
        resident_warps: 6.38,
        line_cost: 0.26,
        a_traffic: 12.4,
        b_traffic: 0.141,
        most_imbalance: 2.95,
        persistent_b_traffic: 0.1,
        persistent_scale: 1.15,
        persistent_latency: 1.0,
        fewer_warps: 1.0,
        ahead_gain: 0.0,
        persistent_start: 0.0,
        lone_block: 0.0,
        tile_start: 2180.0,
        tile_step: 824.0,
        tile_product: 3.97,
        tile_row: 0.0489,
        tile_nonzero: 0.0683,
        tile_line: 1.12,
        tile_scale: 0.668,
        tile_not_hidden: 0.934,
        tile_joining: 0.0,
        group_start: 419.0,
        group_step: 0.0001,
        group_product: 0.39,
        group_row: 0.261,
        group_nonzero: 0.0001,
        group_piece: 0.448,
        group_late: 30.0,
        packed_row: 0.31,
        packed_nonzero: 0.0001,
        packed_late: 0.167,
        group_line: 1.15,
        group_scale: 1.26,
        group_not_hidden: 0.139,
        group_joining: 684.0,
        not_hidden: 1.68,
    };

    /// The library's constants for values of this type. 16-bit values have kernels, and so constants, of their own.
    pub fn of(value: ValueType) -> Self {
        match value {
            ValueType::F32 => Self::H200,
            ValueType::F16 | ValueType::Bf16 => Self::H200_HALVES,
        }
    }

    /// The time of a kernel on a problem, in cycles of a multiprocessor up to a common factor: the larger of what keeps
    /// the L1 cache busy and what its warps wait, and a part of the smaller.
    pub fn cost(&self, problem: &Problem, entry: &Entry<Tile>) -> f64 {
        let block_warps = f64::from(entry.threads / 32);
        let resident_warps = match entry.bounds.min_blocks {
            0 => self.resident_warps.max(block_warps),
            blocks => (f64::from(blocks) * block_warps).min(self.resident_warps),
        };
        match entry.tile.scheme {
            Scheme::RowSplit { lanes, split, .. } | Scheme::Ablation { lanes, split, .. } => {
                let kernel = RowSplit { model: self, problem, tile: &entry.tile, lanes, split };
                let (busy, waiting, scale) = if is_persistent(&entry.tile) {
                    let work = kernel.persistent_work(entry);
                    let waiting = kernel.waiting_persistent(&work);
                    (kernel.busy_persistent(&work), waiting, self.persistent_scale)
                } else {
                    let waves = kernel.waves(resident_warps);
                    let begun = if block_warps >= resident_warps { self.lone_block * waves } else { 0.0 };
                    let waiting = kernel.waiting(waves) + begun;
                    (kernel.busy(block_warps, resident_warps), waiting, 1.0)
                };
                scale * (busy.max(waiting) + self.not_hidden * busy.min(waiting))
            }
            Scheme::MmaTile { slices, arithmetic, .. } => {
                let halves = arithmetic == Arithmetic::Half;
                let chunks = slices * if halves { 2 } else { 1 };
                let step = Step { chunks, slices, arithmetic, ahead: Ahead::Enough, blocks: 1 };
                self.of_tiles().cost(problem, &entry.tile, &step)
            }
            Scheme::WgmmaTile { chunks, part, blocks } => {
                let arithmetic = Arithmetic::Half;
                let step =
                    Step { chunks: 2 * chunks, slices: 1, arithmetic, ahead: Ahead::Part(part), blocks };
                self.of_groups().cost(problem, &entry.tile, &step)
            }
            // What is packed has no pieces of rows that are loaded whether there are nonzeros or not.
            Scheme::PrepackedTile { chunks, ahead, blocks } => {
                let arithmetic = Arithmetic::Half;
                let step =
                    Step { chunks: 2 * chunks, slices: 1, arithmetic, ahead: Ahead::Step(ahead), blocks };
                self.of_packed().cost(problem, &entry.tile, &step)
            }
            Scheme::Bitmask => f64::INFINITY,
        }
    }

    fn of_tiles(&self) -> Blocks {
        Blocks {
            start: self.tile_start,
            step: self.tile_step,
            product: self.tile_product,
            row: self.tile_row,
            nonzero: self.tile_nonzero,
            line: self.tile_line,
            scale: self.tile_scale,
            not_hidden: self.tile_not_hidden,
            joining: self.tile_joining,
            sharing: 0.0,
            piece: 0.0,
            late: 0.0,
        }
    }

    fn of_groups(&self) -> Blocks {
        Blocks {
            start: self.group_start,
            step: self.group_step,
            product: self.group_product,
            row: self.group_row,
            nonzero: self.group_nonzero,
            line: self.group_line,
            scale: self.group_scale,
            not_hidden: self.group_not_hidden,
            joining: 0.0,
            sharing: self.group_joining,
            piece: self.group_piece,
            late: self.group_late,
        }
    }

    fn of_packed(&self) -> Blocks {
        Blocks {
            row: self.packed_row,
            nonzero: self.packed_nonzero,
            late: self.packed_late,
            ..self.of_groups()
        }
    }
}

/// Nonzeros of an average row.
pub(super) fn mean_length(problem: &Problem) -> f64 {
    problem.nnz as f64 / problem.rows.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_go_together() {
        let mut model = CostModel::H200;
        *model.values_mut()[3] *= 2.0;
        assert_eq!(CostModel::NAMES.len(), model.values().len());
        assert_eq!((CostModel::NAMES[3], model.values()[3]), ("joining", 2.0 * CostModel::H200.joining));
    }
}
