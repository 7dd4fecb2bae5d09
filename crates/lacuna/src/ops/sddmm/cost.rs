//! What a kernel costs on a problem: the heuristic's model.
//!
//! Its constants are fitted to an H100, in `f32` and `f16` (docs/log/sddmm.md, "Splits of K"). Costs are cycles of a multiprocessor.
use lacuna_kernels::Arithmetic;
use lacuna_kernels::Entry;
use lacuna_kernels::sddmm::{Scheme, TILE, Tile};

use super::choose::{Problem, is_ordered};
use super::panels::Panels;
use super::splits::Splits;

/// Bytes of a cache line, and lanes of a warp.
const LINE: f64 = 128.0;
const WARP: f64 = 32.0;
/// Cycles of any kernel, before its first block and after its last.
const START: f64 = 5450.0;

/// Cycles of the L1 cache a line of A or B, and a shuffle.
const L1_LINE: f64 = 0.517;
/// Loads of indices and stores of D, in such lines.
const GATHER: f64 = 5.17;
/// Cycles of a multiprocessor a product of 32 lanes, with what belongs to it.
const PRODUCT: f64 = 0.137;
/// Such products that a conversion from 16 bits takes the time of: what is loaded and converted is not hidden behind L1.
const CONVERSION: f64 = 2.93;
/// Cycles from a load of B to the product, among many warps.
const LATENCY: f64 = 502.0;
/// Resident warps of a multiprocessor; of those kernels whose loads under way take many registers, fewer.
const RESIDENT_WARPS: f64 = 20.7;
/// Registers of loads under way, of A and of sums, from which on warps get fewer.
const FREE_REGISTERS: f64 = 23.2;

/// By panels, where B's rows are in L1: cycles of any kernel,
const PANEL_KERNEL: f64 = 4390.0;
/// of a cache line of B, or a shuffle,
const PANEL_L1_LINE: f64 = 0.546;
/// of a turn's indices and results,
const PANEL_TURN: f64 = 10.3;
/// of a product of 32 lanes,
const PANEL_PRODUCT: f64 = 0.581;
/// of which a conversion from 16 bits is a part,
const PANEL_CONVERSION: f64 = 0.309;
/// and of loads of B that one group waits for.
const PANEL_LATENCY: f64 = 298.0;

/// Tensor cores of a multiprocessor.
const TENSOR_CORES: f64 = 4.0;
/// Cycles of a tensor core for 8 rows and 32 columns of a tile and 64 bytes of K.
const SPLIT_PIECE: f64 = 74.1;
const TF32_PIECE: f64 = SPLIT_PIECE / 2.0;
const HALF_PIECE: f64 = 75.0;
/// Bytes of K in a step of a tile.
const STEP: f64 = 128.0;
/// Cycles of a multiprocessor a cache line that L2 brings.
const L2_LINE: f64 = 1.94;
/// Cycles of a multiprocessor a place of a tile, to look up whether C has it.
const PLACE: f64 = 0.247;
/// Cycles that nothing hides, of the tiles that a multiprocessor has at once: from their start to the first product; and as
/// a part of the work of one of them.
const TILES_START: f64 = 3580.0;
const NOT_SHARED: f64 = 0.453;
/// What tiles of blocks of two warps take longer.
const SMALL_BLOCK: f64 = 1.18;
/// Tiles by warpgroups: cycles of a multiprocessor a cache line of A and B, a tile, and a nonzero of it.
const GROUP_LINE: f64 = 13.6;
const GROUP_TILE: f64 = 2690.0;
const GROUP_NONZERO: f64 = 0.723;
/// Cycles of a tile that C has nothing of, among others.
const EMPTY_TILE: f64 = 40.0;

/// Cycles of the launch that adds the sums of splits up,
const SUM_SPLITS: f64 = 2710.0;
/// and of a multiprocessor a sum, which is written and read.
const SUM: f64 = 0.57;

/// Cycles of a multiprocessor, about; infinite for what computes no product.
pub(super) fn cost(problem: &Problem, entry: &Entry<Tile>) -> f64 {
    let splits = problem.splits(entry);
    splits.map_or(f64::INFINITY, |splits| cost_of_splits(problem, entry, splits))
}

/// The same with these splits of K: as of so many products, whose sums are then added up.
pub(super) fn cost_of_splits(problem: &Problem, entry: &Entry<Tile>, splits: Splits) -> f64 {
    let sums = (problem.nnz * problem.batch * splits.count) as f64 / f64::from(problem.multiprocessors);
    let adding = if splits.count > 1 { SUM_SPLITS + SUM * sums } else { 0.0 };
    let problem = &problem.of_splits(splits);
    let products = match entry.tile.scheme {
        Scheme::NonzeroSplit { .. } => of_nonzeros(problem, entry),
        Scheme::ColumnPanel { lanes, vectors, at_once } => {
            of_panels(problem, entry, [lanes, vectors, at_once])
        }
        Scheme::MmaTile { .. } | Scheme::WgmmaTile { .. } if problem.k == 0 => f64::INFINITY,
        Scheme::MmaTile { columns, arithmetic } => of_tiles(problem, entry, columns, arithmetic),
        Scheme::WgmmaTile { columns, .. } => of_warpgroups(problem, entry, columns),
        Scheme::RowIndices | Scheme::Schedule | Scheme::SumSplits | Scheme::Transpose => f64::INFINITY,
    };
    products + adding
}

/// Each multiprocessor takes as many tiles as it has room for, and then the next ones: it works on all of them, and waits as
/// for one.
fn of_tiles(problem: &Problem, entry: &Entry<Tile>, columns: u32, arithmetic: Arithmetic) -> f64 {
    let [rows, columns, at_once] = [entry.tile.block_items, columns, entry.bounds.min_blocks].map(f64::from);
    let count = |whole: usize, part: f64| (whole as f64 / part).ceil();
    let tiles = count(problem.rows, rows) * count(problem.cols, columns);
    let batch = problem.batch as f64;
    let full = full_tiles(tiles, problem.nnz as f64);

    let steps = (problem.k as f64 * f64::from(problem.value.bytes()) / STEP).ceil();
    let piece = match arithmetic {
        Arithmetic::Split => SPLIT_PIECE,
        Arithmetic::Tf32 => TF32_PIECE,
        Arithmetic::SplitTf32 => 3.0 * TF32_PIECE,
        Arithmetic::Half => HALF_PIECE,
    };
    let multiplying = steps * 2.0 * piece * rows / 8.0 * columns / 32.0 / TENSOR_CORES;
    let loading = steps * (rows + columns) * L2_LINE;
    let small = if entry.threads == 64 { SMALL_BLOCK } else { 1.0 };
    let work = small * (multiplying + loading + PLACE * rows * columns);
    let sms = f64::from(problem.multiprocessors);
    let each = (full * batch / sms).ceil();
    let waves = (each / at_once.max(1.0)).ceil();
    let empty = (tiles - full) * batch / sms * EMPTY_TILE;
    START + waves * (TILES_START + NOT_SHARED * work) + each * work + empty
}

/// Blocks stay, and take tiles of one size one after another, whatever C has of them. The end of a tile goes by its nonzeros.
fn of_warpgroups(problem: &Problem, entry: &Entry<Tile>, columns: u32) -> f64 {
    let [rows, columns] = [entry.tile.block_items, columns].map(|side| side as usize);
    let tiles = (problem.rows.div_ceil(rows) * problem.cols.div_ceil(columns) * problem.batch) as f64;
    let nonzeros = (problem.nnz * problem.batch) as f64 / tiles.max(1.0);
    let steps = problem.k as f64 * f64::from(problem.value.bytes()) / STEP;
    let work = steps * (rows + columns) as f64 * GROUP_LINE + GROUP_TILE + nonzeros * GROUP_NONZERO;
    START + (tiles / f64::from(problem.multiprocessors)).ceil() * work
}

/// How many of the tiles have a nonzero, were they strewn over all tiles alike.
fn full_tiles(tiles: f64, nnz: f64) -> f64 {
    if tiles == 0.0 { 0.0 } else { tiles * (1.0 - (-nnz / tiles).exp()) }
}

/// For a kernel that goes by nonzeros; infinite for others.
fn of_nonzeros(problem: &Problem, entry: &Entry<Tile>) -> f64 {
    let Entry { tile, threads, .. } = entry;
    let Scheme::NonzeroSplit { lanes, vectors, at_once } = tile.scheme else { return f64::INFINITY };
    let [lanes, vectors, at_once, items, vector] =
        [lanes, vectors, at_once, TILE, tile.vector].map(f64::from);
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
    let l1 = L1_LINE * ((lanes + rows_of_a) * loads * lines + shuffles + GATHER * gathers);
    let conversions = if problem.value.bytes() == 2 { CONVERSION } else { 0.0 };
    let products = lanes * chunks * vectors * (vector * (1.0 + conversions) + 2.0);
    let turn = l1 + PRODUCT * products;

    let tiles = (problem.nnz as f64 * problem.batch as f64 / (items * groups)).ceil();
    let turns = items / lanes;
    let work = (tiles / sms).max(1.0) * turns * turn;
    let registers = at_once * vectors * vector * bytes / 4.0 + vectors * vector + at_once;
    let resident = RESIDENT_WARPS * (2.0 * FREE_REGISTERS / (FREE_REGISTERS + registers)).min(1.0);
    let waves = (tiles / (sms * resident)).ceil();
    let waiting = waves * turns * chunks * (lanes / at_once + changes) * LATENCY;
    // Where a block's tiles read the same rows of B, larger blocks read each more often.
    let sharing = if is_ordered(problem) { 1.0 / f64::from(*threads) } else { f64::from(*threads) * 1e-6 };
    START + (1.0 + sharing) * (work + waiting)
}

/// By panels, whose rows of B are in L1. Work is shared by all multiprocessors; the longest tile of all is one group's.
fn of_panels(problem: &Problem, entry: &Entry<Tile>, constants: [u32; 3]) -> f64 {
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
    let turns = (nnz / tiles + 0.8 * at_once) / lanes;
    let shuffles = lanes + lanes / at_once * (at_once - 1.0 + (lanes / at_once).log2());
    let conversions = if problem.value.bytes() == 2 { PANEL_CONVERSION } else { 0.0 };
    let products = lanes * vectors * (vector * (1.0 + conversions) + 2.0);
    let turn = PANEL_L1_LINE * (lanes * loads * lines + shuffles) + PANEL_TURN + PANEL_PRODUCT * products;
    let warps = tiles * problem.batch as f64 / groups;
    // Where a row is in several panels, its longest part is somewhat more than its share.
    let part = if panels > 1.0 { 1.3 * columns as f64 / problem.cols as f64 } else { 1.0 };
    let longest = (problem.longest_row as f64 * part).min(tile);
    let work = (warps / f64::from(problem.multiprocessors)).max(1.0) * turns * turn;
    PANEL_KERNEL + work + longest / at_once * PANEL_LATENCY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonzeros_fill_tiles_once_they_are_many() {
        assert_eq!((full_tiles(0.0, 0.0), full_tiles(100.0, 0.0)), (0.0, 0.0));
        assert!((full_tiles(1e6, 10.0) - 10.0).abs() < 0.01, "each in a tile of its own");
        let half = full_tiles(100.0, 100.0 * 2f64.ln());
        assert!((half - 50.0).abs() < 1e-9, "{half}");
        assert!((full_tiles(100.0, 1e6) - 100.0).abs() < 1e-9, "never more than there are");
    }
}
