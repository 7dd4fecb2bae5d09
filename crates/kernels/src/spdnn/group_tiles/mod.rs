//! A layer by groups of outputs that have the same inputs, as a small matrix product each: copies run ahead of the products.
mod copy;

use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, Gpu, SharedPtr, WARP};

use super::{GroupsArgs, LayerInput, NO_OUTPUT, Scheme, TILE_ROWS, Tile, alive};
use crate::common::reduce;
use crate::{Bounds, DeviceValue, Kernel};

/// A layer: a warp has a group of 16 outputs at most and two tiles of 32 rows. `X` is the type of the input, `W`
/// that of the weights.
///
/// ```text
///            rows of two tiles: 8 lanes × 4           a lane has 4 rows of each tile, and 4 outputs: for an input it
///           ┌────┬────┬─ … ─┬────┐                    loads 8 numbers and 4 weights from shared memory, and adds
///   input i │  0 │  1 │     │  7 │   weights 4 × 4     32 products
///           └────┴────┴─ … ─┴────┘   lane / 8
/// ```
/// Inputs come in stages of 16, by asynchronous copies: while a stage is worked on, the next is on its way, also that of the
/// next group or rows. Each warp has its own stages, and waits for nobody else.
///
/// Sums of an output add up its edges in the group's order, and then the bias, as [`InputGroups`](super::InputGroups) does. All rows
/// of a tile that has any are written: those past the last are read again by the next layer, and count nowhere.
#[derive(Debug)]
pub struct GroupTiles<X, W, const WARPS: u32>(PhantomData<(X, W)>);

/// Outputs of a group.
const OUTPUTS: u32 = 16;
/// Tiles of a warp.
const TILES: u32 = 2;
/// Inputs of a stage.
const STAGE: u32 = 16;
/// Rows, and outputs, of a lane: a vector of 16 bytes.
const VECTOR: u32 = 4;
/// Lanes that share out the rows of a tile.
const ROW_LANES: u32 = TILE_ROWS / VECTOR;
/// Words of a stage that are inputs of the rows; weights come after them.
const INPUT_WORDS: u32 = STAGE * TILES * TILE_ROWS;

/// Words of the weights of an input.
const fn weight_words<W: DeviceValue>() -> u32 {
    OUTPUTS * W::TYPE.bytes() / 4
}

const fn stage_words<W: DeviceValue>() -> u32 {
    INPUT_WORDS + STAGE * weight_words::<W>()
}

/// A part of a group's inputs, for some rows.
#[derive(Clone, Copy)]
struct Stage {
    /// Which two tiles.
    span: u32,
    /// Which group.
    group: u32,
    /// Index of the first input in the layer's lists.
    first: u32,
    /// Inputs of the group from the first on.
    left: u32,
    /// This lane's input, of lanes that have one.
    input: u32,
}

/// Sums of a lane: rows of each tile, by outputs.
type Sums = [[[f32; VECTOR as usize]; VECTOR as usize]; TILES as usize];

impl<X: LayerInput, W: DeviceValue, const WARPS: u32> Kernel for GroupTiles<X, W, WARPS> {
    type Args = GroupsArgs<X::Element, W>;
    type Tile = Tile;

    const TILE: Tile = Tile {
        scheme: Scheme::GroupTiles { outputs: OUTPUTS, tiles: TILES },
        input_bits: X::BITS,
        weights: W::TYPE,
    };
    const THREADS: u32 = WARPS * WARP;
    const SHARED_BYTES: u32 = 2 * WARPS * stage_words::<W>() * 4;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 20 / WARPS };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let warp = gpu.thread_idx_x() / WARP;
        let own = SharedPtr::<f32>::from_offset(0).add(2 * warp * stage_words::<W>());
        let index = gpu.block_idx_x() * WARPS + warp;
        // SAFETY: the arguments describe the layer; a warp alone has its group and tiles, and its shared memory.
        unsafe {
            let rows = args.rows.count(gpu);
            let spans = rows.div_ceil(TILE_ROWS * TILES);
            let work = Work::<G, X, W> { gpu, args: &args, rows, lane: gpu.lane_id() };
            let mut now = work.begin(index / args.groups, index % args.groups, spans);
            if now.span >= spans {
                return;
            }
            let mut buffer = 0;
            work.copy(&now, own);
            gpu.copy_async_commit();
            let mut next = work.after(&now, spans, gpu.grid_dim_x() * WARPS);
            let mut sums: Sums = Default::default();
            loop {
                let stage = own.add(buffer * stage_words::<W>());
                buffer ^= 1;
                if next.span < spans {
                    work.copy(&next, own.add(buffer * stage_words::<W>()));
                }
                gpu.copy_async_commit();
                let later = work.after(&next, spans, gpu.grid_dim_x() * WARPS);
                gpu.copy_async_wait::<1>();
                gpu.sync_warp(FULL_WARP);
                work.multiply(&now, stage, &mut sums);
                gpu.sync_warp(FULL_WARP);
                if now.left <= STAGE {
                    work.finish(&now, &sums);
                    sums = Default::default();
                }
                if next.span >= spans {
                    return;
                }
                (now, next) = (next, later);
            }
        }
    }
}

/// What a warp knows of its work.
struct Work<'a, G, X: LayerInput, W> {
    gpu: G,
    args: &'a GroupsArgs<X::Element, W>,
    rows: u32,
    lane: u32,
}

impl<G: Gpu, X: LayerInput, W: DeviceValue> Work<'_, G, X, W> {
    /// The first stage of a group; only its span where there are no such rows.
    ///
    /// # Safety
    /// The group is one of the layer's.
    #[inline(always)]
    unsafe fn begin(&self, span: u32, group: u32, spans: u32) -> Stage {
        let mut stage = Stage { span, group, first: 0, left: 0, input: 0 };
        if span < spans {
            // SAFETY: as promised by the caller.
            unsafe {
                [stage.first] = self.gpu.load_readonly(self.args.starts.add(group as usize));
                [stage.left] = self.gpu.load_readonly(self.args.counts.add(group as usize));
                stage.input = self.input(&stage);
            }
        }
        stage
    }

    /// The stage after this one: of the same group, or of the group that is `warps` further.
    ///
    /// # Safety
    /// The stage is one of the warp's, or past the last.
    #[inline(always)]
    unsafe fn after(&self, stage: &Stage, spans: u32, warps: u32) -> Stage {
        let mut after = *stage;
        // SAFETY: a group has the inputs that are left of it.
        unsafe {
            if stage.left > STAGE {
                after.first += STAGE;
                after.left -= STAGE;
                after.input = self.input(&after);
                return after;
            }
            let group = stage.group + warps;
            self.begin(stage.span + group / self.args.groups, group % self.args.groups, spans)
        }
    }

    /// The lane's input of a stage.
    ///
    /// # Safety
    /// The group has the inputs that are left.
    #[inline(always)]
    unsafe fn input(&self, stage: &Stage) -> u32 {
        let mut input = 0;
        if self.lane < STAGE && self.lane < stage.left {
            // SAFETY: as promised by the caller.
            [input] =
                unsafe { self.gpu.load_readonly(self.args.inputs.add((stage.first + self.lane) as usize)) };
        }
        input
    }

    /// Adds the products of a stage that is there.
    ///
    /// # Safety
    /// The copies of the stage are over, for all lanes.
    #[inline(always)]
    unsafe fn multiply(&self, stage: &Stage, from: SharedPtr<f32>, sums: &mut Sums) {
        let lane = self.lane;
        let weights = SharedPtr::<W>::from_offset(from.add(INPUT_WORDS).offset());
        let weights = weights.add(lane / ROW_LANES * VECTOR);
        let count = if stage.left < STAGE { stage.left } else { STAGE };
        let mut place = 0;
        // SAFETY: as promised by the caller; sums of rows past the last are not used.
        unsafe {
            while place < count {
                let weight: [W; 4] = self.gpu.shared_load(weights.add(place * OUTPUTS));
                let weight = weight.map(|weight| weight.to_f32(self.gpu));
                let numbers = [self.numbers(from, place, 0), self.numbers(from, place, 1)];
                self.add(&weight, &numbers[0], &mut sums[0]);
                self.add(&weight, &numbers[1], &mut sums[1]);
                place += 1;
            }
        }
    }

    /// Adds the products of an input's weights with its rows of a tile.
    #[inline(always)]
    fn add(&self, weight: &[f32; 4], numbers: &[f32; 4], sums: &mut [[f32; 4]; 4]) {
        for (sums, &weight) in sums.iter_mut().zip(weight) {
            for (sum, &number) in sums.iter_mut().zip(numbers) {
                *sum = self.gpu.fma(weight, number, *sum);
            }
        }
    }

    /// The lane's rows of an input.
    ///
    /// # Safety
    /// As [`multiply`](Self::multiply).
    #[inline(always)]
    unsafe fn numbers(&self, from: SharedPtr<f32>, place: u32, tile: u32) -> [f32; 4] {
        let row = self.lane % ROW_LANES * VECTOR;
        // SAFETY: as promised by the caller.
        unsafe {
            if X::BITS {
                let [word] = self.gpu.shared_load::<f32, 1>(from.add(place * TILES + tile));
                let bits = word.to_bits() >> row;
                [bits & 1, bits >> 1 & 1, bits >> 2 & 1, bits >> 3 & 1].map(|bit| bit as f32)
            } else {
                self.gpu.shared_load(from.add((place * TILES + tile) * TILE_ROWS + row))
            }
        }
    }

    /// Writes the outputs, and marks the rows that are alive. Tiles and outputs are written out, as LLVM does not unroll so much.
    ///
    /// # Safety
    /// The stage is the last of its group.
    #[inline(always)]
    unsafe fn finish(&self, stage: &Stage, sums: &Sums) {
        const { assert!(TILES == 2, "two tiles are written out below") }
        let of_lane = (stage.group * OUTPUTS + self.lane / ROW_LANES * VECTOR) as usize;
        // SAFETY: the group has so many outputs, and biases.
        unsafe {
            let outputs: [u32; 4] = self.gpu.load_readonly(self.args.outputs.add(of_lane));
            let bias: [f32; 4] = self.gpu.load_readonly(self.args.bias.add(of_lane));
            self.finish_tile(stage.span * TILES, &outputs, &bias, &sums[0]);
            self.finish_tile(stage.span * TILES + 1, &outputs, &bias, &sums[1]);
        }
    }

    /// A tile of [`finish`](Self::finish).
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn finish_tile(&self, tile: u32, outputs: &[u32; 4], bias: &[f32; 4], sums: &[[f32; 4]; 4]) {
        if tile * TILE_ROWS >= self.rows {
            return;
        }
        let row = self.lane % ROW_LANES * VECTOR;
        let tiles: GlobalMut<f32> = self.args.out.add_rows(self.args.output_width, TILE_ROWS * 4 * tile);
        let place = tiles.add(row as usize);
        let mut alive = 0;
        // SAFETY: tiles that have rows have a place for each output of the layer, and the group's are this warp's.
        unsafe {
            alive |= self.output(place, outputs[0], bias[0], &sums[0]);
            alive |= self.output(place, outputs[1], bias[1], &sums[1]);
            alive |= self.output(place, outputs[2], bias[2], &sums[2]);
            alive |= self.output(place, outputs[3], bias[3], &sums[3]);
            if self.args.rows.alive.address() != 0 {
                let first = tile * TILE_ROWS + row;
                let left = self.rows.saturating_sub(first);
                let there = if left < VECTOR { (1 << left) - 1 } else { 0b1111 };
                let word = (alive & there) << row;
                let word = reduce(self.gpu, FULL_WARP, WARP, word, |a, b| a | b);
                if self.lane == 0 {
                    self.args.rows.mark(self.gpu, tile, word);
                }
            }
        }
    }

    /// Writes an output, where there is one; gives a bit for each row in which it is not zero.
    ///
    /// # Safety
    /// The output has a place there.
    #[inline(always)]
    unsafe fn output(&self, tile: GlobalMut<f32>, output: u32, bias: f32, sums: &[f32; 4]) -> u32 {
        if output == NO_OUTPUT {
            return 0;
        }
        let of = |sum: f32| self.args.limits.of(sum + bias);
        let numbers = [of(sums[0]), of(sums[1]), of(sums[2]), of(sums[3])];
        // SAFETY: as promised by the caller.
        unsafe { self.gpu.store(tile.add_rows(output, TILE_ROWS * 4), numbers) };
        alive(numbers)
    }
}
