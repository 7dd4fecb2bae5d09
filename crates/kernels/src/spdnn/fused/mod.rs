//! Several layers in one kernel, on tensor cores: a block keeps its rows in shared memory from the first of them to the last.
mod compute;
mod layer;
mod rows;

use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::{LayerInput, Rows, Scheme, TILE_ROWS, Tile};
use crate::common::strided;
use crate::{Bounds, Kernel, ValueType};
use layer::ROWS;
pub use layer::{FUSED_NONE, FUSED_WIDTH, FusedLayer, LAYER_WORDS, fused_banks, fused_place};

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

/// Layers of a launch at most.
pub const MAX_FUSED: u32 = 128;
/// Bytes of a buffer: zeros come after the last input.
const BUFFER_BYTES: u32 = (FUSED_WIDTH + 1) * ROWS * 4;

impl<X: LayerInput, const WARPS: u32> Kernel for FusedLayers<X, WARPS> {
    type Args = FusedArgs<X::Element>;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::FusedLayers, input_bits: X::BITS, weights: ValueType::Bf16 };
    const THREADS: u32 = WARPS * WARP;
    const SHARED_BYTES: u32 = 2 * BUFFER_BYTES + MAX_FUSED * LAYER_WORDS * 4;
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
                gpu.shared_store(SharedPtr::from_offset(2 * BUFFER_BYTES).add(at), word);
            });
            if thread < 2 * ROWS {
                let zeros = thread / ROWS * (BUFFER_BYTES / 4) + FUSED_WIDTH * ROWS + thread % ROWS;
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
                        block.compute::<BUFFER_BYTES>(&layer, &next, &mut ahead);
                    }
                    at += 1;
                    if at >= args.count {
                        break;
                    }
                    layer = next;
                }
                gpu.sync_threads();
                block.write(part, rows, layer.output_width, at % 2 * BUFFER_BYTES);
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

impl<G: Gpu, X: LayerInput, const WARPS: u32> Block<'_, G, X, WARPS> {
    /// A layer, from shared memory.
    ///
    /// # Safety
    /// It is one of the layers.
    #[inline(always)]
    unsafe fn layer(&self, at: u32) -> FusedLayer {
        let words = SharedPtr::<u32>::from_offset(2 * BUFFER_BYTES).add(at * LAYER_WORDS);
        // SAFETY: as promised by the caller; nobody writes them after the first barrier.
        unsafe {
            FusedLayer::of_words([
                self.gpu.shared_load(words),
                self.gpu.shared_load(words.add(4)),
                self.gpu.shared_load(words.add(8)),
            ])
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
}
