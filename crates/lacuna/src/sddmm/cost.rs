//! What a kernel costs on a problem: the chooser's model.
//!
//! Its constants are estimates of an H200, not yet fitted to measurements (docs/sddmm.md): they order kernels, no more.
use lacuna_kernels::sddmm::{Scheme, Tile};

use super::choose::SddmmProblem;

/// Bytes that the L1 cache gives in a cycle, and of a cache line.
const LINE: f64 = 128.0;
/// Lanes of a warp, and instructions that a multiprocessor issues in a cycle.
const WARP: f64 = 32.0;
const ISSUED: f64 = 4.0;
/// Cycles from a load of B to the product, among many warps.
const LATENCY: f64 = 600.0;
/// Resident warps of a multiprocessor; of those kernels whose loads under way take many registers, fewer.
const RESIDENT_WARPS: f64 = 32.0;
/// Registers of loads under way, and of sums, from which on warps get fewer.
const FREE_REGISTERS: f64 = 40.0;
/// The part of the smaller of working and waiting that is not hidden behind the larger.
const NOT_HIDDEN: f64 = 0.3;

/// Cycles of a multiprocessor, about, for a kernel that goes by nonzeros; infinite for others.
pub(super) fn cost(problem: &SddmmProblem, tile: &Tile) -> f64 {
    let Scheme::Nonzeros { lanes, vectors, at_once, items } = tile.scheme else { return f64::INFINITY };
    let [lanes, vectors, at_once, items, vector] =
        [lanes, vectors, at_once, items, tile.vector].map(f64::from);
    let bytes = f64::from(problem.value.bytes());
    let sms = f64::from(problem.multiprocessors);
    // Loads of a row by its group: those outside K cost nothing, but their products are issued.
    let loads = (problem.k as f64 / (lanes * vector)).ceil();
    let chunks = (loads / vectors).ceil().max(1.0);
    let groups = WARP / lanes;
    let lines = groups * (lanes * vector * bytes / LINE).ceil();

    // A turn of a warp: `lanes` nonzeros of each of its groups. A's rows are loaded at least once a tile and chunk.
    let rows_of_a = if chunks > 1.0 { 1.0 } else { lanes / items };
    let l1 = (lanes + rows_of_a) * loads * lines + chunks * 2.0 * lanes / at_once + (lanes - 1.0) + groups;
    let conversions = if problem.value.bytes() == 2 { 1.0 } else { 0.0 };
    let products = lanes * chunks * vectors * (vector * (1.0 + conversions) + 2.0);
    let other = chunks * 8.0 * lanes / at_once + 3.0 * lanes;
    let turn = l1.max((products + other) / ISSUED);

    let tiles = (problem.nnz as f64 * problem.batch as f64 / (items * groups)).ceil();
    let turns = items / lanes;
    let work = (tiles / sms).max(1.0) * turns * turn;
    let registers = at_once * vectors * vector * bytes / 4.0 + vectors * vector + lanes;
    let resident = RESIDENT_WARPS * (2.0 * FREE_REGISTERS / (FREE_REGISTERS + registers)).min(1.0);
    let waves = (tiles / (sms * resident)).ceil();
    let waiting = waves * turns * chunks * lanes / at_once * LATENCY;
    work.max(waiting) + NOT_HIDDEN * work.min(waiting)
}
