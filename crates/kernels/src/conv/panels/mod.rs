//! Convolution of maps of 16 bits with channels last, by warpgroups (wgmma of sm_90a), zeros multiplied: an implicit matrix product.
//!
//! ```text
//!                  filters  ┌────────┐      A thread block takes tiles one after another, and goes through steps: 64 channels at a
//!                           │  2·L   │      tap. Producers copy 128 bytes of each pixel, from where the tap shifts it to, and of each
//!   pixels of   ┌───────┐   └────────┘      filter into swizzled panels, and run ahead into the next tile.
//!   all images, │ 64    │   ┌────────┐      Two warpgroups multiply 64 or 128 pixels each. Filters are packed such that four
//!   at a tap    ├───────┤   │        │      lanes write 64 bytes of a pixel together.
//!               │ 64    │   │        │
//!               └───────┘   └────────┘      Pixels of all images are one run, so that small maps fill tiles, too.
//! ```
//! Lower bounds of a step: 8·`M`·`L` cycles of tensor cores; 128 bytes of each pixel and each filter through the L2 cache, written once to
//! shared memory, from where all filters are read for each 64 pixels.
mod pack;
mod produce;
mod write;

use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, Gpu, SharedPtr, WARP};

pub use pack::PackPanels;

use super::mma::MmaConvArgs;
use super::split::MmaValue;
use super::{Scheme, Tile};
use crate::{Bounds, HalfValue, Kernel};

/// Tiles of two warpgroups, 64·`M` output pixels each, and 2·`L` filters.
///
/// Filters come by [`PackPanels`]. `tiles` are runs of pixels of all images: rows of the target are counted through the images. The grid: blocks that share
/// the tiles, groups of filters, splits.
#[derive(Debug)]
pub struct WgmmaPanelConv<T, const L: usize, const M: usize>(PhantomData<T>);

/// Threads of a warpgroup.
const WARPGROUP: u32 = 4 * WARP;
/// Consumer warpgroups. The last warpgroup of a block are the producers.
const GROUPS: u32 = 2;
/// Pixels of a wgmma product, and of each warp in it.
const PRODUCT_PIXELS: u32 = 64;
const WARP_PIXELS: u32 = 16;
/// Stages of shared memory.
const STAGES: u32 = 4;
/// Channels of a step.
pub const PANEL_CHANNELS: u32 = 64;
/// Bytes of a row of a panel: the channels of a step.
const ROW: u32 = 2 * PANEL_CHANNELS;
/// Bytes of a piece of a row, which a lane copies, and pieces of a row. Piece `i` of row `r` lies at place `i ^ r % 8`: the 128-byte swizzle of wgmma.
const PIECE: u32 = 16;
const PIECES: u32 = ROW / PIECE;
/// Channels of a piece.
const OF_PIECE: u32 = PANEL_CHANNELS / PIECES;
/// Words of a pixel's place in the producers' table.
const PLACE_WORDS: u32 = 2;
/// Taps at most: a pixel has a bit for each.
pub const PANEL_TAPS: u32 = u32::BITS;

/// What a thread works on.
struct Work<'a, G, T> {
    gpu: G,
    args: &'a MmaConvArgs<T>,
    /// The block's first step, and how many each tile has.
    first: u32,
    steps: u32,
}

impl<T: MmaValue + HalfValue, const L: usize, const M: usize> Kernel for WgmmaPanelConv<T, L, M> {
    type Args = MmaConvArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(Self::FULL + STAGES * GROUPS <= 16, "a block has 16 barriers");
        assert!(Self::SHARED_BYTES <= 227 * 1024, "a block of sm_90 has 227 KiB");
        Tile { scheme: Scheme::WgmmaPanels { pixels: Self::PIXELS, filters: Self::FILTERS }, value: T::TYPE }
    };
    const THREADS: u32 = (GROUPS + 1) * WARPGROUP;
    const SHARED_BYTES: u32 = Self::TABLE + Self::PIXELS * PLACE_WORDS * 4;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: Self::BLOCKS };
    const MIN_SM: u32 = 90;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        // By way of a shuffle the compiler sees that a warp has one trade.
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        let (first, steps) = args.of_block(gpu);
        let work = Work { gpu, args: &args, first, steps };
        // SAFETY: the arguments describe maps and filters; stages are filled and read in turns.
        unsafe {
            if warp >= 4 * GROUPS {
                Self::produce(&work, warp - 4 * GROUPS);
            } else {
                Self::consume(&work, warp);
            }
        }
    }
}

impl<T: MmaValue + HalfValue, const L: usize, const M: usize> WgmmaPanelConv<T, L, M> {
    /// Pixels of a warpgroup, and of a tile.
    const GROUP_PIXELS: u32 = M as u32 * PRODUCT_PIXELS;
    const PIXELS: u32 = GROUPS * Self::GROUP_PIXELS;
    /// Filters of a tile.
    const FILTERS: u32 = 2 * L as u32;
    /// Blocks of a multiprocessor: two of the smallest tiles have room.
    const BLOCKS: u32 = if M == 1 && L <= 32 { 2 } else { 1 };
    /// Bytes of a stage's pixels, of its filters, and of both.
    const A_BYTES: u32 = Self::PIXELS * ROW;
    const B_BYTES: u32 = Self::FILTERS * ROW;
    const STAGE_BYTES: u32 = Self::A_BYTES + Self::B_BYTES;
    /// Where the producers' table of pixels is.
    const TABLE: u32 = STAGES * Self::STAGE_BYTES;
    /// Threads at the barrier of a stage that is full, for each warpgroup; and that is empty.
    const AT_FULL: u32 = 2 * WARPGROUP;
    const AT_EMPTY: u32 = Self::THREADS;
    /// Barriers: of an empty stage, and of one that is full for a warpgroup.
    const EMPTY: u32 = 1;
    const FULL: u32 = Self::EMPTY + STAGES;

    /// Multiplies this warpgroup's pixels of each tile, and writes what comes out.
    ///
    /// # Safety
    /// The whole warpgroup is here; the arguments describe maps.
    #[inline(always)]
    unsafe fn consume<G: Gpu>(work: &Work<'_, G, T>, warp: u32) {
        let (gpu, tiles) = (work.gpu, work.args.tiles);
        let mut tile = gpu.block_idx_x();
        if tile >= tiles {
            return;
        }
        let mut left = (tiles - tile).div_ceil(gpu.grid_dim_x()) * work.steps;
        let mut stage = 0;
        while tile < tiles {
            let mut sums = [[0.0; L]; M];
            for _ in 0..work.steps {
                gpu.barrier_sync(Self::FULL + stage * GROUPS + warp / 4, Self::AT_FULL);
                // SAFETY: the stage is full.
                unsafe { Self::multiply(gpu, stage, warp / 4, &mut sums) };
                if left > STAGES {
                    gpu.barrier_arrive(Self::EMPTY + stage, Self::AT_EMPTY);
                }
                (left, stage) = (left - 1, if stage + 1 == STAGES { 0 } else { stage + 1 });
            }
            // SAFETY: as promised by the caller; these pixels are the warp's.
            unsafe {
                let first = warp / 4 * Self::GROUP_PIXELS + warp % 4 * WARP_PIXELS;
                write::write(gpu, work.args, [tile, Self::PIXELS], first, &mut sums);
            }
            tile += gpu.grid_dim_x();
        }
    }

    /// Adds the products of a step.
    ///
    /// # Safety
    /// The stage is full; the whole warpgroup is here.
    #[inline(always)]
    unsafe fn multiply<G: Gpu>(gpu: G, stage: u32, group: u32, sums: &mut [[f32; L]; M]) {
        let a = stage * Self::STAGE_BYTES + group * Self::GROUP_PIXELS * ROW;
        let b = stage * Self::STAGE_BYTES + Self::A_BYTES;
        gpu.warpgroup_arrive();
        for sixteen in 0..PANEL_CHANNELS / 16 {
            for (part, sums) in sums.iter_mut().enumerate() {
                let a = a + part as u32 * PRODUCT_PIXELS * ROW;
                let [a, b] = [a, b].map(|panel| SharedPtr::from_offset(panel + 32 * sixteen));
                // SAFETY: as promised by the caller; panels begin at multiples of 1024 bytes.
                unsafe { T::warpgroup_mma_columns(gpu, sums, a, b) };
            }
        }
        gpu.warpgroup_commit();
        for sums in sums {
            gpu.warpgroup_wait::<0, L>(sums);
        }
    }
}
