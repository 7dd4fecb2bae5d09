//! Features between layouts: row by row, and in tiles of 32 rows.
use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::{Rows, Scheme, TILE_ROWS, Tile};
use crate::common::strided;
use crate::{Kernel, ValueType};

/// Tiles of features, of rows that lie one after another: a block has 32 inputs of a tile, which it turns in shared memory.
#[derive(Debug)]
pub struct ArrangeRows;

/// What [`ArrangeRows`] takes. Tiles are the grid's x; blocks along y share out the inputs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ArrangeArgs {
    /// The features, row by row.
    pub from: GlobalPtr<f32>,
    /// The features in tiles.
    pub to: GlobalMut<f32>,
    /// Rows.
    pub rows: u32,
    /// Inputs of a row.
    pub width: u32,
}

/// The results of all samples, row by row; of samples that are not listed, zeros. A warp has a listed row, and the rows that are not
/// listed before it; the last has those after the last. `TILED` are features in tiles.
#[derive(Debug)]
pub struct Scores<const TILED: bool>;

/// What [`Scores`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScoresArgs {
    /// The rows that are alive, and which row of the features each is.
    pub rows: Rows,
    /// For each of them, which sample it is; ascending.
    pub ids: GlobalPtr<u32>,
    /// The features.
    pub features: GlobalPtr<f32>,
    /// The results: `samples` × `width`.
    pub out: GlobalMut<f32>,
    /// Samples.
    pub samples: u32,
    /// Outputs of the network.
    pub width: u32,
}

const THREADS: u32 = 256;
const WARPS: u32 = THREADS / WARP;
/// Words from one row of shared memory to the next, so that columns lie in different banks.
const PITCH: u32 = TILE_ROWS + 1;

impl Kernel for ArrangeRows {
    type Args = ArrangeArgs;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::Arrange, input_bits: false, weights: ValueType::F32 };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = TILE_ROWS * PITCH * 4;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ArrangeArgs) {
        let (tile, lane, warp) = (gpu.block_idx_x(), gpu.lane_id(), gpu.thread_idx_x() / WARP);
        let shared = SharedPtr::<f32>::from_offset(0);
        let to = args.to.add_rows(args.width, TILE_ROWS * 4 * tile);
        // SAFETY: rows and inputs that are there are read, and written to their place in the tile.
        unsafe {
            strided(gpu.block_idx_y(), args.width.div_ceil(WARP), gpu.grid_dim_y(), |part| {
                let first = part * WARP;
                strided(warp, TILE_ROWS, WARPS, |row| {
                    let (from, input) = (tile * TILE_ROWS + row, first + lane);
                    if from < args.rows && input < args.width {
                        let from = args.from.add_rows(from, args.width * 4).add(input as usize);
                        gpu.shared_store(shared.add(row * PITCH + lane), gpu.load_readonly::<f32, 1>(from));
                    }
                });
                gpu.sync_threads();
                strided(warp, WARP, WARPS, |column| {
                    let input = first + column;
                    if tile * TILE_ROWS + lane < args.rows && input < args.width {
                        let number: [f32; 1] = gpu.shared_load(shared.add(lane * PITCH + column));
                        gpu.store(to.add_rows(input, TILE_ROWS * 4).add(lane as usize), number);
                    }
                });
                gpu.sync_threads();
            });
        }
    }
}

impl<const TILED: bool> Kernel for Scores<TILED> {
    type Args = ScoresArgs;
    type Tile = Tile;

    const TILE: Tile =
        Tile { scheme: Scheme::Scores { tiled: TILED }, input_bits: false, weights: ValueType::F32 };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ScoresArgs) {
        let (lane, warps) = (gpu.lane_id(), gpu.grid_dim_x() * WARPS);
        // SAFETY: listed rows have features, and samples results; a sample's are one warp's.
        unsafe {
            let listed = args.rows.count(gpu);
            let sample = |row: u32| gpu.load_readonly::<u32, 1>(args.ids.add(row as usize))[0];
            strided(gpu.block_idx_x() * WARPS + gpu.thread_idx_x() / WARP, listed + 1, warps, |row| {
                let first = if row == 0 { 0 } else { sample(row - 1) + 1 };
                let this = if row == listed { args.samples } else { sample(row) };
                let result = |sample: u32| args.out.add_rows(sample, args.width * 4);
                strided(first, this, 1, |sample| {
                    strided(lane, args.width, WARP, |output| {
                        gpu.store(result(sample).add(output as usize), [0.0_f32]);
                    });
                });
                if row < listed {
                    let source = args.rows.source(gpu, row);
                    strided(lane, args.width, WARP, |output| {
                        let from = if TILED {
                            let tile =
                                args.features.add_rows(args.width, TILE_ROWS * 4 * (source / TILE_ROWS));
                            tile.add_rows(output, TILE_ROWS * 4).add((source % TILE_ROWS) as usize)
                        } else {
                            args.features.add_rows(source, args.width * 4).add(output as usize)
                        };
                        let number: [f32; 1] = gpu.load_readonly(from);
                        gpu.store(result(this).add(output as usize), number);
                    });
                }
            });
        }
    }
}
