//! Depthwise convolution: each channel has a filter of its own.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, WARP};

use super::{Map, Scheme, Target, Tile};
use crate::{DeviceValue, Kernel};

/// A thread has `V` channels of one column, and `ROWS` output rows one below another: each row of the input is loaded once, and
/// added to the up to `R` sums that it meets.
///
/// ```text
///   columns x … x+R-1                 Threads side by side have neighbouring columns (NCHW, V = 1), or neighbouring channels (NHWC),
///   ┌──────────┐ row y                so that a warp loads what lies side by side. R loads a row overlap with those of other columns:
///   │ ·  ·  ·  │  ──► sums of output  the L1 cache has them.
///   │ ·  ·  ·  │      rows y, y-1, …
///   └──────────┘
/// ```
/// Lower bound: the bytes of x and of the result, once each.
#[derive(Debug)]
pub struct DepthwiseConv<T, const R: usize, const STRIDE: usize, const ROWS: usize, const V: usize>(
    PhantomData<T>,
);

/// What [`DepthwiseConv`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DepthwiseArgs<T> {
    /// The input.
    pub input: GlobalPtr<T>,
    /// How it lies: with `V` > 1 channels last, whole vectors of them, and addresses that are multiples of a vector.
    pub map: Map,
    /// Rows of zeros above the first.
    pub pad_top: u32,
    /// Columns of zeros before the first.
    pub pad_left: u32,
    /// The filters, by [`PackFilters`](super::PackFilters) as of one channel, one a lane; at a multiple of 16 bytes.
    pub filters: GlobalPtr<T>,
    /// Threads with work: columns × vectors of channels × strips of rows × images. `target.tiles` are the strips of an image.
    pub count: u32,
    /// Where results go, which lie as the input does.
    pub target: Target<T>,
}

/// Threads of a block.
const THREADS: u32 = 128;

impl<T> DepthwiseArgs<T> {
    /// Image, first row, column and first channel of a thread's work. What goes fastest lies side by side in memory.
    #[inline(always)]
    fn work<const ROWS: usize, const V: usize>(&self, at: u32) -> [u32; 4] {
        let (columns, vectors) = (self.target.map.width, self.map.channels / V as u32);
        let (column, vector, rest) = if self.target.channels_last != 0 {
            (at / vectors % columns, at % vectors, at / vectors / columns)
        } else {
            (at % columns, at / columns % vectors, at / columns / vectors)
        };
        let (image, strip) = (rest / self.target.tiles, rest % self.target.tiles);
        [image, strip * ROWS as u32, column, vector * V as u32]
    }
}

impl<T: DeviceValue, const R: usize, const STRIDE: usize, const ROWS: usize, const V: usize> Kernel
    for DepthwiseConv<T, R, STRIDE, ROWS, V>
{
    type Args = DepthwiseArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(ROWS == 4 && (ROWS - 1) * STRIDE + R <= 11, "rows are written out below");
        assert!(
            V == 1 || matches!(V * size_of::<T>(), 8 | 16),
            "a thread loads a value at once, or 8 or 16 bytes"
        );
        let (taps, stride, rows, vector) = (R as u32, STRIDE as u32, ROWS as u32, V as u32);
        Tile { scheme: Scheme::Depthwise { taps, stride, rows, vector }, value: T::TYPE }
    };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        let mut nonzeros = 0;
        if at < args.count {
            let [image, row, column, channel] = args.work::<ROWS, V>(at);
            // SAFETY: the arguments describe maps and filters; these results are this thread's alone.
            nonzeros = unsafe { Self::strip(gpu, &args, [image, row, column], channel) };
        }
        // SAFETY: all threads come here.
        unsafe { args.target.count(gpu, nonzeros) };
    }
}

impl<T: DeviceValue, const R: usize, const STRIDE: usize, const ROWS: usize, const V: usize>
    DepthwiseConv<T, R, STRIDE, ROWS, V>
{
    /// Computes the results of an image, from a row on, in a column, of the channels from `channel` on; gives how many are not zero.
    ///
    /// # Safety
    /// The image, the column and the channels are there, and these results are nobody else's.
    #[inline(always)]
    unsafe fn strip<G: Gpu>(
        gpu: G,
        args: &DepthwiseArgs<T>,
        [image, row, column]: [u32; 3],
        channel: u32,
    ) -> u32 {
        let taps = (R * R) as u32;
        let group = args.filters.add_rows(channel / WARP, taps * WARP * size_of::<T>() as u32);
        let lane = group.add((channel % WARP) as usize);
        let plane = args.map.plane(args.input, image, channel);
        let mut weights = [[[0.0_f32; V]; R]; R];
        let mut sums = [[0.0_f32; V]; ROWS];
        // SAFETY: as promised by the caller. Rows are written out, as LLVM does not unroll so much.
        unsafe {
            for (r, weights) in weights.iter_mut().enumerate() {
                for (s, weights) in weights.iter_mut().enumerate() {
                    let tap: [T; V] = gpu.load_readonly(lane.add((r * R + s) * WARP as usize));
                    *weights = tap.map(|tap| tap.to_f32(gpu));
                }
            }
            let first = [
                (row * STRIDE as u32).wrapping_sub(args.pad_top),
                (column * STRIDE as u32).wrapping_sub(args.pad_left),
            ];
            let source = (&args.map, plane, first);
            Self::add_row::<G, 0>(gpu, source, &weights, &mut sums);
            Self::add_row::<G, 1>(gpu, source, &weights, &mut sums);
            Self::add_row::<G, 2>(gpu, source, &weights, &mut sums);
            Self::add_row::<G, 3>(gpu, source, &weights, &mut sums);
            Self::add_row::<G, 4>(gpu, source, &weights, &mut sums);
            Self::add_row::<G, 5>(gpu, source, &weights, &mut sums);
            Self::add_row::<G, 6>(gpu, source, &weights, &mut sums);
            Self::add_row::<G, 7>(gpu, source, &weights, &mut sums);
            Self::add_row::<G, 8>(gpu, source, &weights, &mut sums);
            Self::add_row::<G, 9>(gpu, source, &weights, &mut sums);
            Self::add_row::<G, 10>(gpu, source, &weights, &mut sums);
            let finish = |o: usize| match args.target.map.offset(row + o as u32, column) {
                Some(offset) => args.target.finish(gpu, [image, channel], offset, sums[o]),
                None => 0,
            };
            finish(0) + finish(1) + finish(2) + finish(3)
        }
    }

    /// Adds row `Y` of a thread's input, of the pixels that are at `first` and after it.
    ///
    /// # Safety
    /// The channels are there.
    #[inline(always)]
    unsafe fn add_row<G: Gpu, const Y: usize>(
        gpu: G,
        (map, plane, [row, column]): (&Map, GlobalPtr<T>, [u32; 2]),
        weights: &[[[f32; V]; R]; R],
        sums: &mut [[f32; V]; ROWS],
    ) {
        if Y >= (ROWS - 1) * STRIDE + R {
            return;
        }
        let row = row.wrapping_add(Y as u32);
        let mut s = 0;
        while s < R {
            let x: [T; V] = match map.offset(row, column.wrapping_add(s as u32)) {
                // SAFETY: as promised by the caller; the pixel is in the map.
                Some(offset) => unsafe { gpu.load_readonly(plane.add_bytes(offset.into())) },
                None => [T::default(); V],
            };
            for v in 0..V {
                let x = x[v].to_f32(gpu);
                for o in 0..ROWS {
                    if Y >= o * STRIDE && Y - o * STRIDE < R {
                        let sum = gpu.fma(x, weights[Y - o * STRIDE][s][v], sums[o][v]);
                        // What is zero takes no part.
                        sums[o][v] = if x != 0.0 { sum } else { sums[o][v] };
                    }
                }
            }
            s += 1;
        }
    }
}

/// Depthwise convolution with filters of any shape: a result a thread.
#[derive(Debug)]
pub struct AnyDepthwise<T>(PhantomData<T>);

/// What [`AnyDepthwise`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AnyDepthwiseArgs<T> {
    /// The same as of the other kernel, whose padding is not read. Strips are single rows.
    pub base: DepthwiseArgs<T>,
    /// Rows and columns of taps.
    pub taps: [u32; 2],
    /// Rows and columns from one output pixel to the next.
    pub strides: [u32; 2],
    /// Rows of zeros above, and columns of zeros before the first.
    pub padding: [u32; 2],
}

impl<T: DeviceValue> Kernel for AnyDepthwise<T> {
    type Args = AnyDepthwiseArgs<T>;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::AnyDepthwise, value: T::TYPE };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let AnyDepthwiseArgs { base, taps: [rows, columns], strides, padding } = args;
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        let mut nonzeros = 0;
        // SAFETY: the arguments describe maps and filters; this result is this thread's alone. All threads come to the end.
        unsafe {
            if at < base.count {
                let [image, row, column, channel] = base.work::<1, 1>(at);
                let group =
                    base.filters.add_rows(channel / WARP, rows * columns * WARP * size_of::<T>() as u32);
                let lane = group.add((channel % WARP) as usize);
                let plane = base.map.plane(base.input, image, channel);
                let mut sum = 0.0;
                let mut tap = 0;
                while tap < rows * columns {
                    let y = (row * strides[0] + tap / columns).wrapping_sub(padding[0]);
                    let x = (column * strides[1] + tap % columns).wrapping_sub(padding[1]);
                    if let Some(offset) = base.map.offset(y, x) {
                        let [x] = gpu.load_readonly(plane.add_bytes(offset.into()));
                        let [weight] = gpu.load_readonly(lane.add((tap * WARP) as usize));
                        let (x, weight) = (x.to_f32(gpu), weight.to_f32(gpu));
                        sum = if x != 0.0 { gpu.fma(x, weight, sum) } else { sum };
                    }
                    tap += 1;
                }
                if let Some(offset) = base.target.map.offset(row, column) {
                    nonzeros = base.target.finish(gpu, [image, channel], offset, [sum]);
                }
            }
            base.target.count(gpu, nonzeros);
        }
    }
}
