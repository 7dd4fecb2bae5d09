//! Features made on the device: from bits, and from lists of numbers.
use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, WARP};

use super::{Scheme, TILE_ROWS, Tile};
use crate::{Kernel, ValueType};

/// Rows of numbers, of tiles of bits: a block a tile.
#[derive(Debug)]
pub struct ExpandBits;

/// What [`ExpandBits`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ExpandBitsArgs {
    /// For each tile of 32 rows and each input a word, with a bit a row.
    pub bits: GlobalPtr<u32>,
    /// The numbers, row by row.
    pub out: GlobalMut<f32>,
    /// Rows.
    pub rows: u32,
    /// Inputs (not 0).
    pub inputs: u32,
}

/// Puts listed numbers to their places: a warp a row. `TILED` are features in tiles of 32 rows, others lie row by row. What is not
/// listed is zero before.
#[derive(Debug)]
pub struct ScatterValues<const TILED: bool>;

/// What [`ScatterValues`] takes: a sparse matrix of a row for each sample, in CSR.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScatterArgs {
    /// For each row the index of its first number, and the end of the last.
    pub offsets: GlobalPtr<u32>,
    /// The input that each number is of.
    pub inputs: GlobalPtr<u32>,
    /// The numbers.
    pub values: GlobalPtr<f32>,
    /// The features.
    pub out: GlobalMut<f32>,
    /// Rows.
    pub rows: u32,
    /// Inputs of a row.
    pub width: u32,
}

const THREADS: u32 = 256;
const WARPS: u32 = THREADS / WARP;

impl Kernel for ExpandBits {
    type Args = ExpandBitsArgs;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::ExpandBits, input_bits: true, weights: ValueType::F32 };
    const THREADS: u32 = THREADS;

    /// The grid's x is the tiles. A lane has an input, and writes 32 rows of it, so that lanes write side by side.
    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ExpandBitsArgs) {
        let tile = gpu.block_idx_x();
        let mut input = gpu.thread_idx_x();
        // SAFETY: the tile has a word for each input, and each row a place for it, which is this thread's.
        unsafe {
            while input < args.inputs {
                let [word] = gpu.load_readonly(args.bits.add_rows(tile, args.inputs * 4).add(input as usize));
                let first = tile * TILE_ROWS;
                for bit in 0..TILE_ROWS {
                    if first + bit < args.rows {
                        let row = args.out.add_rows(first + bit, args.inputs * 4);
                        gpu.store(row.add(input as usize), [(word >> bit & 1) as f32]);
                    }
                }
                input += THREADS;
            }
        }
    }
}

impl<const TILED: bool> Kernel for ScatterValues<TILED> {
    type Args = ScatterArgs;
    type Tile = Tile;

    const TILE: Tile =
        Tile { scheme: Scheme::Scatter { tiled: TILED }, input_bits: false, weights: ValueType::F32 };
    const THREADS: u32 = THREADS;

    /// A warp has a row.
    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ScatterArgs) {
        let row = gpu.block_idx_x() * WARPS + gpu.thread_idx_x() / WARP;
        if row >= args.rows {
            return;
        }
        // SAFETY: the row has its numbers, each of an input of its own.
        unsafe {
            let [start] = gpu.load_readonly(args.offsets.add(row as usize));
            let [end] = gpu.load_readonly(args.offsets.add(row as usize + 1));
            let mut at = start as usize + gpu.lane_id() as usize;
            while at < end as usize {
                let [input] = gpu.load_readonly(args.inputs.add(at));
                let value: [f32; 1] = gpu.load_readonly(args.values.add(at));
                let place = if TILED {
                    let tile = args.out.add_rows(args.width, TILE_ROWS * 4 * (row / TILE_ROWS));
                    tile.add_rows(input, TILE_ROWS * 4).add((row % TILE_ROWS) as usize)
                } else {
                    args.out.add_rows(row, args.width * 4).add(input as usize)
                };
                gpu.store(place, value);
                at += WARP as usize;
            }
        }
    }
}
