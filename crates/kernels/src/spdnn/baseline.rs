//! A layer as the paper's listing 1 has it: a thread for each output of a row.
use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu};

use super::{Limits, Rows, Scheme, TILE_ROWS, Tile};
use crate::{Kernel, ValueType};

/// A layer: a block has 256 outputs of a row, and goes on to the next rows. Each thread reads its output's edges from CSR, and the
/// inputs from wherever they are.
#[derive(Debug)]
pub struct Baseline;

/// What [`Baseline`] takes. Rows are the grid's y.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BaselineArgs {
    /// The rows.
    pub rows: Rows,
    /// The features, row by row.
    pub input: GlobalPtr<f32>,
    /// The result likewise.
    pub out: GlobalMut<f32>,
    /// For each output the index of its first edge, and the end of the last.
    pub offsets: GlobalPtr<u32>,
    /// The input of each edge.
    pub inputs: GlobalPtr<u32>,
    /// The weight of each edge.
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

impl Kernel for Baseline {
    type Args = BaselineArgs;
    type Tile = Tile;

    const TILE: Tile =
        Tile { scheme: Scheme::Baseline { outputs: THREADS }, input_bits: false, weights: ValueType::F32 };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: BaselineArgs) {
        let output = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        let is_there = output < args.output_width;
        let (mut start, mut end, mut bias) = (0, 0, 0.0);
        // SAFETY: an output that is there has its edges and bias, and a row its inputs and outputs. An output of a row is one
        // thread's.
        unsafe {
            if is_there {
                [start] = gpu.load_readonly(args.offsets.add(output as usize));
                [end] = gpu.load_readonly(args.offsets.add(output as usize + 1));
                [bias] = gpu.load_readonly(args.bias.add(output as usize));
            }
            let rows = args.rows.count(gpu);
            let mut row = gpu.block_idx_y();
            while row < rows {
                let input = args.input.add_rows(args.rows.source(gpu, row), args.input_width * 4);
                let mut sum = 0.0;
                for edge in start as usize..end as usize {
                    let [at] = gpu.load_readonly(args.inputs.add(edge));
                    let [weight] = gpu.load_readonly(args.weights.add(edge));
                    let [number] = gpu.load_readonly(input.add(at as usize));
                    sum = gpu.fma(weight, number, sum);
                }
                let result = args.limits.of(sum + bias);
                if is_there {
                    let out = args.out.add_rows(row, args.output_width * 4);
                    gpu.store(out.add(output as usize), [result]);
                }
                if args.rows.alive.address() != 0 {
                    let is_alive = gpu.sync_threads_or(is_there && result != 0.0);
                    if is_alive && gpu.thread_idx_x() == 0 {
                        args.rows.mark(gpu, row / TILE_ROWS, 1 << (row % TILE_ROWS));
                    }
                }
                row += gpu.grid_dim_y();
            }
        }
    }
}
