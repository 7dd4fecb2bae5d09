//! Convolution of any shape: taps, strides and padding.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, WARP};

use super::{Scheme, Source, Target, Tile};
use crate::{DeviceValue, Kernel};

/// A warp has 32 filters, a lane each, and [`DIRECT_PIXELS`] neighbouring output pixels of a row. A tap of all lanes is loaded once for these
/// pixels, and each pixel's input, by all lanes alike, where it is not zero.
#[derive(Debug)]
pub struct DirectConv<T>(PhantomData<T>);

/// What [`DirectConv`] and [`FewChannelsConv`](super::FewChannelsConv) take. The grid: runs of pixels, four a block, or tiles, of all images; groups of filters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DirectConvArgs<T> {
    /// The input. Filters are not read from here.
    pub source: Source<T>,
    /// Filters, by [`PackFilters`](super::PackFilters), one a lane, at a multiple of 16 bytes.
    pub filters: GlobalPtr<T>,
    /// Runs of pixels, or tiles, of all images.
    pub runs: u32,
    /// Where results go. Tiles are runs: of one row.
    pub target: Target<T>,
}

/// Pixels of a run.
pub const DIRECT_PIXELS: u32 = 4;
/// Warps of a block.
const WARPS: u32 = 4;

impl<T: DeviceValue> Kernel for DirectConv<T> {
    type Args = DirectConvArgs<T>;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::Direct, value: T::TYPE };
    const THREADS: u32 = WARPS * WARP;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let run = gpu.block_idx_x() * WARPS + gpu.thread_idx_x() / WARP;
        if run >= args.runs {
            return;
        }
        let (lane, group) = (gpu.lane_id(), gpu.block_idx_y());
        let place = args.target.place(run, [1, DIRECT_PIXELS], group * WARP);
        let [rows, columns] = args.source.taps;
        let mut sums = [0.0_f32; DIRECT_PIXELS as usize];
        // SAFETY: the arguments describe maps and filters; a warp alone has its run and filters.
        unsafe {
            let values = rows * columns * WARP;
            let taps =
                args.filters.add_rows(group * args.source.map.channels, values * size_of::<T>() as u32);
            let mut taps = taps.add(lane as usize);
            let mut channel = 0;
            while channel < args.source.map.channels {
                let plane = args.source.map.plane(args.source.input, place.image, channel);
                let mut tap = 0;
                while tap < rows * columns {
                    let [weight] = gpu.load_readonly(taps);
                    let weight = weight.to_f32(gpu);
                    taps = taps.add(WARP as usize);
                    let row = (place.row * args.source.strides[0] + tap / columns)
                        .wrapping_sub(args.source.padding[0]);
                    let column = (place.column * args.source.strides[1] + tap % columns)
                        .wrapping_sub(args.source.padding[1]);
                    let add = |pixel: u32, sum: f32| {
                        let offset =
                            args.source.map.offset(row, column.wrapping_add(pixel * args.source.strides[1]));
                        let Some(offset) = offset else { return sum };
                        let [x] = gpu.load_readonly(plane.add_bytes(offset.into()));
                        let x = x.to_f32(gpu);
                        if x != 0.0 { gpu.fma(x, weight, sum) } else { sum }
                    };
                    sums = [add(0, sums[0]), add(1, sums[1]), add(2, sums[2]), add(3, sums[3])];
                    tap += 1;
                }
                channel += 1;
            }
            let finish = |pixel: u32| {
                let sum = sums[pixel as usize];
                args.target.finish_element(gpu, None, place, [lane, pixel], DIRECT_PIXELS, sum)
            };
            let nonzeros = finish(0) + finish(1) + finish(2) + finish(3);
            args.target.count(gpu, nonzeros);
        }
    }
}
