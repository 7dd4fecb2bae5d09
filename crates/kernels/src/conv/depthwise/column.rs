//! Depthwise convolution for any layout and padding.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu};

use super::{DepthwiseArgs, THREADS, add_product, inside};
use crate::common::are_finite;
use crate::conv::{Scheme, Tile};
use crate::{Bounds, DeviceValue, Kernel, Map};

/// A thread has one column of a channel, and `ROWS` output rows one below another: each row of the input is loaded once, and added to
/// the up to `R` sums that it meets. Threads side by side have what lies side by side in memory, columns or channels, so that
/// the loads of the `R` columns overlap, and the L1 cache has most of them. Work is divided as that of
/// [`AnyDepthwise`](super::AnyDepthwise), with strips of rows for rows.
#[derive(Debug)]
pub struct DepthwiseColumn<T, const R: usize, const STRIDE: usize, const ROWS: usize>(PhantomData<T>);

/// Rows of a thread's input at most.
const LINES: usize = 11;

/// A thread's input: where its plane is, its first row, and for each tap along a row, the bytes to its column and whether that is inside.
struct Window<T, const R: usize> {
    plane: GlobalPtr<T>,
    row: u32,
    columns: [u32; R],
    are_inside: [bool; R],
}

impl<T: DeviceValue, const R: usize, const STRIDE: usize, const ROWS: usize> Kernel
    for DepthwiseColumn<T, R, STRIDE, ROWS>
{
    type Args = DepthwiseArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(ROWS == 4 && (ROWS - 1) * STRIDE + R <= LINES, "rows are written out below");
        let scheme = Scheme::DepthwiseColumn { taps: R as u32, stride: STRIDE as u32, rows: ROWS as u32 };
        Tile { scheme, value: T::TYPE }
    };
    const THREADS: u32 = THREADS;
    /// So many registers that all rows are on their way at once.
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: if R > 3 { 4 } else { 6 } };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        let mut nonzeros = 0;
        if at < args.count {
            let [image, channel, strip, column] = args.place(at);
            // SAFETY: the arguments describe maps and filters; these results are this thread's alone.
            nonzeros = unsafe { Self::strip(gpu, &args, [image, channel], [strip * ROWS as u32, column]) };
        }
        // SAFETY: all threads come here.
        unsafe { args.target.count(gpu, nonzeros) };
    }
}

impl<T: DeviceValue, const R: usize, const STRIDE: usize, const ROWS: usize>
    DepthwiseColumn<T, R, STRIDE, ROWS>
{
    /// Computes the results of a channel and a column, from a row on; gives how many are not zero.
    ///
    /// # Safety
    /// The image, the channel and the column are there, and these results are nobody else's.
    #[inline(always)]
    unsafe fn strip<G: Gpu>(
        gpu: G,
        args: &DepthwiseArgs<T>,
        [image, channel]: [u32; 2],
        [row, column]: [u32; 2],
    ) -> u32 {
        let map = &args.source.map;
        let (taps, step) = args.taps(channel, (R * R) as u32);
        let mut weights = [[0.0_f32; R]; R];
        let mut values = [[0.0_f32; R]; LINES];
        let (mut columns, mut are_inside) = ([0; R], [false; R]);
        let first = (column * STRIDE as u32).wrapping_sub(args.source.padding[1]);
        // SAFETY: as promised by the caller.
        unsafe {
            for (s, bytes) in columns.iter_mut().enumerate() {
                let (column, is_inside) = inside(first.wrapping_add(s as u32), map.width);
                (*bytes, are_inside[s]) = (column * map.column_bytes, is_inside);
                for (r, weights) in weights.iter_mut().enumerate() {
                    let [tap] = gpu.load_readonly(taps.add((r * R + s) * step as usize));
                    weights[s] = tap.to_f32(gpu);
                }
            }
            let plane = map.plane(args.source.input, image, channel);
            let row_of_input = (row * STRIDE as u32).wrapping_sub(args.source.padding[0]);
            let window = Window { plane, row: row_of_input, columns, are_inside };
            // Rows are written out, as LLVM does not unroll so much.
            Self::load_row::<G, 0>(gpu, map, &window, &mut values);
            Self::load_row::<G, 1>(gpu, map, &window, &mut values);
            Self::load_row::<G, 2>(gpu, map, &window, &mut values);
            Self::load_row::<G, 3>(gpu, map, &window, &mut values);
            Self::load_row::<G, 4>(gpu, map, &window, &mut values);
            Self::load_row::<G, 5>(gpu, map, &window, &mut values);
            Self::load_row::<G, 6>(gpu, map, &window, &mut values);
            Self::load_row::<G, 7>(gpu, map, &window, &mut values);
            Self::load_row::<G, 8>(gpu, map, &window, &mut values);
            Self::load_row::<G, 9>(gpu, map, &window, &mut values);
            Self::load_row::<G, 10>(gpu, map, &window, &mut values);
            let sums = if are_finite(weights.as_flattened()) {
                Self::sums::<G, false>(gpu, &values, &weights)
            } else {
                Self::sums::<G, true>(gpu, &values, &weights)
            };
            let finish = |o: usize| match args.target.map.offset(row + o as u32, column) {
                Some(offset) => args.target.finish(gpu, [image, channel], offset, [sums[o]]),
                None => 0,
            };
            finish(0) + finish(1) + finish(2) + finish(3)
        }
    }

    /// Loads row `Y` of a thread's input.
    ///
    /// # Safety
    /// The plane is there.
    #[inline(always)]
    unsafe fn load_row<G: Gpu, const Y: usize>(
        gpu: G,
        map: &Map,
        window: &Window<T, R>,
        values: &mut [[f32; R]; LINES],
    ) {
        if Y >= (ROWS - 1) * STRIDE + R {
            return;
        }
        let (row, is_inside) = inside(window.row.wrapping_add(Y as u32), map.height);
        let line = window.plane.add_bytes((row * map.row_bytes).into());
        for (s, value) in values[Y].iter_mut().enumerate() {
            // SAFETY: as promised by the caller; the pixel is in the map.
            let [x] = unsafe { gpu.load_readonly(line.add_bytes(window.columns[s].into())) };
            *value = if is_inside && window.are_inside[s] { x.to_f32(gpu) } else { 0.0 };
        }
    }

    /// The sums of a thread; without what is zero if `EXACT`.
    #[inline(always)]
    fn sums<G: Gpu, const EXACT: bool>(
        gpu: G,
        values: &[[f32; R]; LINES],
        weights: &[[f32; R]; R],
    ) -> [f32; ROWS] {
        let mut sums = [0.0; ROWS];
        for (o, sum) in sums.iter_mut().enumerate() {
            for r in 0..R {
                for s in 0..R {
                    *sum = add_product::<G, EXACT>(gpu, values[o * STRIDE + r][s], weights[r][s], *sum);
                }
            }
        }
        sums
    }
}
