//! Convolution of few channels in 16 bits with channels last, on tensor cores: the first layer of a network.
//!
//! ```text
//!   input of a tile, in shared memory       A: 16 pixels × 16 values             B: 16 values × 2·L filters
//!   ┌────┬────┬────┬────┬────┬───           ┌────────────────────┐               ┌──────────┐
//!   │rgb0│rgb0│rgb0│rgb0│rgb0│ …            │ 4 taps of a row, 4 │  pixel g: from│ in the   │
//!   ├────┼────┼────┼────┼────┼───           │ channels each, side│  place        │ order of │
//!   │    │    │    │    │    │              │ by side            │  g·STRIDE on  │ lanes    │
//!   └────┴────┴────┴────┴────┴───           └────────────────────┘               └──────────┘
//! ```
//! A pixel has four channels of 8 bytes in shared memory, so that four taps of a row are 16 values side by side: a product takes them as they lie, and R rows take
//! R·⌈R / 4⌉ products. A warp has 16 columns by `M` rows. A block keeps the filters, and takes tile after tile: the pixels of the next come to registers meanwhile.
//!
//! Lower bounds of a tile: R·⌈R / 4⌉·`M`·`L` / 4 products a warp; for each step 4·`M` + `L` / 2 wavefronts of shared memory a warp; the bytes of the result.
mod pack;

use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr, WARP};

pub use pack::PackFewChannels;

use super::few_channels::{FEW_CHANNELS, FEW_COLUMNS};
use super::mma::MmaConvArgs;
use super::results::{PIXELS_APART, Pixels, Results};
use super::split::MmaValue;
use super::target::Place;
use super::{Scheme, Target, Tile};
use crate::{Bounds, HalfValue, Kernel};

/// Tiles of 16 columns by 4·`M` rows and 2·`L` filters, for `R` × `R` taps, a stride of `STRIDE` and up to [`FEW_CHANNELS`] channels.
///
/// Filters come by [`PackFewChannels`]. The grid: blocks that share the tiles of all images, groups of filters.
#[derive(Debug)]
pub struct FewChannelsMmaConv<T, const R: usize, const STRIDE: usize, const M: usize, const L: usize>(
    PhantomData<T>,
);

/// Warps of a block, and threads.
const WARPS: u32 = 4;
const THREADS: u32 = WARPS * WARP;
/// Channels of a pixel in shared memory, and its bytes.
const CHANNELS: u32 = FEW_CHANNELS;
const PIXEL: u32 = 2 * CHANNELS;
/// Taps of a product.
const TAPS: u32 = 16 / CHANNELS;
/// Pixels that a thread brings at most.
const OF_THREAD: usize = 7;
/// These as they are loaded: joining channels would wait for each.
type Brought = [Pixel; OF_THREAD];
type Pixel = [u32; CHANNELS as usize];

/// Products along a row of so many taps.
const fn steps_of_row(taps: u32) -> u32 {
    taps.div_ceil(TAPS)
}

/// Pieces of 16 bytes of a group of so many eights of filters, with so many taps along a side.
pub const fn few_channels_pieces(eights: usize, taps: usize) -> usize {
    taps * steps_of_row(taps as u32) as usize * eights / 2 * WARP as usize
}

/// A lane's pixels: two of each row of its warp.
#[derive(Clone, Copy)]
struct Rows {
    place: Place,
    /// In the tile.
    row: u32,
    column: u32,
}

impl Pixels for Rows {
    #[inline(always)]
    fn in_tile(self, part: u32, half: u32) -> u32 {
        (self.row + part) * FEW_COLUMNS + self.column + half * PIXELS_APART
    }

    #[inline(always)]
    fn find<T>(self, target: &Target<T>, part: u32, half: u32) -> (u64, bool) {
        let (row, column) = (self.row + part, self.column + half * PIXELS_APART);
        let offset = target.map.offset(self.place.row + row, self.place.column + column);
        let image = u64::from(self.place.image) * u64::from(target.map.image_bytes);
        (image + u64::from(offset.unwrap_or(0)), offset.is_some())
    }
}

impl<T: MmaValue + HalfValue, const R: usize, const STRIDE: usize, const M: usize, const L: usize> Kernel
    for FewChannelsMmaConv<T, R, STRIDE, M, L>
{
    type Args = MmaConvArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(Self::PIXELS <= OF_THREAD as u32 * THREADS, "threads have registers for the input of a tile");
        let (taps, stride) = (R as u32, STRIDE as u32);
        let scheme = Scheme::FewChannelsMma { taps, stride, rows: Self::TILE_ROWS, filters: Self::FILTERS };
        Tile { scheme, value: T::TYPE }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = Self::FILTER_BYTES + Self::PIXELS * PIXEL;
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: if M * L < 64 { 4 } else { 3 } };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let (warp, lane, group) = (gpu.thread_idx_x() / WARP, gpu.lane_id(), gpu.block_idx_y());
        let (blocks, first) = (gpu.grid_dim_x(), gpu.block_idx_x());
        let mut next = first;
        // SAFETY: the arguments describe maps and filters; shared memory is written and read in turns. A warp alone has its results.
        unsafe {
            Self::bring_filters(gpu, &args, group);
            loop {
                // After the last tile nothing comes.
                let brought = Self::load(gpu, &args, next);
                if next == first {
                    gpu.copy_async_wait::<0>();
                } else {
                    let mut sums = [[0.0; L]; M];
                    Self::multiply(gpu, warp, &mut sums);
                    let place = Self::place(&args, next - blocks, group);
                    let pixels = Rows { place, row: warp * M as u32, column: lane / 4 };
                    let (target, source) = (&args.target, &args.source);
                    let results =
                        Results { target, source, place, columns: FEW_COLUMNS, pixels, t: lane % 4 };
                    results.write(gpu, &mut sums);
                }
                if next >= args.tiles {
                    break;
                }
                gpu.sync_threads();
                Self::keep(gpu, &brought);
                gpu.sync_threads();
                next += blocks;
            }
        }
    }
}

impl<T: MmaValue + HalfValue, const R: usize, const STRIDE: usize, const M: usize, const L: usize>
    FewChannelsMmaConv<T, R, STRIDE, M, L>
{
    const FILTERS: u32 = 2 * L as u32;
    const TILE_ROWS: u32 = WARPS * M as u32;
    /// Products along a row of taps.
    const STEPS: u32 = steps_of_row(R as u32);
    /// Bytes of the filters of one product.
    const STEP_BYTES: u32 = L as u32 / 8 * WARP * 16;
    const FILTER_BYTES: u32 = R as u32 * Self::STEPS * Self::STEP_BYTES;
    /// Rows and columns of a tile's input, with those that zeros are multiplied with.
    const ROWS: u32 = (Self::TILE_ROWS - 1) * STRIDE as u32 + R as u32;
    const COLUMNS: u32 = (FEW_COLUMNS - 1) * STRIDE as u32 + Self::STEPS * TAPS;
    const PIXELS: u32 = Self::ROWS * Self::COLUMNS;

    /// A tile's place.
    #[inline(always)]
    fn place(args: &MmaConvArgs<T>, tile: u32, group: u32) -> Place {
        args.target.place(tile, [Self::TILE_ROWS, FEW_COLUMNS], group * Self::FILTERS)
    }

    /// Starts copying the filters of the block.
    ///
    /// # Safety
    /// They are there, and nobody reads their place.
    #[inline(always)]
    unsafe fn bring_filters<G: Gpu>(gpu: G, args: &MmaConvArgs<T>, group: u32) {
        let from = args.filters.add_rows(group, Self::FILTER_BYTES);
        let mut at = 4 * gpu.thread_idx_x();
        while at < Self::FILTER_BYTES / 4 {
            // SAFETY: as promised by the caller.
            unsafe { gpu.copy_async::<u32, 4>(SharedPtr::from_offset(4 * at), from.add(at as usize)) };
            at += 4 * THREADS;
        }
        gpu.copy_async_commit();
    }

    /// Loads the thread's pixels of a tile's input. Zeros stand for what is not there.
    ///
    /// # Safety
    /// The map is there.
    #[inline(always)]
    unsafe fn load<G: Gpu>(gpu: G, args: &MmaConvArgs<T>, tile: u32) -> Brought {
        let place = (tile < args.tiles).then(|| Self::place(args, tile, 0));
        // Written out: a loop would leave them in local memory.
        // SAFETY: as promised by the caller.
        unsafe {
            [
                Self::pixel(gpu, args, place, 0),
                Self::pixel(gpu, args, place, 1),
                Self::pixel(gpu, args, place, 2),
                Self::pixel(gpu, args, place, 3),
                Self::pixel(gpu, args, place, 4),
                Self::pixel(gpu, args, place, 5),
                Self::pixel(gpu, args, place, 6),
            ]
        }
    }

    /// Loads one of these.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    #[inline(always)]
    unsafe fn pixel<G: Gpu>(gpu: G, args: &MmaConvArgs<T>, place: Option<Place>, turn: u32) -> Pixel {
        let (source, map, at) = (&args.source, &args.source.map, turn * THREADS + gpu.thread_idx_x());
        let (is_tile, place) = (place.is_some(), place.unwrap_or_default());
        let (row, column) = (at / Self::COLUMNS, at % Self::COLUMNS);
        let y = (place.row * STRIDE as u32 + row).wrapping_sub(source.padding[0]);
        let x = (place.column * STRIDE as u32 + column).wrapping_sub(source.padding[1]);
        let offset = map.offset(y, x);
        let is_pixel = is_tile && at < Self::PIXELS && offset.is_some();
        let from = map.plane(source.input, place.image, 0).add_bytes(offset.unwrap_or(0).into());
        let from = GlobalPtr::<u16>::from_address(from.address());
        let load = |channel: u32| {
            if !(is_pixel && channel < map.channels) {
                return 0;
            }
            // SAFETY: as promised by the caller: the pixel is there, and so is the channel, which lies beside the others.
            let [value] = unsafe { gpu.load_readonly(from.add(channel as usize)) };
            u32::from(value)
        };
        [load(0), load(1), load(2), load(3)]
    }

    /// Where the input begins in shared memory.
    #[inline(always)]
    fn input() -> SharedPtr<u32> {
        SharedPtr::from_offset(Self::FILTER_BYTES)
    }

    /// Puts the thread's pixels into shared memory.
    ///
    /// # Safety
    /// Nobody reads it.
    #[inline(always)]
    unsafe fn keep<G: Gpu>(gpu: G, brought: &Brought) {
        for (turn, &[red, green, blue, other]) in brought.iter().enumerate() {
            let at = turn as u32 * THREADS + gpu.thread_idx_x();
            let words = [red | green << 16, blue | other << 16];
            if at < Self::PIXELS {
                // SAFETY: as promised by the caller.
                unsafe { gpu.shared_store(Self::input().add(2 * at), words) };
            }
        }
    }

    /// Adds all products of the warp, by rows of taps.
    ///
    /// # Safety
    /// Input and filters are in shared memory; all lanes are here.
    #[inline(always)]
    unsafe fn multiply<G: Gpu>(gpu: G, warp: u32, sums: &mut [[f32; L]; M]) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        let first = warp * (M * STRIDE) as u32 * Self::COLUMNS + g * STRIDE as u32;
        let input = Self::input().add(2 * first + t);
        let filters = SharedPtr::<u32>::from_offset(16 * gpu.lane_id());
        for tap in 0..R as u32 {
            for step in 0..Self::STEPS {
                let filters = filters.add((tap * Self::STEPS + step) * Self::STEP_BYTES / 4);
                let mut a = [[0; 4]; M];
                for (part, a) in a.iter_mut().enumerate() {
                    let pixel = (part as u32 * STRIDE as u32 + tap) * Self::COLUMNS + step * TAPS;
                    let load = |pixels: u32| {
                        // SAFETY: as promised by the caller.
                        let [word]: [u32; 1] = unsafe { gpu.shared_load(input.add(2 * (pixel + pixels))) };
                        word
                    };
                    let below = PIXELS_APART * STRIDE as u32;
                    *a = [load(0), load(below), load(TAPS / 2), load(below + TAPS / 2)];
                }
                for pair in 0..L / 8 {
                    // SAFETY: as promised by the caller.
                    let b: [u32; 4] = unsafe { gpu.shared_load(filters.add(pair as u32 * WARP * 4)) };
                    for (sums, &a) in sums.iter_mut().zip(&a) {
                        let [first, second] = &mut sums.as_chunks_mut::<4>().0[2 * pair..2 * pair + 2] else {
                            return;
                        };
                        *first = <T as HalfValue>::mma(gpu, a, [b[0], b[1]], *first);
                        *second = <T as HalfValue>::mma(gpu, a, [b[2], b[3]], *second);
                    }
                }
            }
        }
    }
}
