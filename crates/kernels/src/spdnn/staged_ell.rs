//! A layer as the paper's listing 2 has it: inputs staged in shared memory, weights in sliced ELL.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::{Limits, Rows, Scheme, TILE_ROWS, Tile};
use crate::common::strided;
use crate::{Bounds, Kernel, ValueType};

/// Stands for no edge, in the indices of [`StagedEll`]: a warp's outputs have as many as the longest.
pub const PADDED: u16 = u16::MAX;

/// A layer: a block has 256 outputs and `ROWS` rows at once, and goes on to the next rows.
///
/// ```text
///   stage 0: map  i0 i4 i9 …  ──►  shared memory: these inputs, of each row     the edges of a warp's outputs that are in the
///   stage 1: map  i1 i7 …     ──►  …                                            stage, output by output: lane = output
/// ```
/// An edge is loaded once for all `ROWS` rows. Indices are of 2 bytes: those of a map are inputs, those of an edge places in the
/// stage.
#[derive(Debug)]
pub struct StagedEll<const ROWS: usize, const INPUTS: u32>;

/// What [`StagedEll`] takes. Groups of `ROWS` rows are the grid's y.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StagedArgs {
    /// The rows.
    pub rows: Rows,
    /// The features, row by row.
    pub input: GlobalPtr<f32>,
    /// The result likewise.
    pub out: GlobalMut<f32>,
    /// For each block of outputs its first stage, and the end of the last.
    pub stages: GlobalPtr<u32>,
    /// For each stage the index of its first input in `map`, and the end of the last.
    pub map_starts: GlobalPtr<u32>,
    /// The inputs of the stages.
    pub map: GlobalPtr<u16>,
    /// For each stage and warp its first step, and the end of the last. A step has an edge, or none, of each lane's output.
    pub steps: GlobalPtr<u32>,
    /// For each step and lane the place of the edge's input in the stage, or [`PADDED`].
    pub places: GlobalPtr<u16>,
    /// Likewise the weights.
    pub weights: GlobalPtr<f32>,
    /// The bias of each output.
    pub bias: GlobalPtr<f32>,
    /// Inputs of the layer.
    pub input_width: u32,
    /// Outputs of the layer.
    pub output_width: u32,
    /// What is made of sums.
    pub limits: Limits,
}

const THREADS: u32 = 256;
const WARPS: u32 = THREADS / WARP;

impl<const ROWS: usize, const INPUTS: u32> Kernel for StagedEll<ROWS, INPUTS> {
    type Args = StagedArgs;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(INPUTS <= PADDED as u32, "a place in a stage has 2 bytes");
        Tile {
            scheme: Scheme::StagedEll { outputs: THREADS, rows: ROWS as u32, inputs: INPUTS },
            input_bits: false,
            weights: ValueType::F32,
        }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = ROWS as u32 * INPUTS * 4;
    /// Sums and addresses of 12 rows take more registers than ptxas gives by itself.
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: 3 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: StagedArgs) {
        let block = gpu.block_idx_x();
        // SAFETY: the arguments describe the layer; a block alone has its outputs of its rows.
        unsafe {
            let [first_stage] = gpu.load_readonly(args.stages.add(block as usize));
            let [end_stage] = gpu.load_readonly(args.stages.add(block as usize + 1));
            let rows = args.rows.count(gpu);
            let mut first_row = gpu.block_idx_y() * ROWS as u32;
            while first_row < rows {
                let mut from = [args.input; ROWS];
                for (f, from) in from.iter_mut().enumerate() {
                    let row = first_row + f as u32;
                    let source = args.rows.source(gpu, if row < rows { row } else { rows - 1 });
                    *from = args.input.add_rows(source, args.input_width * 4);
                }
                let mut sums = [0.0; ROWS];
                strided(first_stage, end_stage, 1, |stage| {
                    Self::fill(gpu, &args, stage, &from);
                    gpu.sync_threads();
                    Self::add(gpu, &args, stage, &mut sums);
                    gpu.sync_threads();
                });
                Self::finish(gpu, &args, [first_row, rows], &sums);
                first_row += gpu.grid_dim_y() * ROWS as u32;
            }
        }
    }
}

impl<const ROWS: usize, const INPUTS: u32> StagedEll<ROWS, INPUTS> {
    /// Brings a stage's inputs of all rows into shared memory.
    ///
    /// # Safety
    /// The stage is one of the block's.
    #[inline(always)]
    unsafe fn fill<G: Gpu>(gpu: G, args: &StagedArgs, stage: u32, from: &[GlobalPtr<f32>; ROWS]) {
        let shared = SharedPtr::<f32>::from_offset(0);
        // SAFETY: as promised by the caller: a stage has `INPUTS` inputs at most, and rows have them all.
        unsafe {
            let [start] = gpu.load_readonly(args.map_starts.add(stage as usize));
            let [end] = gpu.load_readonly(args.map_starts.add(stage as usize + 1));
            strided(gpu.thread_idx_x(), end - start, THREADS, |place| {
                let [input] = gpu.load_readonly(args.map.add((start + place) as usize));
                for (f, from) in from.iter().enumerate() {
                    let number: [f32; 1] = gpu.load_readonly(from.add(input as usize));
                    gpu.shared_store(shared.add(f as u32 * INPUTS + place), number);
                }
            });
        }
    }

    /// Adds the products of a thread's edges that are in a stage.
    ///
    /// # Safety
    /// As [`fill`](Self::fill), which all threads have done.
    #[inline(always)]
    unsafe fn add<G: Gpu>(gpu: G, args: &StagedArgs, stage: u32, sums: &mut [f32; ROWS]) {
        let shared = SharedPtr::<f32>::from_offset(0);
        let warp = stage * WARPS + gpu.thread_idx_x() / WARP;
        // SAFETY: as promised by the caller: a warp has its steps, each of 32 edges, with places in the stage.
        unsafe {
            let [start] = gpu.load_readonly(args.steps.add(warp as usize));
            let [end] = gpu.load_readonly(args.steps.add(warp as usize + 1));
            strided(start, end, 1, |step| {
                let edge = step as usize * WARP as usize + gpu.lane_id() as usize;
                let [place] = gpu.load_readonly(args.places.add(edge));
                let [weight] = gpu.load_readonly(args.weights.add(edge));
                if place != PADDED {
                    for (f, sum) in sums.iter_mut().enumerate() {
                        let [number] =
                            gpu.shared_load::<f32, 1>(shared.add(f as u32 * INPUTS + u32::from(place)));
                        *sum = gpu.fma(weight, number, *sum);
                    }
                }
            });
        }
    }

    /// Writes a thread's outputs.
    ///
    /// # Safety
    /// The first of the rows is there; the sums are those of the thread's output.
    #[inline(always)]
    unsafe fn finish<G: Gpu>(gpu: G, args: &StagedArgs, [first_row, rows]: [u32; 2], sums: &[f32; ROWS]) {
        let output = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        let is_there = output < args.output_width;
        let mut bias = 0.0;
        // SAFETY: an output that is there has a bias, and a place in each row that is there.
        unsafe {
            if is_there {
                [bias] = gpu.load_readonly(args.bias.add(output as usize));
            }
            for (f, &sum) in sums.iter().enumerate() {
                let row = first_row + f as u32;
                let result = args.limits.of(sum + bias);
                let is_written = is_there && row < rows;
                if is_written {
                    let out = args.out.add_rows(row, args.output_width * 4);
                    gpu.store(out.add(output as usize), [result]);
                }
                if args.rows.alive.address() != 0 {
                    let is_alive = gpu.warp_any(FULL_WARP, is_written && result != 0.0);
                    if is_alive && gpu.lane_id() == 0 {
                        args.rows.mark(gpu, row / TILE_ROWS, 1 << (row % TILE_ROWS));
                    }
                }
            }
        }
    }
}
