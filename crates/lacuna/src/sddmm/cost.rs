//! What a kernel costs on a problem: the chooser's model.
//!
//! Its constants are estimates of an H200, not yet fitted to measurements (docs/sddmm.md): they order kernels, no more.
use lacuna_kernels::Entry;
use lacuna_kernels::sddmm::{Scheme, TILE, Tile};
use lacuna_kernels::spmm::Arithmetic;

use super::choose::{SddmmProblem, is_ordered};

/// Bytes that the L1 cache gives in a cycle, and of a cache line.
const LINE: f64 = 128.0;
/// Lanes of a warp, and instructions that a multiprocessor issues in a cycle.
const WARP: f64 = 32.0;
const ISSUED: f64 = 4.0;
/// Cycles from a load of B to the product, among many warps.
const LATENCY: f64 = 600.0;
/// Resident warps of a multiprocessor; of those kernels whose loads under way take many registers, fewer.
const RESIDENT_WARPS: f64 = 32.0;
/// Registers of loads under way, of A and of sums, from which on warps get fewer.
const FREE_REGISTERS: f64 = 40.0;
/// The part of the smaller of working and waiting that is not hidden behind the larger.
const NOT_HIDDEN: f64 = 0.3;

/// Tensor cores of a multiprocessor.
const TENSOR_CORES: f64 = 4.0;
/// Cycles of a tensor core for 8 rows and 32 columns of a tile and 64 bytes of K, at about half of its peak.
const SPLIT_PIECE: f64 = 64.0;
const OTHER_PIECE: f64 = 32.0;
/// Bytes of K in a step of a tile.
const STEP: f64 = 128.0;
/// Cycles of a multiprocessor a cache line that L2 brings.
const L2_LINE: f64 = 5.0;
/// Cycles from a tile's start to its first product, and from its last to its end.
const TILE_START: f64 = 1500.0;
/// Cycles of a tile that C has nothing of, among others.
const EMPTY_TILE: f64 = 40.0;
/// Cycles of tiles to those of nonzeros, by what a prototype took of each.
const TILE_SCALE: f64 = 0.72;

/// Cycles of a multiprocessor, about; infinite for what computes no product.
pub(super) fn cost(problem: &SddmmProblem, entry: &Entry<Tile>) -> f64 {
    match entry.tile.scheme {
        Scheme::Nonzeros { .. } => of_nonzeros(problem, entry),
        Scheme::Tiles { .. } if problem.k == 0 => f64::INFINITY,
        Scheme::Tiles { columns, arithmetic } => of_tiles(problem, entry, columns, arithmetic),
        Scheme::Rows | Scheme::Order | Scheme::Dense => f64::INFINITY,
    }
}

/// Each multiprocessor takes its tiles one after the other; those that are there together hide each other's start.
fn of_tiles(problem: &SddmmProblem, entry: &Entry<Tile>, columns: u32, arithmetic: Arithmetic) -> f64 {
    let [rows, columns, threads] = [entry.tile.block_items, columns, entry.threads].map(f64::from);
    let count = |whole: usize, part: f64| (whole as f64 / part).ceil();
    let tiles = count(problem.rows, rows) * count(problem.cols, columns);
    // A tile that is not empty has a nonzero.
    let full = tiles.min(problem.nnz as f64) * problem.batch as f64;
    let empty = tiles * problem.batch as f64 - full;

    let steps = (problem.k as f64 * f64::from(problem.value.bytes()) / STEP).ceil();
    let piece = if arithmetic == Arithmetic::Split { SPLIT_PIECE } else { OTHER_PIECE };
    // Fewer warps than tensor cores leave some to the tile beside.
    let multiplying = steps * 2.0 * piece * rows / 8.0 * columns / 32.0 / TENSOR_CORES;
    let loading = steps * (rows + columns) * L2_LINE;
    let resident = f64::from(entry.bounds.min_blocks * entry.bounds.max_threads) / threads;
    let tile = multiplying.max(loading) + TILE_START / resident.max(1.0);
    let sms = f64::from(problem.multiprocessors);
    TILE_SCALE * ((full / sms).ceil() * tile + TILE_START + (empty / sms).ceil() * EMPTY_TILE)
}

/// For a kernel that goes by nonzeros; infinite for others.
fn of_nonzeros(problem: &SddmmProblem, entry: &Entry<Tile>) -> f64 {
    let Entry { tile, threads, .. } = entry;
    let Scheme::Nonzeros { lanes, vectors, at_once } = tile.scheme else { return f64::INFINITY };
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
    // the nonzeros that are under way together.
    let rows_of_a = lanes / if chunks > 1.0 { at_once } else { items };
    let shuffles = lanes / at_once * (at_once - 1.0 + (lanes / at_once).log2());
    let l1 = (lanes + rows_of_a) * loads * lines + chunks * 2.0 * lanes / at_once + shuffles + groups;
    let conversions = if problem.value.bytes() == 2 { 1.0 } else { 0.0 };
    let products = lanes * chunks * vectors * (vector * (1.0 + conversions) + 2.0);
    let other = chunks * 8.0 * lanes / at_once + 3.0 * lanes;
    let turn = l1.max((products + other) / ISSUED);

    let tiles = (problem.nnz as f64 * problem.batch as f64 / (items * groups)).ceil();
    let turns = items / lanes;
    let work = (tiles / sms).max(1.0) * turns * turn;
    let registers = at_once * vectors * vector * bytes / 4.0 + vectors * vector + at_once;
    let resident = RESIDENT_WARPS * (2.0 * FREE_REGISTERS / (FREE_REGISTERS + registers)).min(1.0);
    let waves = (tiles / (sms * resident)).ceil();
    let waiting = waves * turns * chunks * lanes / at_once * LATENCY;
    // Where a block's tiles read the same rows of B, larger blocks read each more often.
    let sharing = if is_ordered(problem) { 1.0 / f64::from(*threads) } else { f64::from(*threads) * 1e-6 };
    (1.0 + sharing) * (work.max(waiting) + NOT_HIDDEN * work.min(waiting))
}
