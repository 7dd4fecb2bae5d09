//! Several layers in one kernel, on tensor cores: a block keeps its rows in shared memory from the first of them to the last.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::exact::{MMA_OUTPUTS, OF_LANE, Step, Steps, add_products};
use super::{LayerInput, Limits, NO_OUTPUT, Rows, Scheme, TILE_ROWS, Tile};
use crate::common::strided;
use crate::{Bounds, Kernel, ValueType};

/// Layers of at most [`FUSED_WIDTH`] inputs and outputs: a block has 16 rows.
///
/// ```text
///   shared memory, twice: what a layer reads, and what it writes            a warp has groups one after another: of each 16
///   ┌──────────┬──────────┬─ … ─┬────────────┐                              outputs and 16 rows, two products a step and part
///   │ 16 rows  │ 16 rows  │     │ zeros, for │   64 bytes an input;         of a feature (exact.rs). The weights of the next two
///   │ of one   │ of one   │     │ no input   │   places: fused_place        steps, also those of the next layer, are on their way
///   └──────────┴──────────┴─ … ─┴────────────┘                              to registers.
/// ```
/// After each layer the block waits once for all its warps. Blocks go on until no rows are left, each through all layers.
#[derive(Debug)]
pub struct FusedLayers<X, const WARPS: u32>(PhantomData<X>);

/// What [`FusedLayers`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FusedArgs<X> {
    /// The rows.
    pub rows: Rows,
    /// The features, in tiles of 32 rows.
    pub input: GlobalPtr<X>,
    /// The result of the last layer likewise.
    pub out: GlobalMut<f32>,
    /// A [`FusedLayer`] for each layer.
    pub layers: GlobalPtr<u32>,
    /// The arrays of the layers.
    pub arrays: GlobalPtr<u32>,
    /// Which word of the network's arrays `arrays` is.
    pub first_word: u32,
    /// How many layers (1 to [`MAX_FUSED`]).
    pub count: u32,
}

/// A layer of [`FusedArgs::layers`]: words, 16-byte aligned.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FusedLayer {
    /// Groups of outputs (not 0).
    pub groups: u32,
    /// Steps of each group (not 0).
    pub steps: u32,
    /// Which word of the network's arrays the steps' inputs begin at: places, by [`fused_place`].
    pub inputs: u32,
    /// Likewise the weights of steps, as [`GroupMmaArgs::weights`](super::GroupMmaArgs::weights). Two steps, of inputs and weights, and a
    /// group come after the last, which are loaded and not used.
    pub weights: u32,
    /// Likewise the places of each group's outputs, [`NO_OUTPUT`] where it has fewer than 16.
    pub outputs: u32,
    /// Likewise their biases.
    pub bias: u32,
    /// What sums below become: an `f32`.
    pub lo: u32,
    /// What sums above become.
    pub hi: u32,
    /// Inputs of the layer.
    pub input_width: u32,
    /// Outputs of the layer.
    pub output_width: u32,
    /// Not 0 where no feature that it reads is infinite.
    pub bounded: u32,
    /// Not used.
    pub unused: u32,
}

/// Inputs and outputs of a layer at most.
pub const FUSED_WIDTH: u32 = 1024;
/// Layers of a launch at most.
pub const MAX_FUSED: u32 = 128;
/// Stands for no input: the place of zeros.
pub const FUSED_NONE: u32 = FUSED_WIDTH * ROW_BYTES;

/// Rows of a block.
const ROWS: u32 = 16;
const ROW_BYTES: u32 = ROWS * 4;
/// Words of a buffer: zeros come after the last input.
const BUFFER: u32 = (FUSED_WIDTH + 1) * ROWS;
/// Words of a [`FusedLayer`].
pub const LAYER_WORDS: u32 = size_of::<FusedLayer>() as u32 / 4;
/// Inputs whose features are loaded together.
const AT_ONCE: u32 = 4;

/// Where the rows of an input are in shared memory, in bytes: of 16 rows in a line of 128 bytes the second half may come first.
///
/// Four inputs are loaded together, of four rows each. They are in different banks where these two bits differ: whether a number has
/// an odd number of ones, and whether it has at places that are odd. So they do for four neighbouring multiples of any power of
/// two. A warp's own place is `fused_place(input) ^ bytes of its first row`.
pub const fn fused_place(input: u32) -> u32 {
    let odd = (input & 0xaaaa_aaaa).count_ones() & 1;
    ((input ^ ((input >> 1).count_ones() & 1)) * ROW_BYTES) | (odd * (ROW_BYTES / 2))
}

/// Which of four kinds of banks an input is in.
pub const fn fused_banks(input: u32) -> u32 {
    fused_place(input) / (ROW_BYTES / 2) % OF_LANE
}

impl<X: LayerInput, const WARPS: u32> Kernel for FusedLayers<X, WARPS> {
    type Args = FusedArgs<X::Element>;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::FusedLayers, input_bits: X::BITS, weights: ValueType::Bf16 };
    const THREADS: u32 = WARPS * WARP;
    const SHARED_BYTES: u32 = (2 * BUFFER + MAX_FUSED * LAYER_WORDS) * 4;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 1 };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let (thread, lane) = (gpu.thread_idx_x(), gpu.lane_id());
        let block = Block::<G, X, WARPS> { gpu, args: &args, warp: thread / WARP, lane };
        // SAFETY: the arguments describe the layers; a block alone has its rows. A buffer is read between two barriers, and
        // written between others.
        unsafe {
            let rows = args.rows.count(gpu);
            strided(thread, args.count * LAYER_WORDS, Self::THREADS, |at| {
                let word: [u32; 1] = gpu.load_readonly(args.layers.add(at as usize));
                gpu.shared_store(SharedPtr::from_offset(2 * BUFFER * 4).add(at), word);
            });
            if thread < 2 * ROWS {
                let zeros = thread / ROWS * BUFFER + FUSED_WIDTH * ROWS + thread % ROWS;
                gpu.shared_store(SharedPtr::from_offset(0).add(zeros), [0.0_f32]);
            }
            gpu.sync_threads();
            let mut part = gpu.block_idx_x();
            // Whole tiles, as the next layer reads them.
            while part < rows.div_ceil(TILE_ROWS) * (TILE_ROWS / ROWS) {
                let mut layer = block.layer(0);
                let mut ahead = block.begin(&layer);
                block.load(part, rows, layer.input_width);
                let mut at = 0;
                loop {
                    gpu.sync_threads();
                    let next = block.layer(if at + 1 < args.count { at + 1 } else { 0 });
                    if at % 2 == 0 {
                        block.compute::<0>(&layer, &next, &mut ahead);
                    } else {
                        block.compute::<{ BUFFER * 4 }>(&layer, &next, &mut ahead);
                    }
                    at += 1;
                    if at >= args.count {
                        break;
                    }
                    layer = next;
                }
                gpu.sync_threads();
                block.write(part, rows, layer.output_width, at % 2 * BUFFER * 4);
                gpu.sync_threads();
                part += gpu.grid_dim_x();
            }
        }
    }
}

/// What a warp knows.
struct Block<'a, G, X: LayerInput, const WARPS: u32> {
    gpu: G,
    args: &'a FusedArgs<X::Element>,
    warp: u32,
    lane: u32,
}

/// What is on its way to registers.
struct Ahead {
    /// The next two steps.
    steps: [Step; 2],
    /// The step after them.
    place: Steps,
    /// Outputs and biases of the next group.
    group: Group,
}

/// A lane's places of outputs g and g + 8, and their biases.
#[derive(Clone, Copy, Default)]
struct Group {
    places: [u32; 2],
    bias: [f32; 2],
}

/// Sums of a lane, by the two products of a step.
type Sums = [[f32; 4]; 2];

/// Where a warp is in a layer.
struct At {
    /// Groups that are left, this one with them.
    groups: u32,
    /// Steps that are left of this group.
    steps: u32,
    /// Steps that are still to be loaded.
    to_load: u32,
    /// The group.
    group: u32,
    own: Group,
    sums: Sums,
}

impl<G: Gpu, X: LayerInput, const WARPS: u32> Block<'_, G, X, WARPS> {
    /// A layer, from shared memory.
    ///
    /// # Safety
    /// It is one of the layers.
    #[inline(always)]
    unsafe fn layer(&self, at: u32) -> FusedLayer {
        let words = SharedPtr::<u32>::from_offset(2 * BUFFER * 4).add(at * LAYER_WORDS);
        // SAFETY: as promised by the caller; nobody writes them after the first barrier.
        unsafe {
            let [groups, steps, inputs, weights] = self.gpu.shared_load(words);
            let [outputs, bias, lo, hi] = self.gpu.shared_load(words.add(4));
            let [input_width, output_width, bounded, unused] = self.gpu.shared_load(words.add(8));
            FusedLayer {
                groups,
                steps,
                inputs,
                weights,
                outputs,
                bias,
                lo,
                hi,
                input_width,
                output_width,
                bounded,
                unused,
            }
        }
    }

    /// An array of a layer.
    #[inline(always)]
    fn array(&self, word: u32) -> GlobalPtr<u32> {
        self.args.arrays.add(word.wrapping_sub(self.args.first_word) as usize)
    }

    /// The warp's first group of a layer, and the end of its groups.
    #[inline(always)]
    fn groups(&self, layer: &FusedLayer) -> [u32; 2] {
        let each = layer.groups.div_ceil(WARPS);
        let cut = |group: u32| if group < layer.groups { group } else { layer.groups };
        [cut(self.warp * each), cut((self.warp + 1) * each)]
    }

    /// Begins a layer. Arrays go on past their ends for as long as what is loaded ahead and not used.
    ///
    /// # Safety
    /// It is one of the layers.
    #[inline(always)]
    unsafe fn begin(&self, layer: &FusedLayer) -> Ahead {
        let first = self.groups(layer)[0];
        let mut place = self.steps(layer, first);
        // SAFETY: as promised by the caller.
        unsafe {
            let steps = [place.next(self.gpu), place.next(self.gpu)];
            Ahead { steps, place, group: self.group(layer, first) }
        }
    }

    /// The first step of a group.
    #[inline(always)]
    fn steps(&self, layer: &FusedLayer, group: u32) -> Steps {
        let (weights, inputs) = (self.array(layer.weights), self.array(layer.inputs));
        Steps::at(self.gpu, weights, inputs, group * layer.steps)
    }

    /// Outputs and biases of a group.
    ///
    /// # Safety
    /// The layer is there, and the group, or it is the first past the last.
    #[inline(always)]
    unsafe fn group(&self, layer: &FusedLayer, group: u32) -> Group {
        let at = (group * MMA_OUTPUTS + self.lane / OF_LANE) as usize;
        let places: GlobalPtr<u32> = self.array(layer.outputs).add(at);
        let bias = GlobalPtr::<f32>::from_address(self.array(layer.bias).address()).add(at);
        // SAFETY: as promised by the caller.
        unsafe {
            let [first] = self.gpu.load_readonly(places);
            let [second] = self.gpu.load_readonly(places.add(MMA_OUTPUTS as usize / 2));
            let [first_bias] = self.gpu.load_readonly(bias);
            let [second_bias] = self.gpu.load_readonly(bias.add(MMA_OUTPUTS as usize / 2));
            Group { places: [first, second], bias: [first_bias, second_bias] }
        }
    }

    /// Brings the block's rows of the first layer's inputs to the first buffer. Rows past the last are the last again.
    ///
    /// # Safety
    /// The rows are there; nobody reads the buffer.
    #[inline(always)]
    unsafe fn load(&self, part: u32, rows: u32, width: u32) {
        let gpu = self.gpu;
        let (own, second) = (self.lane % ROWS, self.lane / ROWS);
        let row = part * ROWS + own;
        let row = if row < rows { row } else { rows - 1 };
        // A warp has two inputs at once.
        let inputs_of = WARP / ROWS;
        // SAFETY: as promised by the caller; each input has its place.
        unsafe {
            let source = if X::BITS { row } else { self.args.rows.source(gpu, row) };
            let first = X::of_row(self.args.input, source, width);
            let place = |input: u32| SharedPtr::<f32>::from_offset(fused_place(input) ^ (own * 4));
            if !X::BITS {
                let first = GlobalPtr::<f32>::from_address(first.address());
                strided(self.warp * inputs_of + second, width, WARPS * inputs_of, |input| {
                    gpu.copy_async::<f32, 1>(place(input), first.add_rows(input, X::INPUT_BYTES));
                });
                gpu.copy_async_commit();
                gpu.copy_async_wait::<0>();
                return;
            }
            strided(
                (self.warp * inputs_of + second) * AT_ONCE,
                width,
                WARPS * inputs_of * AT_ONCE,
                |input| {
                    let load = |input: u32| {
                        // Of inputs past the last, the last.
                        X::load(gpu, first, if input < width { input } else { width - 1 })
                    };
                    let words = [load(input), load(input + 1), load(input + 2), load(input + 3)];
                    for (more, word) in words.into_iter().enumerate() {
                        let input = input + more as u32;
                        if input < width {
                            gpu.shared_store(place(input), [X::number(word, row)]);
                        }
                    }
                },
            );
        }
    }

    /// Computes a layer: reads the buffer at `FROM`, writes the other, and begins the next layer.
    ///
    /// # Safety
    /// The layers are there; what is ahead is of this one; no warp writes the one buffer or reads the other.
    #[inline(always)]
    unsafe fn compute<const FROM: u32>(&self, layer: &FusedLayer, next: &FusedLayer, ahead: &mut Ahead) {
        let [first, end] = self.groups(layer);
        let (count, next_first) = ((end - first) * layer.steps, self.groups(next)[0]);
        // SAFETY: as promised by the caller; a group's outputs are its own.
        unsafe {
            if count < 2 {
                // What was loaded ahead is not all of this layer's.
                if count > 0 {
                    let own = ahead.group;
                    let mut sums = Sums::default();
                    self.multiply::<FROM>(layer, &ahead.steps[0], &mut sums);
                    self.finish::<FROM>(layer, &own, &sums);
                }
                *ahead = self.begin(next);
                return;
            }
            let mut at = At {
                groups: end - first,
                steps: layer.steps,
                to_load: count - 2,
                group: first,
                own: ahead.group,
                sums: Sums::default(),
            };
            ahead.group = self.next_group(layer, next, &at, next_first);
            let [mut even, mut odd] = ahead.steps;
            loop {
                self.multiply::<FROM>(layer, &even, &mut at.sums);
                even = self.refill(next, next_first, ahead, &mut at);
                if self.leave::<FROM>(layer, next, next_first, ahead, &mut at) {
                    // The next layer's first step was loaded last but one.
                    ahead.steps = [odd, even];
                    return;
                }
                self.multiply::<FROM>(layer, &odd, &mut at.sums);
                odd = self.refill(next, next_first, ahead, &mut at);
                if self.leave::<FROM>(layer, next, next_first, ahead, &mut at) {
                    ahead.steps = [even, odd];
                    return;
                }
            }
        }
    }

    /// Outputs and biases of the group after this one, in this layer or the next.
    ///
    /// # Safety
    /// The layers are there.
    #[inline(always)]
    unsafe fn next_group(&self, layer: &FusedLayer, next: &FusedLayer, at: &At, next_first: u32) -> Group {
        // SAFETY: as promised by the caller.
        unsafe { if at.groups > 1 { self.group(layer, at.group + 1) } else { self.group(next, next_first) } }
    }

    /// Loads the step after the next one.
    ///
    /// # Safety
    /// The layers are there.
    #[inline(always)]
    unsafe fn refill(&self, next: &FusedLayer, next_first: u32, ahead: &mut Ahead, at: &mut At) -> Step {
        if at.to_load == 0 {
            ahead.place = self.steps(next, next_first);
        }
        // Past 0 it wraps round, and is not 0 again.
        at.to_load = at.to_load.wrapping_sub(1);
        // SAFETY: as promised by the caller.
        unsafe { ahead.place.next(self.gpu) }
    }

    /// Counts a step; ends the group after its last. Whether that was the warp's last group.
    ///
    /// # Safety
    /// As [`compute`](Self::compute).
    #[inline(always)]
    unsafe fn leave<const FROM: u32>(
        &self,
        layer: &FusedLayer,
        next: &FusedLayer,
        next_first: u32,
        ahead: &mut Ahead,
        at: &mut At,
    ) -> bool {
        at.steps -= 1;
        if at.steps > 0 {
            return false;
        }
        // SAFETY: as promised by the caller.
        unsafe {
            self.finish::<FROM>(layer, &at.own, &at.sums);
            at.groups -= 1;
            if at.groups == 0 {
                return true;
            }
            (at.group, at.steps, at.sums) = (at.group + 1, layer.steps, Sums::default());
            at.own = ahead.group;
            ahead.group = self.next_group(layer, next, at, next_first);
        }
        false
    }

    /// Writes the outputs of a group.
    ///
    /// # Safety
    /// They are nobody else's.
    #[inline(always)]
    unsafe fn finish<const FROM: u32>(&self, layer: &FusedLayer, own: &Group, [a, b]: &Sums) {
        let limits = Limits { lo: f32::from_bits(layer.lo), hi: f32::from_bits(layer.hi) };
        let row = self.lane % OF_LANE * 16;
        let store = |place: u32, bias: f32, sums: [f32; 4]| {
            if place != NO_OUTPUT {
                let to = SharedPtr::from_offset((BUFFER * 4 - FROM) + (place ^ row));
                // SAFETY: as promised by the caller.
                unsafe { self.gpu.shared_store(to, sums.map(|sum| limits.of(sum + bias))) };
            }
        };
        store(own.places[0], own.bias[0], [a[0], b[0], a[1], b[1]]);
        store(own.places[1], own.bias[1], [a[2], b[2], a[3], b[3]]);
    }

    /// Adds the products of a step.
    ///
    /// # Safety
    /// Nobody writes the buffer at `FROM`.
    #[inline(always)]
    unsafe fn multiply<const FROM: u32>(&self, layer: &FusedLayer, step: &Step, sums: &mut Sums) {
        let rows = self.lane / OF_LANE * 8;
        // SAFETY: inputs are places in a buffer.
        let load = |place: u32| unsafe {
            self.gpu.shared_load::<f32, 2>(SharedPtr::from_offset(FROM + (place ^ rows)))
        };
        let [a, b, c, d] = step.inputs.map(load);
        let (first, second) = ([a[0], b[0], c[0], d[0]], [a[1], b[1], c[1], d[1]]);
        if layer.bounded != 0 {
            sums[0] = add_products::<G, true>(self.gpu, step.a, first, sums[0]);
            sums[1] = add_products::<G, true>(self.gpu, step.a, second, sums[1]);
        } else {
            sums[0] = add_products::<G, false>(self.gpu, step.a, first, sums[0]);
            sums[1] = add_products::<G, false>(self.gpu, step.a, second, sums[1]);
        }
    }

    /// Writes the result, and marks the rows that are alive.
    ///
    /// # Safety
    /// Nobody writes the buffer at `from`.
    #[inline(always)]
    unsafe fn write(&self, part: u32, rows: u32, width: u32, from: u32) {
        let gpu = self.gpu;
        let (own, second) = (self.lane % ROWS, self.lane / ROWS);
        let inputs_of = WARP / ROWS;
        let row = part * ROWS + own;
        let tile: GlobalMut<f32> = self.args.out.add_rows(width, TILE_ROWS * 4 * (row / TILE_ROWS));
        let tile = tile.add((row % TILE_ROWS) as usize);
        let mut alive = false;
        // SAFETY: tiles that have rows have all their rows, and a place for each output.
        unsafe {
            strided(self.warp * inputs_of + second, width, WARPS * inputs_of, |output| {
                let place = SharedPtr::<f32>::from_offset(from + (fused_place(output) ^ (own * 4)));
                let [number] = gpu.shared_load(place);
                alive |= number != 0.0;
                gpu.store(tile.add_rows(output, TILE_ROWS * 4), [number]);
            });
            if self.args.rows.alive.address() != 0 {
                let word = gpu.warp_ballot(FULL_WARP, alive && row < rows);
                let word = (word | word >> ROWS) & ((1 << ROWS) - 1);
                if self.lane == 0 {
                    self.args.rows.mark(gpu, row / TILE_ROWS, word << (part * ROWS % TILE_ROWS));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_input_has_a_line_of_its_own() {
        let mut is_taken = [false; FUSED_WIDTH as usize];
        for input in 0..FUSED_WIDTH {
            is_taken[(fused_place(input) / ROW_BYTES) as usize] = true;
        }
        assert!(is_taken.into_iter().all(|is_taken| is_taken));
        assert!((0..FUSED_WIDTH).all(|input| fused_place(input).is_multiple_of(ROW_BYTES / 2)));
    }

    #[test]
    fn neighbouring_multiples_are_in_different_banks() {
        for power in 0..8 {
            for first in 0..16 {
                let mut banks = [0, 1, 2, 3].map(|i| fused_banks((first * 4 + i) << power));
                banks.sort_unstable();
                assert_eq!(banks, [0, 1, 2, 3], "from {first} by {power}");
            }
        }
    }
}
