//! A layer by groups of outputs that have the same inputs, on tensor cores; exact.rs draws a step.
mod loads;

use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, WARP};

use super::exact::{MMA_OUTPUTS, OF_LANE, add_products, pairs};
use super::{LayerInput, Limits, NO_OUTPUT, Rows, Scheme, TILE_ROWS, Tile, alive};
use crate::common::reduce;
use crate::{Bounds, Kernel, ValueType};
use loads::Data;

/// A layer: a warp has a group of 16 outputs and a tile of 32 rows. `X` is the type of the input.
///
/// ```text
///   a step: 16 inputs of 32 rows            lane g·4 + t loads four rows of each of its inputs, 16 bytes: these are row g of four
///   ┌──────┬──────┬─ … ─┬──────┐            products (B), which share the weights (A). It gets rows 4t … 4t+3 and 4t+16 … 4t+19 of
///   │ 0…3  │ 4…7  │     │28…31 │ input i    outputs g and g+8: four lanes store 64 bytes side by side
///   └──────┴──────┴─ … ─┴──────┘
/// ```
/// Weights are bfloat16, and products with them are exact. A warp has neighbouring groups of a tile, and then of the next tile: steps one
/// after another. While one is multiplied, features and weights of the next are on their way to registers, and the inputs of the one
/// after it. Neighbouring groups share inputs, which the L1 cache then has. Sums are in the tensor cores' order, the bias comes last.
#[derive(Debug)]
pub struct GroupMma<X, const WARPS: u32>(PhantomData<X>);

/// What [`GroupMma`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GroupMmaArgs<X> {
    /// The rows.
    pub rows: Rows,
    /// The features, in tiles of 32 rows. All rows of a tile may be read; what those past the last are does not matter.
    pub input: GlobalPtr<X>,
    /// The result likewise: all rows of a tile are written.
    pub out: GlobalMut<f32>,
    /// For each group its first step, ascending, and the number of all. No group is without a step.
    pub starts: GlobalPtr<u32>,
    /// The inputs of all steps, [`NO_INPUT`](super::NO_INPUT) where a step has fewer.
    pub inputs: GlobalPtr<u32>,
    /// The weights of all steps: [`weight_place`](super::weight_place). Zeros where there is no output or input.
    pub weights: GlobalPtr<u32>,
    /// For each group its 16 outputs, [`NO_OUTPUT`] where it has fewer.
    pub outputs: GlobalPtr<u32>,
    /// For each of `outputs` its bias.
    pub bias: GlobalPtr<f32>,
    /// Groups (not 0).
    pub groups: u32,
    /// Inputs of the layer.
    pub input_width: u32,
    /// Outputs of the layer.
    pub output_width: u32,
    /// Not 0 where no feature is infinite.
    pub bounded: u32,
    /// What is made of sums.
    pub limits: Limits,
}

/// Rows of a lane.
const VECTOR: u32 = 4;

/// Sums of a lane, by the four products of a step.
type Sums = [[f32; 4]; VECTOR as usize];
/// Features of a lane in a step: rows by inputs.
type Numbers = [[f32; VECTOR as usize]; OF_LANE as usize];

/// The first of a lane's rows in a tile, when it loads: what lanes load is split so that they store side by side.
const fn first_row(lane: u32) -> u32 {
    let g = lane / OF_LANE;
    (g / 2 + g % 2 * 4) * VECTOR
}

impl<X: LayerInput, const WARPS: u32> Kernel for GroupMma<X, WARPS> {
    type Args = GroupMmaArgs<X::Element>;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::GroupMma, input_bits: X::BITS, weights: ValueType::Bf16 };
    const THREADS: u32 = WARPS * WARP;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 16 / WARPS };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let index = gpu.block_idx_x() * WARPS + gpu.thread_idx_x() / WARP;
        // SAFETY: the arguments describe the layer; a warp alone has its groups and tiles.
        unsafe {
            let rows = args.rows.count(gpu);
            let tiles = rows.div_ceil(TILE_ROWS);
            // No overflow: each pair of a tile and a group has 128 bytes of the result.
            let each = (tiles * args.groups).div_ceil(gpu.grid_dim_x() * WARPS);
            let first = index * each;
            if first >= tiles * args.groups {
                return;
            }
            let work = Work::<G, X> { gpu, args: &args, rows, tiles, lane: gpu.lane_id() };
            let left = tiles * args.groups - first;
            let mut group = work.group(first, if left < each { left } else { each });
            let mut loads = work.loads(&group);
            let mut even = work.load(&mut loads);
            let mut sums: Sums = Default::default();
            loop {
                let odd = work.load(&mut loads);
                if work.step(&even, &mut group, &mut sums) {
                    return;
                }
                even = work.load(&mut loads);
                if work.step(&odd, &mut group, &mut sums) {
                    return;
                }
            }
        }
    }
}

/// What a warp knows of its work.
struct Work<'a, G, X: LayerInput> {
    gpu: G,
    args: &'a GroupMmaArgs<X::Element>,
    rows: u32,
    tiles: u32,
    lane: u32,
}

/// The group whose steps are multiplied.
struct Group {
    tile: u32,
    group: u32,
    /// Steps are counted over the layer.
    step: u32,
    end: u32,
    /// Where the steps of the next group end.
    next_end: u32,
    outputs: [u32; 2],
    bias: [f32; 2],
    /// Groups that are left, this one with them.
    left: u32,
}

impl<G: Gpu, X: LayerInput> Work<'_, G, X> {
    /// The first of so many groups.
    ///
    /// # Safety
    /// There are so many.
    #[inline(always)]
    unsafe fn group(&self, first: u32, left: u32) -> Group {
        let (tile, group) = (first / self.args.groups, first % self.args.groups);
        let mut of =
            Group { tile, group, step: 0, end: 0, next_end: 0, outputs: [0; 2], bias: [0.0; 2], left };
        // SAFETY: as promised by the caller.
        unsafe {
            [of.step] = self.gpu.load_readonly(self.args.starts.add(group as usize));
            [of.next_end] = self.gpu.load_readonly(self.args.starts.add(group as usize + 1));
            self.enter(&mut of);
        }
        of
    }

    /// Loads what belongs to a group, and where the next one ends.
    ///
    /// # Safety
    /// The group is there.
    #[inline(always)]
    unsafe fn enter(&self, of: &mut Group) {
        of.end = of.next_end;
        let next = if of.group + 1 < self.args.groups { of.group + 1 } else { 0 };
        let at = (of.group * MMA_OUTPUTS + self.lane / OF_LANE) as usize;
        let second = at + MMA_OUTPUTS as usize / 2;
        // SAFETY: as promised by the caller.
        unsafe {
            [of.next_end] = self.gpu.load_readonly(self.args.starts.add(next as usize + 1));
            [of.outputs[0]] = self.gpu.load_readonly(self.args.outputs.add(at));
            [of.outputs[1]] = self.gpu.load_readonly(self.args.outputs.add(second));
            [of.bias[0]] = self.gpu.load_readonly(self.args.bias.add(at));
            [of.bias[1]] = self.gpu.load_readonly(self.args.bias.add(second));
        }
    }

    /// Multiplies a step, and ends the group where it is the last. Whether that was the last group.
    ///
    /// # Safety
    /// The step is that of the group.
    #[inline(always)]
    unsafe fn step(&self, data: &Data, group: &mut Group, sums: &mut Sums) -> bool {
        self.multiply(data.a, &data.numbers, sums);
        group.step += 1;
        if group.step < group.end {
            return false;
        }
        // SAFETY: as promised by the caller.
        unsafe {
            self.finish(group, sums);
            *sums = Default::default();
            group.left -= 1;
            if group.left == 0 {
                return true;
            }
            group.group += 1;
            if group.group == self.args.groups {
                (group.group, group.step) = (0, 0);
                group.tile += 1;
            }
            self.enter(group);
        }
        false
    }

    /// Adds the products of a step. Products are written out, as LLVM does not unroll so much.
    #[inline(always)]
    fn multiply(&self, a: [u32; 4], numbers: &Numbers, sums: &mut Sums) {
        if X::BITS {
            self.add_bits::<0>(a, numbers, sums);
            self.add_bits::<1>(a, numbers, sums);
            self.add_bits::<2>(a, numbers, sums);
            self.add_bits::<3>(a, numbers, sums);
        } else if self.args.bounded != 0 {
            self.add_rows::<true>(a, numbers, sums);
        } else {
            self.add_rows::<false>(a, numbers, sums);
        }
    }

    #[inline(always)]
    fn add_rows<const BOUNDED: bool>(&self, a: [u32; 4], x: &Numbers, sums: &mut Sums) {
        let of = |row: usize| [x[0][row], x[1][row], x[2][row], x[3][row]];
        sums[0] = add_products::<G, BOUNDED>(self.gpu, a, of(0), sums[0]);
        sums[1] = add_products::<G, BOUNDED>(self.gpu, a, of(1), sums[1]);
        sums[2] = add_products::<G, BOUNDED>(self.gpu, a, of(2), sums[2]);
        sums[3] = add_products::<G, BOUNDED>(self.gpu, a, of(3), sums[3]);
    }

    /// Bits are bfloat16 numbers as they are.
    #[inline(always)]
    fn add_bits<const ROW: u32>(&self, a: [u32; 4], words: &Numbers, sums: &mut Sums) {
        let row = first_row(self.lane) + ROW;
        let number = |of: usize| if words[of][0].to_bits() >> row & 1 != 0 { 1.0 } else { 0.0 };
        let b = pairs([number(0), number(1), number(2), number(3)]);
        sums[ROW as usize] = self.gpu.mma_bf16(a, b, sums[ROW as usize]);
    }

    /// Writes the outputs, and marks the rows that are alive.
    ///
    /// # Safety
    /// All steps of the group were added.
    #[inline(always)]
    unsafe fn finish(&self, of: &Group, sums: &Sums) {
        let row = self.lane % OF_LANE * VECTOR;
        let tile: GlobalMut<f32> = self.args.out.add_rows(self.args.output_width, TILE_ROWS * 4 * of.tile);
        let place = tile.add(row as usize);
        let four = |of: usize| [sums[0][of], sums[1][of], sums[2][of], sums[3][of]];
        // SAFETY: tiles that have rows have a place for each output of the layer, and the group's are this warp's.
        unsafe {
            let mut alive = self.output(place, of.outputs[0], of.bias[0], [four(0), four(1)]);
            alive |= self.output(place, of.outputs[1], of.bias[1], [four(2), four(3)]);
            if self.args.rows.alive.address() != 0 {
                let left = self.rows - of.tile * TILE_ROWS;
                let there = if left < TILE_ROWS { (1 << left) - 1 } else { u32::MAX };
                let word = reduce(self.gpu, FULL_WARP, WARP, alive << row & there, |a, b| a | b);
                if self.lane == 0 {
                    self.args.rows.mark(self.gpu, of.tile, word);
                }
            }
        }
    }

    /// Writes an output, where there is one, in four rows, and in four of the other half of the tile; gives a bit for each row in which
    /// it is not zero.
    ///
    /// # Safety
    /// The output has a place there.
    #[inline(always)]
    unsafe fn output(&self, tile: GlobalMut<f32>, output: u32, bias: f32, sums: [[f32; 4]; 2]) -> u32 {
        if output == NO_OUTPUT {
            return 0;
        }
        let place = tile.add_rows(output, TILE_ROWS * 4);
        let [first, second] = sums.map(|sums| sums.map(|sum| self.args.limits.of(sum + bias)));
        // SAFETY: as promised by the caller.
        unsafe {
            self.gpu.store(place, first);
            self.gpu.store(place.add(TILE_ROWS as usize / 2), second);
        }
        alive(first) | alive(second) << (TILE_ROWS / 2)
    }
}
