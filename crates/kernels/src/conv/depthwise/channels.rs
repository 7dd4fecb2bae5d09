//! Depthwise convolution of maps that lie as NHWC.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, WARP};

use super::{DepthwiseArgs, THREADS, add_product, inside};
use crate::common::are_finite;
use crate::conv::{Scheme, Tile};
use crate::{Bounds, DeviceValue, Kernel, Map};

/// A thread has `V` channels, and of each `ROWS` × `COLUMNS` results; it goes through the rows of the input, each of which it loads
/// once. The threads of a block have vectors of channels side by side, columns and rows (`lanes`), so that what they load beside their
/// own columns and rows is in the L1 cache. Blocks are divided by groups of channels, columns, and rows.
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
const WINDOW: usize = 5;

/// A thread's input: the first pixel of its plane, its first row, and of each column the bytes to it, and whether it is inside.
struct Window<T> {
    plane: GlobalPtr<T>,
    row: u32,
    columns: [u32; WINDOW],
    are_inside: [bool; WINDOW],
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
        assert!((ROWS - 1) * STRIDE + R <= 4 && Self::COLUMNS_IN <= WINDOW, "rows are written out below");
        assert!(matches!(V * size_of::<T>(), 8 | 16), "a thread loads 8 or 16 bytes");
        let scheme = Scheme::DepthwiseNhwc {
            taps: R as u32,
            stride: STRIDE as u32,
            tile: [ROWS as u32, COLUMNS as u32],
            vector: V as u32,
        };
        Tile { scheme, value: T::TYPE }
    };
    const THREADS: u32 = THREADS;
    /// So many registers that a row is on its way beside the taps and the sums, and no more.
    const BOUNDS: Bounds =
        Bounds { max_threads: THREADS, min_blocks: if ROWS * COLUMNS == 1 { 6 } else { 4 } };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let (block, thread) = (gpu.block_idx_x(), gpu.thread_idx_x());
        let [group, columns, rows, image] = args.split(block);
        let [of_channels, of_columns] = args.lanes;
        let vector = (group << of_channels) + (thread & ((1 << of_channels) - 1));
        let across = (columns << of_columns) + ((thread >> of_channels) & ((1 << of_columns) - 1));
        let down = rows * (THREADS >> (of_channels + of_columns)) + (thread >> (of_channels + of_columns));
        let (channel, row, column) = (vector * V as u32, down * ROWS as u32, across * COLUMNS as u32);
        let map = &args.target.map;
        let mut nonzeros = 0;
        if channel < map.channels && row < map.height && column < map.width {
            // SAFETY: the arguments describe maps and filters; these results are this thread's alone.
            nonzeros = unsafe { Self::tile(gpu, &args, [image, channel], [row, column]) };
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
    /// Columns of the input of a thread.
    const COLUMNS_IN: usize = (COLUMNS - 1) * STRIDE + R;

    /// Computes the results of a thread; gives how many are not zero.
    ///
    /// # Safety
    /// The image, the channels and the first pixel are there, and these results are nobody else's.
    #[inline(always)]
    unsafe fn tile<G: Gpu>(
        gpu: G,
        args: &DepthwiseArgs<T>,
        [image, channel]: [u32; 2],
        [row, column]: [u32; 2],
    ) -> u32 {
        let map = &args.source.map;
        let (taps, _) = args.taps(channel, (R * R) as u32);
        let mut weights = [[[0.0_f32; V]; R]; R];
        let (mut columns, mut are_inside) = ([0; WINDOW], [false; WINDOW]);
        let first = [
            (row * STRIDE as u32).wrapping_sub(args.source.padding[0]),
            (column * STRIDE as u32).wrapping_sub(args.source.padding[1]),
        ];
        let mut s = 0;
        while s < Self::COLUMNS_IN {
            let (column, is_inside) = inside(first[1].wrapping_add(s as u32), map.width);
            (columns[s], are_inside[s]) = (column * map.column_bytes, is_inside);
            s += 1;
        }
        // SAFETY: as promised by the caller.
        unsafe {
            for (r, weights) in weights.iter_mut().enumerate() {
                for (s, weights) in weights.iter_mut().enumerate() {
                    let tap: [T; V] = gpu.load_readonly(taps.add((r * R + s) * WARP as usize));
                    *weights = tap.map(|tap| tap.to_f32(gpu));
                }
            }
            let plane = map.plane(args.source.input, image, channel);
            let window = Window { plane, row: first[0], columns, are_inside };
            let mut sums = Self::sums::<G, false>(gpu, map, &window, &weights);
            if !are_finite(sums.as_flattened().as_flattened()) {
                sums = Self::sums::<G, true>(gpu, map, &window, &weights);
            }
            let mut nonzeros = 0;
            for (o, sums) in sums.iter().enumerate() {
                for (c, sums) in sums.iter().enumerate() {
                    if let Some(offset) = args.target.map.offset(row + o as u32, column + c as u32) {
                        nonzeros += args.target.finish(gpu, [image, channel], offset, *sums);
                    }
                }
            }
            nonzeros
        }
    }

    /// Loads the input, and gives the sums of a thread; without what is zero if `EXACT`.
    ///
    /// # Safety
    /// The channels are there.
    #[inline(always)]
    unsafe fn sums<G: Gpu, const EXACT: bool>(
        gpu: G,
        map: &Map,
        window: &Window<T>,
        weights: &[[[f32; V]; R]; R],
    ) -> [[[f32; V]; COLUMNS]; ROWS] {
        let mut sums = [[[0.0; V]; COLUMNS]; ROWS];
        // SAFETY: as promised by the caller. Rows are written out, as LLVM does not unroll so much.
        unsafe {
            Self::add_row::<G, EXACT, 0>(gpu, map, window, weights, &mut sums);
            Self::add_row::<G, EXACT, 1>(gpu, map, window, weights, &mut sums);
            Self::add_row::<G, EXACT, 2>(gpu, map, window, weights, &mut sums);
            Self::add_row::<G, EXACT, 3>(gpu, map, window, weights, &mut sums);
        }
        sums
    }

    /// Adds row `Y` of a thread's input.
    ///
    /// # Safety
    /// The channels are there.
    #[inline(always)]
    unsafe fn add_row<G: Gpu, const EXACT: bool, const Y: usize>(
        gpu: G,
        map: &Map,
        window: &Window<T>,
        weights: &[[[f32; V]; R]; R],
        sums: &mut [[[f32; V]; COLUMNS]; ROWS],
    ) {
        if Y >= (ROWS - 1) * STRIDE + R {
            return;
        }
        let (row, is_inside) = inside(window.row.wrapping_add(Y as u32), map.height);
        let line = window.plane.add_bytes((row * map.row_bytes).into());
        let mut values = [[0.0; V]; WINDOW];
        let mut x = 0;
        while x < Self::COLUMNS_IN {
            let pixel = line.add_bytes(window.columns[x].into());
            // SAFETY: as promised by the caller; the pixel is in the map. The second time other instructions load it: the compiler would
            // keep the first's values in registers.
            let loaded: [T; V] = unsafe {
                if EXACT {
                    gpu.load(GlobalMut::from_address(pixel.address()))
                } else {
                    gpu.load_readonly(pixel)
                }
            };
            let is_inside = is_inside && window.are_inside[x];
            values[x] = loaded.map(|value| if is_inside { value.to_f32(gpu) } else { 0.0 });
            x += 1;
        }
        for o in 0..ROWS {
            if Y >= o * STRIDE && Y - o * STRIDE < R {
                for c in 0..COLUMNS {
                    for s in 0..R {
                        for v in 0..V {
                            let weight = weights[Y - o * STRIDE][s][v];
                            let x = values[c * STRIDE + s][v];
                            sums[o][c][v] = add_product::<G, EXACT>(gpu, x, weight, sums[o][c][v]);
                        }
                    }
                }
            }
        }
    }
}
