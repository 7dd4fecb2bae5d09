//! Depthwise convolution of maps that lie as NHWC, by strips of rows.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, WARP};

use super::{DepthwiseArgs, THREADS, inside};
use crate::common::are_finite;
use crate::conv::{Scheme, Tile};
use crate::{Bounds, DeviceValue, Kernel, Map};

/// A thread has `V` channels, and `COLUMNS` results of each row of a strip, through which it goes from above. Each row of the input is loaded
/// once: it is added to all results that it is under, which are open at the same time, and whose sums are in registers.
///
/// ```text
///      input      open results (R = 3, STRIDE = 1)
///   ┌─────────┐
///   │ row y-1 │   finished, written
///   │ row y   │   y-1: its last taps │ y: its middle taps │ y+1: its first taps
///   │ row y+1 │   loaded while those are multiplied
///   └─────────┘
/// ```
/// The threads of a block have vectors of channels side by side, columns and strips (`lanes`), so that what they load beside their own
/// columns is in the L1 cache. Blocks are divided by groups of channels, columns, and strips.
#[derive(Debug)]
pub struct DepthwiseStrips<T, const R: usize, const STRIDE: usize, const COLUMNS: usize, const V: usize>(
    PhantomData<T>,
);

/// Columns of a thread's row at most.
const WINDOW: usize = 5;
/// Results of a column that are open at most.
const OPEN: usize = 3;
/// Rows of the input for one more row of results, and of those before the first ones, at most.
const STEP: usize = 2;

/// A thread's part of a row, as it is in memory.
type Row<T, const V: usize> = [[T; V]; WINDOW];
/// The sums of open rows of results, the one that is finished next first.
type Sums<const V: usize, const COLUMNS: usize> = [[[f32; V]; COLUMNS]; OPEN];

/// A thread's columns: the first pixel of its plane, and of each column the bytes to it, and whether it is inside.
struct Window<T> {
    plane: GlobalPtr<T>,
    columns: [u32; WINDOW],
    are_inside: [bool; WINDOW],
}

impl<T: DeviceValue, const R: usize, const STRIDE: usize, const COLUMNS: usize, const V: usize> Kernel
    for DepthwiseStrips<T, R, STRIDE, COLUMNS, V>
{
    type Args = DepthwiseArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(R.div_ceil(STRIDE) <= OPEN && Self::COLUMNS_IN <= WINDOW, "there is room for so much");
        assert!(STRIDE <= STEP && STRIDE < R && Self::HEAD <= STEP, "a step has so many rows");
        assert!(matches!(V * size_of::<T>(), 8 | 16), "a thread loads 8 or 16 bytes");
        let scheme = Scheme::DepthwiseStrips {
            taps: R as u32,
            stride: STRIDE as u32,
            columns: COLUMNS as u32,
            vector: V as u32,
        };
        Tile { scheme, value: T::TYPE }
    };
    const THREADS: u32 = THREADS;
    /// So many registers that a row is on its way beside the taps and the sums, and no more.
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: 4 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let (block, thread) = (gpu.block_idx_x(), gpu.thread_idx_x());
        let [group, columns, strips, image] = args.split(block);
        let [of_channels, of_columns] = args.lanes;
        let vector = (group << of_channels) + (thread & ((1 << of_channels) - 1));
        let across = (columns << of_columns) + ((thread >> of_channels) & ((1 << of_columns) - 1));
        let down = strips * (THREADS >> (of_channels + of_columns)) + (thread >> (of_channels + of_columns));
        let (channel, row, column) = (vector * V as u32, down * args.strip, across * COLUMNS as u32);
        let map = &args.target.map;
        let mut nonzeros = 0;
        if channel < map.channels && row < map.height && column < map.width {
            // SAFETY: the arguments describe maps and filters; these results are this thread's alone.
            nonzeros = unsafe { Self::strip(gpu, &args, [image, channel], [row, column]) };
        }
        // SAFETY: all threads come here.
        unsafe { args.target.count(gpu, nonzeros) };
    }
}

impl<T: DeviceValue, const R: usize, const STRIDE: usize, const COLUMNS: usize, const V: usize>
    DepthwiseStrips<T, R, STRIDE, COLUMNS, V>
{
    /// Columns of the input of a thread.
    const COLUMNS_IN: usize = (COLUMNS - 1) * STRIDE + R;
    /// Rows of a result's input that come before those of its own step.
    const HEAD: usize = R - STRIDE;

    /// Computes the results of a thread; gives how many are not zero.
    ///
    /// # Safety
    /// The image, the channels and the first pixel are there, and these results are nobody else's.
    #[inline(always)]
    unsafe fn strip<G: Gpu>(
        gpu: G,
        args: &DepthwiseArgs<T>,
        [image, channel]: [u32; 2],
        [row, column]: [u32; 2],
    ) -> u32 {
        let (map, out) = (&args.source.map, &args.target.map);
        let end = u32::min(row + args.strip, out.height);
        // SAFETY: as promised by the caller.
        unsafe {
            // Before the input is loaded: with a loop behind, ptxas would take the rest for the cold part, and let loads wait for each other.
            let weights = Self::weights(gpu, args, channel);
            if !are_finite(weights.as_flattened().as_flattened()) {
                return Self::exact(gpu, args, [image, channel], [row, end, column]);
            }
            let plane = map.plane(args.source.input, image, channel);
            let window =
                Self::window(plane, map, (column * STRIDE as u32).wrapping_sub(args.source.padding[1]));
            let mut y = (row * STRIDE as u32).wrapping_sub(args.source.padding[0]);
            // All that the first results need is on its way at once.
            let mut head = [[[T::default(); V]; WINDOW]; STEP];
            let mut h = 0;
            while h < Self::HEAD {
                head[h] = Self::load(gpu, map, &window, y.wrapping_add(h as u32));
                h += 1;
            }
            y = y.wrapping_add(Self::HEAD as u32);
            let mut step = Self::load_step(gpu, map, &window, y);
            let mut sums = [[[0.0; V]; COLUMNS]; OPEN];
            let mut h = 0;
            while h < Self::HEAD {
                Self::add(gpu, &weights, &head[h], h, &mut sums);
                h += 1;
            }
            let bias: [f32; V] = core::array::from_fn(|v| args.bias(gpu, channel + v as u32));
            let mut nonzeros = 0;
            let mut o = row;
            while o < end {
                let mut k = 0;
                while k < STRIDE {
                    Self::add(gpu, &weights, &step[k], Self::HEAD + k, &mut sums);
                    k += 1;
                }
                // The next rows are on their way while results are written; behind the last ones, too.
                y = y.wrapping_add(STRIDE as u32);
                step = Self::load_step(gpu, map, &window, y);
                let mut c = 0;
                while c < COLUMNS {
                    if let Some(offset) = out.offset(o, column + c as u32) {
                        let mut biased = sums[0][c];
                        let mut v = 0;
                        while v < V {
                            biased[v] += bias[v];
                            v += 1;
                        }
                        nonzeros += args.target.finish_biased(gpu, [image, channel], offset, biased);
                    }
                    c += 1;
                }
                let mut open = 0;
                while open < OPEN {
                    sums[open] = if open + 1 < OPEN { sums[open + 1] } else { [[0.0; V]; COLUMNS] };
                    open += 1;
                }
                o += 1;
            }
            nonzeros
        }
    }

    /// The same with a test for each product, where taps are not finite.
    ///
    /// # Safety
    /// As for [`strip`](Self::strip).
    #[inline(always)]
    unsafe fn exact<G: Gpu>(
        gpu: G,
        args: &DepthwiseArgs<T>,
        [image, channel]: [u32; 2],
        [row, end, column]: [u32; 3],
    ) -> u32 {
        let mut nonzeros = 0;
        let mut at = 0;
        while at < (end - row) * (COLUMNS * V) as u32 {
            let (v, place) = (at % V as u32, at / V as u32);
            let (c, o) = (place % COLUMNS as u32, place / COLUMNS as u32);
            // SAFETY: as promised by the caller.
            nonzeros += unsafe { args.exact(gpu, [image, channel + v], [row + o, column + c]) };
            at += 1;
        }
        nonzeros
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

    /// A thread's columns, from one on.
    #[inline(always)]
    fn window(plane: GlobalPtr<T>, map: &Map, first: u32) -> Window<T> {
        let (mut columns, mut are_inside) = ([0; WINDOW], [false; WINDOW]);
        let mut s = 0;
        while s < Self::COLUMNS_IN {
            let (column, is_inside) = inside(first.wrapping_add(s as u32), map.width);
            (columns[s], are_inside[s]) = (column * map.column_bytes, is_inside);
            s += 1;
        }
        Window { plane, columns, are_inside }
    }

    /// The rows of the input that one more row of results needs.
    ///
    /// # Safety
    /// The plane is there.
    #[inline(always)]
    unsafe fn load_step<G: Gpu>(gpu: G, map: &Map, window: &Window<T>, y: u32) -> [Row<T, V>; STEP] {
        let mut step = [[[T::default(); V]; WINDOW]; STEP];
        let mut k = 0;
        while k < STRIDE {
            // SAFETY: as promised by the caller.
            step[k] = unsafe { Self::load(gpu, map, window, y.wrapping_add(k as u32)) };
            k += 1;
        }
        step
    }

    /// A thread's part of a row; zeros outside.
    ///
    /// # Safety
    /// The plane is there.
    #[inline(always)]
    unsafe fn load<G: Gpu>(gpu: G, map: &Map, window: &Window<T>, y: u32) -> Row<T, V> {
        let (y, is_inside) = inside(y, map.height);
        let line = window.plane.add_bytes((y * map.row_bytes).into());
        let mut row = [[T::default(); V]; WINDOW];
        let mut x = 0;
        while x < Self::COLUMNS_IN {
            // SAFETY: as promised by the caller; the pixel is in the map.
            let loaded: [T; V] = unsafe { gpu.load_readonly(line.add_bytes(window.columns[x].into())) };
            let is_inside = is_inside && window.are_inside[x];
            row[x] = loaded.map(|value| if is_inside { value } else { T::default() });
            x += 1;
        }
        row
    }

    /// Adds row `r` of the first open result's input to all open results.
    #[inline(always)]
    fn add<G: Gpu>(
        gpu: G,
        weights: &[[[f32; V]; R]; R],
        row: &Row<T, V>,
        r: usize,
        sums: &mut Sums<V, COLUMNS>,
    ) {
        let row = row.map(|values| values.map(|value| value.to_f32(gpu)));
        for open in 0..OPEN {
            if open * STRIDE <= r {
                for c in 0..COLUMNS {
                    for s in 0..R {
                        for v in 0..V {
                            let (x, weight) = (row[c * STRIDE + s][v], weights[r - open * STRIDE][s][v]);
                            sums[open][c][v] = gpu.fma(x, weight, sums[open][c][v]);
                        }
                    }
                }
            }
        }
    }
}
