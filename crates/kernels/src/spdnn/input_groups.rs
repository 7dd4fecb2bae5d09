//! A layer by groups of outputs that have the same inputs; mod.rs draws it.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, Scalar, WARP};

use super::{LayerInput, Limits, NO_OUTPUT, Rows, Scheme, TILE_ROWS, Tile};
use crate::{Bounds, DeviceValue, Kernel};

/// A layer: a warp has a group of `R` outputs at most and `V` tiles of 32 rows, a lane a row of each. `X` is the type of the input,
/// `W` that of the weights.
///
/// Warps take one group after another for the same rows, so that what groups share of the inputs comes from a cache, and go
/// on to the next rows. Sums of an output add up its edges in the group's order, and then the bias: they are the same
/// whatever `R` and `V` are.
#[derive(Debug)]
pub struct InputGroups<X, W, const R: usize, const V: usize, const WARPS: u32>(PhantomData<(X, W)>);

/// What [`InputGroups`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GroupsArgs<X, W> {
    /// The rows.
    pub rows: Rows,
    /// The features, in tiles of 32 rows. All rows of a tile may be read; what those past the last are does not matter.
    pub input: GlobalPtr<X>,
    /// The result likewise: all rows of a tile are written.
    pub out: GlobalMut<f32>,
    /// For each group the index of its first input in `inputs`; a multiple of 4.
    pub starts: GlobalPtr<u32>,
    /// For each group, how many inputs it has.
    pub counts: GlobalPtr<u32>,
    /// The inputs of all groups; 16-byte aligned, and each group's likewise.
    pub inputs: GlobalPtr<u32>,
    /// For each of `inputs` `R` weights, one an output.
    pub weights: GlobalPtr<W>,
    /// For each group its `R` outputs, [`NO_OUTPUT`] where it has fewer.
    pub outputs: GlobalPtr<u32>,
    /// For each of `outputs` its bias.
    pub bias: GlobalPtr<f32>,
    /// Groups (not 0).
    pub groups: u32,
    /// Inputs of the layer.
    pub input_width: u32,
    /// Outputs of the layer.
    pub output_width: u32,
    /// What is made of sums.
    pub limits: Limits,
}

/// Inputs whose loads are under way together.
const STEP: usize = 4;

impl<X: LayerInput, W: DeviceValue, const R: usize, const V: usize, const WARPS: u32> Kernel
    for InputGroups<X, W, R, V, WARPS>
{
    type Args = GroupsArgs<X::Element, W>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(R == 1 || R.is_multiple_of(4), "weights are loaded one by one, or four at once");
        Tile {
            scheme: Scheme::InputGroups { outputs: R as u32, tiles: V as u32 },
            input_bits: X::BITS,
            weights: W::TYPE,
        }
    };
    const THREADS: u32 = WARPS * WARP;
    /// More sums take more registers, and do with fewer warps: they wait for fewer loads.
    const BOUNDS: Bounds = {
        let warps = match R * V {
            ..=16 => 24,
            17..=32 => 12,
            _ => 8,
        };
        Bounds { max_threads: Self::THREADS, min_blocks: warps / WARPS }
    };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let warp = gpu.block_idx_x() * WARPS + gpu.thread_idx_x() / WARP;
        let warps = gpu.grid_dim_x() * WARPS;
        // SAFETY: the arguments describe the layer; a warp alone has its group and tiles.
        unsafe {
            let rows = args.rows.count(gpu);
            let spans = rows.div_ceil(TILE_ROWS * V as u32);
            let (mut span, mut group) = (warp / args.groups, warp % args.groups);
            while span < spans {
                Self::group(gpu, &args, rows, span, group);
                group += warps;
                span += group / args.groups;
                group %= args.groups;
            }
        }
    }
}

impl<X: LayerInput, W: DeviceValue, const R: usize, const V: usize, const WARPS: u32>
    InputGroups<X, W, R, V, WARPS>
{
    /// A group's outputs, of `V` tiles.
    ///
    /// # Safety
    /// The group is one of the layer's, and the first of the tiles has rows.
    #[inline(always)]
    unsafe fn group<G: Gpu>(gpu: G, args: &GroupsArgs<X::Element, W>, rows: u32, span: u32, group: u32) {
        let lane = gpu.lane_id();
        let mut sources = [0; V];
        let mut first = [args.input; V];
        let mut sums = [[0.0; R]; V];
        // SAFETY: a row past the last stands for the last, so that all that is loaded is there.
        unsafe {
            for v in 0..V {
                let row = (span * V as u32 + v as u32) * TILE_ROWS + lane;
                sources[v] = args.rows.source(gpu, if row < rows { row } else { rows - 1 });
                first[v] = X::of_row(args.input, sources[v], args.input_width);
            }
            let [start] = gpu.load_readonly(args.starts.add(group as usize));
            let [count] = gpu.load_readonly(args.counts.add(group as usize));
            let mut inputs = args.inputs.add(start as usize);
            let mut weights = args.weights.add(start as usize * R);
            let mut left = count;
            while left >= STEP as u32 {
                let steps: [u32; STEP] = gpu.load_readonly(inputs);
                let mut elements = [[X::Element::default(); V]; STEP];
                for (step, &input) in steps.iter().enumerate() {
                    for v in 0..V {
                        elements[step][v] = X::load(gpu, first[v], input);
                    }
                }
                for (step, elements) in elements.iter().enumerate() {
                    Self::add(gpu, weights.add(step * R), elements, &sources, &mut sums);
                }
                inputs = inputs.add(STEP);
                weights = weights.add(STEP * R);
                left -= STEP as u32;
            }
            while left > 0 {
                let [input] = gpu.load_readonly(inputs);
                let mut elements = [X::Element::default(); V];
                for v in 0..V {
                    elements[v] = X::load(gpu, first[v], input);
                }
                Self::add(gpu, weights, &elements, &sources, &mut sums);
                inputs = inputs.add(1);
                weights = weights.add(R);
                left -= 1;
            }
            Self::finish(gpu, args, rows, span, group, &sums);
        }
    }

    /// Adds an input's products to the sums.
    ///
    /// # Safety
    /// There are `R` weights.
    #[inline(always)]
    unsafe fn add<G: Gpu>(
        gpu: G,
        weights: GlobalPtr<W>,
        elements: &[X::Element; V],
        sources: &[u32; V],
        sums: &mut [[f32; R]; V],
    ) {
        // SAFETY: as promised by the caller.
        let weight = unsafe { load_each::<G, W, R>(gpu, weights) }.map(|weight| weight.to_f32(gpu));
        for v in 0..V {
            let number = X::number(elements[v], sources[v]);
            for r in 0..R {
                sums[v][r] = gpu.fma(weight[r], number, sums[v][r]);
            }
        }
    }

    /// Writes the outputs.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    #[inline(always)]
    unsafe fn finish<G: Gpu>(
        gpu: G,
        args: &GroupsArgs<X::Element, W>,
        rows: u32,
        span: u32,
        group: u32,
        sums: &[[f32; R]; V],
    ) {
        let lane = gpu.lane_id();
        let first_tile = span * V as u32;
        let mut is_alive = [false; V];
        // SAFETY: the rows that are there have a place for each output of the layer, and the group's are this warp's.
        unsafe {
            let outputs = load_each::<G, u32, R>(gpu, args.outputs.add(group as usize * R));
            let bias = load_each::<G, f32, R>(gpu, args.bias.add(group as usize * R));
            for v in 0..V {
                let tile = first_tile + v as u32;
                if tile * TILE_ROWS < rows {
                    let is_there = tile * TILE_ROWS + lane < rows;
                    let place = args.out.add_rows(args.output_width, TILE_ROWS * 4 * tile).add(lane as usize);
                    for r in 0..R {
                        let result = args.limits.of(sums[v][r] + bias[r]);
                        if outputs[r] != NO_OUTPUT {
                            is_alive[v] |= is_there && result != 0.0;
                            gpu.store(place.add_rows(outputs[r], TILE_ROWS * 4), [result]);
                        }
                    }
                }
            }
            if args.rows.alive.address() != 0 {
                for (v, &is_alive) in is_alive.iter().enumerate() {
                    let alive = gpu.warp_ballot(FULL_WARP, is_alive);
                    if lane == 0 {
                        args.rows.mark(gpu, first_tile + v as u32, alive);
                    }
                }
            }
        }
    }
}

/// Loads `R` elements: one, or four at once.
///
/// # Safety
/// They are there, nobody writes them, and four are aligned.
#[inline(always)]
unsafe fn load_each<G: Gpu, T: Scalar, const R: usize>(gpu: G, from: GlobalPtr<T>) -> [T; R] {
    let mut elements = [T::default(); R];
    // SAFETY: as promised by the caller.
    unsafe {
        if R == 1 {
            [elements[0]] = gpu.load_readonly(from);
        } else {
            for four in 0..R / 4 {
                let loaded: [T; 4] = gpu.load_readonly(from.add(four * 4));
                for i in 0..4 {
                    elements[four * 4 + i] = loaded[i];
                }
            }
        }
    }
    elements
}
