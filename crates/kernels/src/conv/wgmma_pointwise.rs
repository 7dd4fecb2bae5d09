//! Convolution of one tap (1 × 1) by warpgroups (wgmma of sm_90a), zeros multiplied: a matrix product of pixels × channels and channels × filters, of `f32` in split
//! precision.
use core::marker::PhantomData;

use lacuna_gpu::{CoreMatrices, FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::mma::{CHANNELS, MMA_SIDE, MmaConvArgs};
use super::split::{MmaValue, multiply_parts};
use super::{Scheme, Tile, accumulators};
use crate::common::strided;
use crate::{Bounds, Kernel};

/// A tile of 128 output pixels and 2·`L` filters: two warpgroups multiply 64 pixels each, and two fill stages in turns, a pixel a thread.
///
/// ```text
///   a stage: 64 channels               core matrices: 8 pixels side by side,
///   128 pixels (A) ── split ──►        8 channels of 16 bits each                 three stages: one is multiplied,
///                                      ┌──┐┌──┐ … upper, then lower;              two are filled
///   2·L filters (B) ─────────────►     B lies as PackMma says
/// ```
/// Pixels are counted through the rows of an image. A producer loads its pixel's channels of its next stage while it waits for the filters of this one. Channels of
/// 16 bits that lie side by side are copied as they are. Products and their order are those of [`WgmmaConv`](super::WgmmaConv).
///
/// Lower bounds: three products of 16 bits for one of `f32`, 192 cycles a multiprocessor for 128 × 128 × 16; the bytes of x by each group of filters, and the bytes of filters by
/// each tile, through the L2 cache.
#[derive(Debug)]
pub struct WgmmaPointwiseConv<T, const L: usize>(PhantomData<T>);

/// Stages of shared memory.
const STAGES: u32 = 3;
/// Warpgroups that fill them.
const PRODUCERS: u32 = 2;
/// Sixteens of channels of a stage.
const CHUNKS: u32 = 4;
/// Warpgroups that multiply, and their pixels.
const TILES: u32 = 2;
const PIXELS: u32 = MMA_SIDE * MMA_SIDE;
/// Threads of a warpgroup.
const WARPGROUP: u32 = 4 * WARP;
/// Bytes of eight channels of a pixel, or of a filter: a row of a core matrix.
const ROW: u32 = 16;
/// Barrier of a stage that is full, and of one that is empty.
const FULL: u32 = 1;
const EMPTY: u32 = FULL + STAGES;

/// Threads of a stage: those that multiply it, and those that fill it.
const OF_STAGE: u32 = (TILES + 1) * WARPGROUP;
/// 16 channels of a pixel, for each sixteen of a stage.
type Channels<T> = [[T; CHANNELS as usize]; CHUNKS as usize];

impl<T: MmaValue, const L: usize> Kernel for WgmmaPointwiseConv<T, L> {
    type Args = MmaConvArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(Self::SHARED_BYTES <= 227 * 1024, "a block of sm_90 has 227 KiB");
        assert!(TILES * PIXELS == WARPGROUP, "a producer has a pixel");
        Tile { scheme: Scheme::WgmmaPointwise { tiles: TILES, filters: Self::FILTERS }, value: T::TYPE }
    };
    const THREADS: u32 = (TILES + PRODUCERS) * WARPGROUP;
    const SHARED_BYTES: u32 = STAGES * Self::STAGE_BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 1 };
    const MIN_SM: u32 = 90;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        // By way of a shuffle the compiler sees that a warp has one trade.
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        let (first, chunks) = args.of_block(gpu);
        let work = Work { gpu, args: &args, first, chunks };
        // SAFETY: the arguments describe maps and filters; stages are filled and read in turns.
        unsafe {
            if warp >= 4 * TILES {
                Self::produce(&work, warp / 4 - TILES);
            } else {
                let mut sums = [0.0; L];
                let tile = warp / 4;
                Self::consume(&work, tile, &mut sums);
                let tile = gpu.block_idx_x() * TILES + tile;
                if tile < args.tiles {
                    accumulators::write(gpu, &args, tile, warp % 4, &mut sums);
                }
            }
        }
    }
}

/// What a thread knows.
struct Work<'a, G, T> {
    gpu: G,
    args: &'a MmaConvArgs<T>,
    /// The block's first 16 channels, and how many sixteens.
    first: u32,
    chunks: u32,
}

impl<T: MmaValue, const L: usize> WgmmaPointwiseConv<T, L> {
    /// Filters of a tile.
    const FILTERS: u32 = 2 * L as u32;
    /// Bytes from 8 channels of a warpgroup's pixels to the next 8, and from the upper parts to the lower.
    const EIGHT_BYTES: u32 = PIXELS * ROW;
    const PART_BYTES: u32 = 2 * Self::EIGHT_BYTES;
    /// Bytes of a warpgroup's pixels, and of all, of 16 channels.
    const TILE_BYTES: u32 = T::PARTS * Self::PART_BYTES;
    const A_BYTES: u32 = TILES * Self::TILE_BYTES;
    /// The same of filters.
    const B_EIGHT_BYTES: u32 = Self::FILTERS * ROW;
    const B_PART_BYTES: u32 = 2 * Self::B_EIGHT_BYTES;
    const B_BYTES: u32 = T::PARTS * Self::B_PART_BYTES;
    const STAGE_BYTES: u32 = CHUNKS * (Self::A_BYTES + Self::B_BYTES);

    /// Fills each other stage, from stage `group` on.
    ///
    /// # Safety
    /// The arguments describe maps and filters; all producers are here.
    #[inline(always)]
    unsafe fn produce<G: Gpu>(work: &Work<'_, G, T>, group: u32) {
        let (gpu, source, target) = (work.gpu, &work.args.source, &work.args.target);
        let thread = gpu.thread_idx_x() % WARPGROUP;
        let (of_block, pixel) = (thread / PIXELS, thread % PIXELS);
        let tile = gpu.block_idx_x() * TILES + of_block;
        let place = target.place(tile, [1, PIXELS], 0);
        let [row, column] = target.pixel(place.column + pixel);
        let is_there = tile < work.args.tiles && row < target.map.height;
        let from = match source.map.offset(row * source.strides[0], column * source.strides[1]) {
            Some(offset) if is_there => {
                source.map.plane(source.input, place.image, 0).add_bytes(offset.into()).address()
            }
            _ => 0,
        };
        let to = of_block * Self::TILE_BYTES + pixel * ROW;
        let map = &source.map;
        let steps = source.input.address() as u32 | map.image_bytes | map.row_bytes | map.column_bytes;
        let is_wide = map.channel_bytes == size_of::<T>() as u32 && steps.is_multiple_of(16);
        // Eight channels of 16 bits are a row of a core matrix as they are.
        let is_direct = T::PARTS == 1 && is_wide && map.channels.is_multiple_of(8);
        let filters =
            work.args.filters.add_rows(gpu.block_idx_y() * work.args.chunks + work.first, Self::B_BYTES);
        // SAFETY: maps and filters are there. A stage is filled while it is empty.
        unsafe {
            let mut x = [[T::default(); CHANNELS as usize]; CHUNKS as usize];
            let (mut step, mut chunk) = (group, group * CHUNKS);
            if !is_direct && chunk < work.chunks {
                x = Self::load(work, from, chunk, is_wide);
            }
            while chunk < work.chunks {
                let stage = step % STAGES;
                if step >= STAGES {
                    gpu.barrier_sync(EMPTY + stage, OF_STAGE);
                }
                let place = stage * Self::STAGE_BYTES;
                let left = work.chunks - chunk;
                let of_step = if left < CHUNKS { left } else { CHUNKS };
                let b = SharedPtr::<u32>::from_offset(place + CHUNKS * Self::A_BYTES);
                let rows = filters.add_rows(chunk, Self::B_BYTES);
                strided(thread, of_step * (Self::B_BYTES / 16), WARPGROUP, |at| {
                    gpu.copy_async::<u32, 4>(b.add(4 * at), rows.add(4 * at as usize));
                });
                if is_direct {
                    Self::copy(work, from, place + to, chunk);
                }
                gpu.copy_async_commit();
                (step, chunk) = (step + PRODUCERS, chunk + PRODUCERS * CHUNKS);
                if !is_direct {
                    Self::fill(gpu, place + to, &x);
                    if chunk < work.chunks {
                        x = Self::load(work, from, chunk, is_wide);
                    }
                }
                gpu.copy_async_wait::<0>();
                gpu.fence_async_proxy();
                gpu.barrier_arrive(FULL + stage, OF_STAGE);
            }
        }
    }

    /// Loads a pixel's channels of a stage. Zeros stand for what is not there.
    ///
    /// # Safety
    /// The map is there.
    #[inline(always)]
    unsafe fn load<G: Gpu>(work: &Work<'_, G, T>, from: u64, chunk: u32, is_wide: bool) -> Channels<T> {
        let (gpu, map) = (work.gpu, &work.args.source.map);
        let mut x = [[T::default(); CHANNELS as usize]; CHUNKS as usize];
        if from == 0 {
            return x;
        }
        let first = (work.first + chunk) * CHANNELS;
        let from = GlobalPtr::<T>::from_address(from).add_rows(first, map.channel_bytes);
        let left = map.channels - first;
        // SAFETY: as promised by the caller; channels are loaded that are there.
        unsafe {
            for (chunk, x) in x.iter_mut().enumerate() {
                let chunk = chunk as u32 * CHANNELS;
                let from = from.add_rows(chunk, map.channel_bytes);
                if is_wide && left >= chunk + CHANNELS {
                    for four in 0..4 {
                        let loaded: [T; 4] = gpu.load_readonly(from.add(4 * four));
                        for i in 0..4 {
                            x[4 * four + i] = loaded[i];
                        }
                    }
                } else {
                    for (channel, x) in x.iter_mut().enumerate() {
                        if chunk + (channel as u32) < left {
                            [*x] = gpu.load_readonly(from.add_rows(channel as u32, map.channel_bytes));
                        }
                    }
                }
            }
        }
        x
    }

    /// Splits a pixel's channels, and writes them into the stage.
    ///
    /// # Safety
    /// The stage is empty.
    #[inline(always)]
    unsafe fn fill<G: Gpu>(gpu: G, to: u32, x: &Channels<T>) {
        for (chunk, x) in x.iter().enumerate() {
            for eight in 0..2 {
                let pair = |i: usize| T::join(gpu, x[8 * eight + 2 * i], x[8 * eight + 2 * i + 1]);
                let (a, b, c, d) = (pair(0), pair(1), pair(2), pair(3));
                let to = to + chunk as u32 * Self::A_BYTES + eight as u32 * Self::EIGHT_BYTES;
                let to = SharedPtr::<u32>::from_offset(to);
                // SAFETY: as promised by the caller.
                unsafe {
                    gpu.shared_store(to, [a.upper, b.upper, c.upper, d.upper]);
                    if T::PARTS > 1 {
                        gpu.shared_store(to.add(Self::PART_BYTES / 4), [a.lower, b.lower, c.lower, d.lower]);
                    }
                }
            }
        }
    }

    /// Starts copying a pixel's channels of 16 bits, of which eight can be loaded at once. Zeros stand for what is not there.
    ///
    /// # Safety
    /// The map is there, and the stage is empty.
    #[inline(always)]
    unsafe fn copy<G: Gpu>(work: &Work<'_, G, T>, from: u64, to: u32, chunk: u32) {
        let (gpu, source) = (work.gpu, &work.args.source);
        for eight in 0..2 * CHUNKS {
            let channel = (work.first + chunk) * CHANNELS + 8 * eight;
            let is_there = from != 0 && channel < source.map.channels;
            let from = if is_there { from } else { source.input.address() };
            let from = GlobalPtr::<u16>::from_address(from).add(if is_there { channel as usize } else { 0 });
            let to = to + eight / 2 * Self::A_BYTES + eight % 2 * Self::EIGHT_BYTES;
            // SAFETY: as promised by the caller; what is not there is not read.
            unsafe { gpu.copy_async_or_zero::<u16, 8>(SharedPtr::from_offset(to), from, is_there) };
        }
    }

    /// Multiplies stages: a warpgroup's pixels of the block.
    ///
    /// # Safety
    /// The whole warpgroup is here.
    #[inline(always)]
    unsafe fn consume<G: Gpu>(work: &Work<'_, G, T>, tile: u32, sums: &mut [f32; L]) {
        let gpu = work.gpu;
        let (mut step, mut chunk) = (0, 0);
        while chunk < work.chunks {
            let stage = step % STAGES;
            gpu.barrier_sync(FULL + stage, OF_STAGE);
            gpu.warpgroup_arrive();
            let mut a = stage * Self::STAGE_BYTES + tile * Self::TILE_BYTES;
            let mut b = stage * Self::STAGE_BYTES + CHUNKS * Self::A_BYTES;
            let end = if chunk + CHUNKS < work.chunks { chunk + CHUNKS } else { work.chunks };
            while chunk < end {
                // SAFETY: the stage is full.
                unsafe { Self::multiply(gpu, a, b, sums) };
                (a, b, chunk) = (a + Self::A_BYTES, b + Self::B_BYTES, chunk + 1);
            }
            gpu.warpgroup_commit();
            gpu.warpgroup_wait::<0, L>(sums);
            if chunk + (STAGES - 1) * CHUNKS < work.chunks {
                gpu.barrier_arrive(EMPTY + stage, OF_STAGE);
            }
            step += 1;
        }
    }

    /// Starts the products of 16 channels, the least first.
    ///
    /// # Safety
    /// A and B are there.
    #[inline(always)]
    unsafe fn multiply<G: Gpu>(gpu: G, a: u32, b: u32, sums: &mut [f32; L]) {
        let a =
            CoreMatrices { first: SharedPtr::from_offset(a), leading: Self::EIGHT_BYTES, stride: 8 * ROW };
        let first = SharedPtr::from_offset(b);
        let b = CoreMatrices { first, leading: Self::B_EIGHT_BYTES, stride: 8 * ROW };
        // SAFETY: as promised by the caller.
        unsafe { multiply_parts::<G, T, L>(gpu, sums, (a, Self::PART_BYTES), (b, Self::B_PART_BYTES)) };
    }
}
