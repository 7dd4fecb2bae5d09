//! Depthwise convolution of maps that lie as NHWC.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, WARP};

use super::{DepthwiseArgs, Results, THREADS, add_product};
use crate::common::are_finite;
use crate::conv::{Scheme, Tile};
use crate::{DeviceValue, Kernel};

/// A thread has `V` channels, and of each a tile of `ROWS` × `COLUMNS` results, whose input it loads at once. Lanes of a warp have channels
/// side by side: few a thread, so that tiles may be large, and each load is a row of 128 bytes.
///
/// ```text
///        lane 0   lane 1   lane 2  …  channels         ┌─────────┐  input of a thread (ROWS = 7, COLUMNS = 2, R = 3):
///       ┌────────┬────────┬────────┬──                 │ ○ ○ ○ ○ │  9 × 4 pixels. Of those at its edges (○) it tests
///       │ 7 × 2  │ 7 × 2  │ 7 × 2  │                   │ ○ ● ● ○ │  whether they are in the map; the others are.
///       └────────┴────────┴────────┴──                 │ ○ ● ● ○ │
///                                                      └────…────┘
/// ```
/// Threads are divided by vectors of channels, tiles along a row, and along a column. The last tiles begin where they end with the map: what they
/// share with those before is theirs. So a map has `ROWS` × `COLUMNS` results at least. It is padded by half of the taps, or less.
#[derive(Debug)]
pub struct DepthwiseNhwc<
    T,
    const R: usize,
    const STRIDE: usize,
    const ROWS: usize,
    const COLUMNS: usize,
    const V: usize,
>(PhantomData<T>);

/// Columns of a thread's window at most.
const WINDOW: usize = 7;
/// Rows of a thread's window at most.
const LINES: usize = 15;
/// A thread's input.
type Window<const V: usize> = [[[f32; V]; WINDOW]; LINES];

/// A thread's place.
struct Place {
    image: u32,
    channel: u32,
    /// The first row of the result.
    row: u32,
    /// The first column of the result.
    column: u32,
}

impl<
    T: DeviceValue,
    const R: usize,
    const STRIDE: usize,
    const ROWS: usize,
    const COLUMNS: usize,
    const V: usize,
> Kernel for DepthwiseNhwc<T, R, STRIDE, ROWS, COLUMNS, V>
{
    type Args = DepthwiseArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(R % 2 == 1 && Self::IN[0] <= LINES && Self::IN[1] <= WINDOW, "the window has so much");
        assert!(V * size_of::<T>() <= 4, "32 lanes load 128 bytes at most");
        let scheme = Scheme::DepthwiseNhwc {
            taps: R as u32,
            stride: STRIDE as u32,
            tile: [ROWS as u32, COLUMNS as u32],
            vector: V as u32,
        };
        Tile { scheme, value: T::TYPE }
    };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        let mut nonzeros = 0;
        if at < args.count {
            let [vector, across, down, image] = args.split(at);
            let map = &args.target.map;
            let [row, column] = [down * ROWS as u32, across * COLUMNS as u32];
            let place = Place {
                image,
                channel: vector * V as u32,
                row: u32::min(row, map.height - ROWS as u32),
                column: u32::min(column, map.width - COLUMNS as u32),
            };
            let others = [row - place.row, column - place.column];
            // SAFETY: the arguments describe maps and filters; results that are not others' are this thread's alone.
            nonzeros = unsafe { Self::tile(gpu, &args, &place, others) };
        }
        // SAFETY: all threads come here.
        unsafe { args.target.count(gpu, nonzeros) };
    }
}

impl<
    T: DeviceValue,
    const R: usize,
    const STRIDE: usize,
    const ROWS: usize,
    const COLUMNS: usize,
    const V: usize,
> DepthwiseNhwc<T, R, STRIDE, ROWS, COLUMNS, V>
{
    /// Rows and columns of a thread's input.
    const IN: [usize; 2] = [(ROWS - 1) * STRIDE + R, (COLUMNS - 1) * STRIDE + R];
    /// Rows and columns at each edge of a thread's input that may lie outside of the map.
    const EDGE: usize = R / 2;

    /// Computes and writes the results of a thread; gives how many are not zero.
    ///
    /// # Safety
    /// The place is there; its first rows and columns of results are others', the rest is nobody else's.
    #[inline(always)]
    unsafe fn tile<G: Gpu>(gpu: G, args: &DepthwiseArgs<T>, place: &Place, others: [u32; 2]) -> u32 {
        let at = [place.image, place.channel];
        let map = &args.target.map;
        // SAFETY: as promised by the caller.
        unsafe {
            let weights = Self::weights(gpu, args, place.channel);
            let mut bias = [0.0; V];
            for (v, bias) in bias.iter_mut().enumerate() {
                *bias = args.bias(gpu, place.channel + v as u32);
            }
            let window = Self::window(gpu, args, place);
            let sums = if are_finite(weights.as_flattened().as_flattened()) {
                Self::sums::<G, false>(gpu, &weights, bias, &window)
            } else {
                Self::sums::<G, true>(gpu, &weights, bias, &window)
            };
            let offset = place.row * map.row_bytes + place.column * map.column_bytes;
            args.finish(gpu, at, offset, others, sums)
        }
    }

    /// The taps of a thread's channels.
    ///
    /// # Safety
    /// The channels are there.
    #[inline(always)]
    unsafe fn weights<G: Gpu>(gpu: G, args: &DepthwiseArgs<T>, channel: u32) -> [[[f32; V]; R]; R] {
        let (taps, _) = args.taps(channel, (R * R) as u32);
        let mut weights = [[[0.0_f32; V]; R]; R];
        for (r, weights) in weights.iter_mut().enumerate() {
            for (s, weights) in weights.iter_mut().enumerate() {
                // SAFETY: as promised by the caller.
                let tap: [T; V] = unsafe { gpu.load_readonly(taps.add((r * R + s) * WARP as usize)) };
                *weights = tap.map(|tap| tap.to_f32(gpu));
            }
        }
        weights
    }

    /// Loads a thread's input; zeros outside.
    ///
    /// # Safety
    /// The place is there.
    #[inline(always)]
    unsafe fn window<G: Gpu>(gpu: G, args: &DepthwiseArgs<T>, place: &Place) -> Window<V> {
        let map = &args.source.map;
        let row = (place.row * STRIDE as u32).wrapping_sub(args.source.padding[0]);
        let column = (place.column * STRIDE as u32).wrapping_sub(args.source.padding[1]);
        let is_edge = |number: usize, of: usize| number < Self::EDGE || number + Self::EDGE >= of;
        let has_row = |y: usize| !is_edge(y, Self::IN[0]) || row.wrapping_add(y as u32) < map.height;
        let has_column = |x: usize| !is_edge(x, Self::IN[1]) || column.wrapping_add(x as u32) < map.width;
        // The first pixel of the input that is always there, and from it back to the first one.
        let inner = [row.wrapping_add(Self::EDGE as u32), column.wrapping_add(Self::EDGE as u32)];
        let inner = inner[0] * map.row_bytes + inner[1] * map.column_bytes;
        let back = Self::EDGE as u64 * (u64::from(map.row_bytes) + u64::from(map.column_bytes));
        let plane = map.plane(args.source.input, place.image, place.channel);
        let mut line: GlobalPtr<T> = plane.add_bytes(inner.into()).add_bytes(back.wrapping_neg());
        let mut window = [[[0.0; V]; WINDOW]; LINES];
        let mut y = 0;
        while y < Self::IN[0] {
            let mut x = 0;
            while x < Self::IN[1] {
                let mut values = [T::default(); V];
                if has_row(y) && has_column(x) {
                    let pixel = line.add_bytes(x as u64 * u64::from(map.column_bytes));
                    // SAFETY: as promised by the caller; the pixel is in the map.
                    values = unsafe { gpu.load_readonly(pixel) };
                }
                window[y][x] = values.map(|value| value.to_f32(gpu));
                x += 1;
            }
            line = line.add_bytes(map.row_bytes.into());
            y += 1;
        }
        window
    }

    /// The sums of a thread, and the bias; without what is zero if `EXACT`.
    #[inline(always)]
    fn sums<G: Gpu, const EXACT: bool>(
        gpu: G,
        weights: &[[[f32; V]; R]; R],
        bias: [f32; V],
        window: &Window<V>,
    ) -> Results<V, COLUMNS, ROWS> {
        let mut sums = [[[0.0; V]; COLUMNS]; ROWS];
        for (o, sums) in sums.iter_mut().enumerate() {
            for (c, sums) in sums.iter_mut().enumerate() {
                for r in 0..R {
                    for s in 0..R {
                        for (v, sum) in sums.iter_mut().enumerate() {
                            let x = window[o * STRIDE + r][c * STRIDE + s][v];
                            *sum = add_product::<G, EXACT>(gpu, x, weights[r][s][v], *sum);
                        }
                    }
                }
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum += bias[v];
                }
            }
        }
        sums
    }
}
