//! What a kernel costs on a problem: the heuristic's model.
use lacuna_kernels::sddmm::{Scheme, TILE, Tile};
use lacuna_kernels::{Arithmetic, Entry};

use super::choose::{Problem, is_ordered};
use super::model::{ByPanels, CostModel, Nonzeros, Tiles, Warpgroups};
use super::panels::Panels;
use super::splits::Splits;

/// Bytes of a cache line, and lanes of a warp.
const LINE: f64 = 128.0;
const WARP: f64 = 32.0;
/// Tensor cores of a multiprocessor.
const TENSOR_CORES: f64 = 4.0;
/// Bytes of K in a step of a tile.
const STEP: f64 = 128.0;

impl CostModel {
    /// About the time of a kernel on a problem, in cycles of a multiprocessor: with the splits of K that the problem asks for, or
    /// those with which it is least. Infinite for what computes no product, or cannot do K in these splits.
    pub fn cost(&self, problem: &Problem, entry: &Entry<Tile>) -> f64 {
        let splits = problem.splits(self, entry);
        splits.map_or(f64::INFINITY, |splits| self.cost_of_splits(problem, entry, splits))
    }

    /// Into how many parts K is split in that: 1 where it is not. None where the kernel cannot do K so.
    pub fn splits(&self, problem: &Problem, entry: &Entry<Tile>) -> Option<usize> {
        problem.splits(self, entry).map(|splits| splits.count)
    }

    /// Cycles with these splits of K: as of so many products, whose sums are then added up.
    pub(super) fn cost_of_splits(&self, problem: &Problem, entry: &Entry<Tile>, splits: Splits) -> f64 {
        let sums = (problem.nnz * problem.batch * splits.count) as f64 / f64::from(problem.multiprocessors);
        let adding = if splits.count > 1 { self.split_sums.launch + self.split_sums.sum * sums } else { 0.0 };
        let problem = &problem.of_splits(splits);
        let products = match entry.tile.scheme {
            Scheme::NonzeroSplit { lanes, vectors, at_once } => {
                self.of_nonzeros(problem, entry, [lanes, vectors, at_once])
            }
            Scheme::ColumnPanel { lanes, vectors, at_once } => {
                self.of_panels(problem, entry, [lanes, vectors, at_once])
            }
            Scheme::MmaTile { .. } | Scheme::WgmmaTile { .. } if problem.k == 0 => f64::INFINITY,
            Scheme::MmaTile { columns, arithmetic } => self.of_tiles(problem, entry, columns, arithmetic),
            Scheme::WgmmaTile { columns, arithmetic } => {
                self.of_warpgroups(problem, entry, columns, arithmetic)
            }
            Scheme::RowIndices | Scheme::Schedule | Scheme::SumSplits | Scheme::Transpose => f64::INFINITY,
        };
        products + adding
    }

    /// Each multiprocessor takes as many tiles as it has room for, and then the next ones: it works on all of them, and waits as
    /// for one.
    fn of_tiles(&self, problem: &Problem, entry: &Entry<Tile>, columns: u32, arithmetic: Arithmetic) -> f64 {
        let Tiles { piece: split, l2_line, place, nonzero, start, not_shared, small_block } = self.tiles;
        let [rows, columns, at_once] =
            [entry.tile.block_items, columns, entry.bounds.min_blocks].map(f64::from);
        let count = |whole: usize, part: f64| (whole as f64 / part).ceil();
        let tiles = count(problem.rows, rows) * count(problem.cols, columns);
        let batch = problem.batch as f64;
        let full = full_tiles(tiles, problem.nnz as f64);

        let steps = (problem.k as f64 * f64::from(problem.value.bytes()) / STEP).ceil();
        // A product in TF32 takes half of one in three parts.
        let tf32 = split / 2.0;
        let piece = match arithmetic {
            Arithmetic::Split => split,
            Arithmetic::Tf32 => tf32,
            Arithmetic::SplitTf32 => 3.0 * tf32,
            Arithmetic::SplitBf16 => 1.5 * tf32,
            Arithmetic::Half => self.sixteen_bit.piece,
        };
        let multiplying = steps * 2.0 * piece * rows / 8.0 * columns / 32.0 / TENSOR_CORES;
        let loading = steps * (rows + columns) * l2_line;
        let small = if entry.threads == 64 { small_block } else { 1.0 };
        let end = place * rows * columns + nonzero * problem.nnz as f64 / full.max(1.0);
        let work = small * (multiplying + loading + end);
        let sms = f64::from(problem.multiprocessors);
        let each = (full * batch / sms).ceil();
        let waves = (each / at_once.max(1.0)).ceil();
        self.common.start + waves * (start + not_shared * work) + each * work
    }

    /// Blocks stay, and take tiles one after another, those that C has something of. The end of a tile goes by its elements and nonzeros.
    fn of_warpgroups(
        &self,
        problem: &Problem,
        entry: &Entry<Tile>,
        columns: u32,
        arithmetic: Arithmetic,
    ) -> f64 {
        let Warpgroups { line, tile, place, nonzero } =
            if arithmetic == Arithmetic::Half { self.warpgroups } else { self.split_warpgroups };
        let [rows, columns] = [entry.tile.block_items, columns].map(|side| side as usize);
        let tiles = (problem.rows.div_ceil(rows) * problem.cols.div_ceil(columns)) as f64;
        let full = full_tiles(tiles, problem.nnz as f64);
        let steps = (problem.k as f64 * f64::from(problem.value.bytes()) / STEP).ceil();
        let end = place * (rows * columns) as f64 + nonzero * problem.nnz as f64 / full.max(1.0);
        let work = steps * (rows + columns) as f64 * line + tile + end;
        let each = (full * problem.batch as f64 / f64::from(problem.multiprocessors)).ceil();
        self.common.start + each * work
    }

    /// By nonzeros.
    fn of_nonzeros(&self, problem: &Problem, entry: &Entry<Tile>, constants: [u32; 3]) -> f64 {
        let Nonzeros { l1_line, gather, product, latency, resident_warps, free_registers } = self.nonzeros;
        let Entry { tile, threads, .. } = entry;
        let [lanes, vectors, at_once] = constants.map(f64::from);
        let [items, vector] = [TILE, tile.vector].map(f64::from);
        let bytes = f64::from(problem.value.bytes());
        let sms = f64::from(problem.multiprocessors);
        // Loads of a row by its group: those outside K cost nothing, but their products are issued.
        let loads = (problem.k as f64 / (lanes * vector)).ceil();
        let chunks = (loads / vectors).ceil().max(1.0);
        let groups = WARP / lanes;
        let lines = groups * (lanes * vector * bytes / LINE).ceil();

        // A turn of a warp: `lanes` nonzeros of each of its groups. A row of A that is loaded by chunks is loaded for each of
        // the nonzeros that are under way together. Where rows are short, they change within a tile, too.
        let changes = (lanes * problem.rows as f64 / problem.nnz.max(1) as f64).min(lanes);
        let rows_of_a = changes + lanes / if chunks > 1.0 { at_once } else { items };
        let shuffles = lanes / at_once * (at_once - 1.0 + (lanes / at_once).log2());
        let gathers = chunks * 2.0 * lanes / at_once + groups;
        let l1 = l1_line * ((lanes + rows_of_a) * loads * lines + shuffles + gather * gathers);
        let conversions = if problem.value.bytes() == 2 { self.sixteen_bit.nonzero_conversion } else { 0.0 };
        let products = lanes * chunks * vectors * (vector * (1.0 + conversions) + 2.0);
        let turn = l1 + product * products;

        let tiles = (problem.nnz as f64 * problem.batch as f64 / (items * groups)).ceil();
        let turns = items / lanes;
        let work = (tiles / sms).max(1.0) * turns * turn;
        let registers = at_once * vectors * vector * bytes / 4.0 + vectors * vector + at_once;
        let resident = resident_warps * (2.0 * free_registers / (free_registers + registers)).min(1.0);
        let waves = (tiles / (sms * resident)).ceil();
        let waiting = waves * turns * chunks * (lanes / at_once + changes) * latency;
        // Where a block's tiles read the same rows of B, larger blocks read each more often.
        let sharing =
            if is_ordered(problem) { 1.0 / f64::from(*threads) } else { f64::from(*threads) * 1e-6 };
        self.common.start + (1.0 + sharing) * (work + waiting)
    }

    /// By panels, whose rows of B are in L1. Work is shared by all multiprocessors; the longest tile of all is one group's.
    fn of_panels(&self, problem: &Problem, entry: &Entry<Tile>, constants: [u32; 3]) -> f64 {
        let ByPanels { kernel, l1_line, turn, product, latency, idle, longest_part } = self.panels;
        let [lanes, vectors, at_once] = constants.map(f64::from);
        let vector = f64::from(entry.tile.vector);
        let bytes = f64::from(problem.value.bytes());
        let groups = WARP / lanes;
        let lines = groups * (lanes * vector * bytes / LINE).ceil();
        let loads = (problem.k as f64 / (lanes * vector)).ceil();

        let Panels { columns, tile } = Panels::of(problem);
        let (nnz, tile) = (problem.nnz as f64, f64::from(tile));
        let panels = problem.cols.div_ceil(columns) as f64;
        let tiles = full_tiles(problem.rows as f64 * panels, nnz).max(nnz / tile).max(1.0);
        // Groups of a warp end together, but not with all that they could have under way.
        let turns = (nnz / tiles + idle * at_once) / lanes;
        let shuffles = lanes + lanes / at_once * (at_once - 1.0 + (lanes / at_once).log2());
        let conversions = if problem.value.bytes() == 2 { self.sixteen_bit.panel_conversion } else { 0.0 };
        let products = lanes * vectors * (vector * (1.0 + conversions) + 2.0);
        let turn = l1_line * (lanes * loads * lines + shuffles) + turn + product * products;
        let warps = tiles * problem.batch as f64 / groups;
        // Where a row is in several panels, its longest part is somewhat more than its share.
        let part = if panels > 1.0 { longest_part * columns as f64 / problem.cols as f64 } else { 1.0 };
        let longest = (problem.longest_row as f64 * part).min(tile);
        let work = (warps / f64::from(problem.multiprocessors)).max(1.0) * turns * turn;
        kernel + work + longest / at_once * latency
    }
}

/// How many of the tiles have a nonzero, were they strewn over all tiles alike.
fn full_tiles(tiles: f64, nnz: f64) -> f64 {
    if tiles == 0.0 { 0.0 } else { tiles * (1.0 - (-nnz / tiles).exp()) }
}

#[cfg(test)]
mod tests {
    use lacuna_kernels::entries;

    use super::*;

    #[test]
    fn nonzeros_fill_tiles_once_they_are_many() {
        assert_eq!((full_tiles(0.0, 0.0), full_tiles(100.0, 0.0)), (0.0, 0.0));
        assert!((full_tiles(1e6, 10.0) - 10.0).abs() < 0.01, "each in a tile of its own");
        let half = full_tiles(100.0, 100.0 * 2f64.ln());
        assert!((half - 50.0).abs() < 1e-9, "{half}");
        assert!((full_tiles(100.0, 1e6) - 100.0).abs() < 1e-9, "never more than there are");
    }

    /// 132 tiles with nonzeros, one for each multiprocessor, of 264: where each constant is 1, a cost counts what there is.
    #[test]
    fn tiles_cost_by_lines_elements_and_nonzeros() {
        let mut file = CostModel::hopper().file().clone();
        file.sections
            .iter_mut()
            .flat_map(|section| &mut section.constants)
            .for_each(|constant| constant.value = 1.0);
        let model = CostModel::new(file);
        let cost = |name: &str, [rows, cols, nnz, k]: [usize; 4]| {
            let entry = entries::sddmm().iter().find(|entry| entry.name == name).unwrap();
            let splits = Some(1);
            let problem = Problem { value: entry.tile.value, splits, ..Problem::new(rows, cols, nnz, k) };
            model.cost(&problem, entry)
        };
        let nnz = 132 * 1_000_000;
        for (name, rows, lines) in [
            // A line has 64 columns of 16 bits, or 32 of 32.
            ("sddmm_f16_wgmma_256x128", 256, 2 * 384),
            ("sddmm_f32_wgmma_128x128_splitbf16", 128, 4 * 256),
        ] {
            let expected = (1 + lines + 1 + rows * 128 + 1_000_000) as f64;
            assert_eq!(cost(name, [132 * rows, 128, nnz, 128]), expected, "{name}");
            assert_eq!(cost(name, [132 * rows, 128, nnz, 127]), expected, "{name}: whole steps");
        }
        // Pieces of 8 rows, 32 columns and 64 bytes on four tensor cores; a split piece as it is, and its wave's start.
        let work = 4.0 * 2.0 * 8.0 * 4.0 / 4.0 + 4.0 * 192.0 + 64.0 * 128.0 + 1_000_000.0;
        assert_eq!(cost("sddmm_f32_mma_64x128_split", [132 * 64, 128, nnz, 128]), 1.0 + 1.0 + work + work);
    }

    /// Costs by nonzeros and panels, by the constants that were found by hand, where the fit begins: before they were data, the code gave these.
    #[test]
    fn costs_at_the_start_are_those_of_before() {
        let mut file = CostModel::hopper().file().clone();
        for constant in file.sections.iter_mut().flat_map(|section| &mut section.constants) {
            constant.value = constant.start;
        }
        let model = CostModel::new(file);
        for ((nnz, k, batch), splits, name, expected) in [
            ((1_677_722, 128, 1), Some(1), "f32_nonzero_v4x4_l8_w8", 123_682.264_022_754_75),
            ((3000, 20_000, 1), Some(48), "f32_nonzero_v4x1_l8_w8", 314_804.420_076_204_6),
            ((1_677_722, 128, 2), None, "f32_panel_v4x4_l8_w8", 180_403.553_852_196_06),
            ((100_000, 3136, 1), Some(16), "f32_panel_v4x4_l16_w8", 164_805.667_476_660_8),
            ((1_677_722, 256, 1), Some(1), "f16_nonzero_v8x1_l8_w8", 218_640.403_758_885_86),
            ((1_677_722, 128, 1), Some(1), "f16_panel_v8x2_l8_w8", 84_810.821_732_9),
        ] {
            let entry = entries::sddmm().iter().find(|entry| &entry.name["sddmm_".len()..] == name).unwrap();
            let mut problem = Problem::new(8192, 2048, nnz, k);
            (problem.batch, problem.splits, problem.value) = (batch, splits, entry.tile.value);
            let cost = model.cost(&problem, entry);
            assert!((cost / expected - 1.0).abs() < 1e-9, "{name}: {cost}");
        }
    }
}
