//! Depthwise convolution of maps that lie as NCHW, padded by half of the taps.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, WARP};

use super::{DepthwiseArgs, THREADS, add_product, inside};
use crate::common::are_finite;
use crate::conv::{Scheme, Tile};
use crate::{DeviceValue, Kernel};

/// A thread has `COLUMNS` columns of `ROWS` output rows, and the STRIDE · COLUMNS columns of the input under them, which it loads
/// as vectors. What it needs beside them its neighbours in the warp have; a warp's first and last thread load it.
///
/// ```text
///           lane - 1          this lane          lane + 1
///        ┌───────────┐      ┌───────────┐      ┌───────────┐
///   row  │  ·  ·  ·  ○ ───► │  ●  ●  ●  ●  │ ◄─── ○  ·  ·  ·  │   (COLUMNS = 4, STRIDE = 1, R = 3)
///        └───────────┘      └───────────┘      └───────────┘
/// ```
/// Threads are divided by vectors of a row, strips of rows, and channels. Rows of the input have STRIDE times the columns of those of the
/// result, whole vectors of them; with `COLUMNS` = 1, one column fewer may be there.
#[derive(Debug)]
pub struct DepthwiseNchw<T, const R: usize, const STRIDE: usize, const ROWS: usize, const COLUMNS: usize>(
    PhantomData<T>,
);

/// Columns of a thread's window at most: its own, and what is beside them.
const WINDOW: usize = 8;
/// Rows of a thread's window at most.
const LINES: usize = 7;
/// What a thread has of the input: `BESIDE` columns to the left, its own, and those to the right.
type Window = [[f32; WINDOW]; LINES];

/// A thread's place.
struct Place {
    image: u32,
    channel: u32,
    /// The first row of the result.
    row: u32,
    /// The first column of the result.
    column: u32,
}

impl<T: DeviceValue, const R: usize, const STRIDE: usize, const ROWS: usize, const COLUMNS: usize> Kernel
    for DepthwiseNchw<T, R, STRIDE, ROWS, COLUMNS>
{
    type Args = DepthwiseArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(R % 2 == 1 && Self::BESIDE <= Self::OWN, "what is beside is of the next thread");
        assert!(Self::LINES <= LINES && Self::OWN + 2 * Self::BESIDE <= WINDOW, "the window has so much");
        let scheme = Scheme::DepthwiseNchw {
            taps: R as u32,
            stride: STRIDE as u32,
            tile: [ROWS as u32, COLUMNS as u32],
        };
        Tile { scheme, value: T::TYPE }
    };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        // All threads of a warp take part in shuffles.
        let has_work = at < args.count;
        let [vector, strip, channel, image] = args.split(if has_work { at } else { args.count - 1 });
        let place = Place { image, channel, row: strip * ROWS as u32, column: vector * COLUMNS as u32 };
        // SAFETY: the arguments describe maps and filters; these results are this thread's alone, if it has work.
        unsafe {
            let weights = Self::weights(gpu, &args, channel);
            let bias = args.bias(gpu, channel);
            let window = Self::window(gpu, &args, &place);
            let nonzeros =
                if has_work { Self::finish(gpu, &args, &place, &weights, bias, &window) } else { 0 };
            args.target.count(gpu, nonzeros);
        }
    }
}

impl<T: DeviceValue, const R: usize, const STRIDE: usize, const ROWS: usize, const COLUMNS: usize>
    DepthwiseNchw<T, R, STRIDE, ROWS, COLUMNS>
{
    /// Columns of the input that are a thread's own.
    const OWN: usize = STRIDE * COLUMNS;
    /// Columns beside them on the left; on the right there are no more.
    const BESIDE: usize = R / 2;
    /// Columns beside them on the right.
    const RIGHT: usize = R / 2 + 1 - STRIDE;
    /// Rows of the input.
    const LINES: usize = (ROWS - 1) * STRIDE + R;

    /// A channel's taps.
    ///
    /// # Safety
    /// The channel is there.
    #[inline(always)]
    unsafe fn weights<G: Gpu>(gpu: G, args: &DepthwiseArgs<T>, channel: u32) -> [[f32; R]; R] {
        let taps = args.source.filters.add_rows(channel, (R * R * size_of::<T>()) as u32);
        let mut weights = [[0.0; R]; R];
        for (r, weights) in weights.iter_mut().enumerate() {
            for (s, weight) in weights.iter_mut().enumerate() {
                // SAFETY: as promised by the caller.
                let [tap] = unsafe { gpu.load_readonly(taps.add(r * R + s)) };
                *weight = tap.to_f32(gpu);
            }
        }
        weights
    }

    /// Loads a thread's part of the input, and gets what is beside it.
    ///
    /// # Safety
    /// The place is there; all threads of the warp come here.
    #[inline(always)]
    unsafe fn window<G: Gpu>(gpu: G, args: &DepthwiseArgs<T>, place: &Place) -> Window {
        let map = &args.source.map;
        let plane = map.plane(args.source.input, place.image, place.channel);
        let own = place.column * STRIDE as u32;
        let line = |y: usize| {
            let row = (place.row * STRIDE as u32 + y as u32).wrapping_sub(args.source.padding[0]);
            let (row, is_inside) = inside(row, map.height);
            (plane.add_bytes((row * map.row_bytes).into()), is_inside)
        };
        let mut window = [[0.0; WINDOW]; LINES];
        // SAFETY: as promised by the caller.
        unsafe {
            let mut y = 0;
            while y < Self::LINES {
                let (line, is_inside) = line(y);
                Self::load_own(gpu, line, [own, map.width], is_inside, &mut window[y]);
                y += 1;
            }
            let lane = gpu.lane_id();
            let (is_left, is_right) = (own > 0, own + (Self::OWN as u32) < map.width);
            let loads_left = lane == 0 && is_left;
            let loads_right = lane == WARP - 1 && is_right && Self::RIGHT > 0;
            let mut beside = [[0.0; 2]; LINES];
            if loads_left || loads_right {
                let mut y = 0;
                while y < Self::LINES {
                    let (line, is_inside) = line(y);
                    let mut h = 0;
                    while h < Self::BESIDE {
                        let column =
                            if loads_left { own - 1 - h as u32 } else { own + (Self::OWN + h) as u32 };
                        // On the right there may be fewer columns than on the left.
                        let (column, has_column) = inside(column, map.width);
                        let [x] = gpu.load_readonly(line.add(column as usize));
                        beside[y][h] = if is_inside && has_column { x.to_f32(gpu) } else { 0.0 };
                        h += 1;
                    }
                    y += 1;
                }
            }
            let mut y = 0;
            while y < Self::LINES {
                let mut h = 0;
                while h < Self::BESIDE {
                    let own = window[y][Self::BESIDE + Self::OWN - 1 - h];
                    let left = gpu.warp_shuffle_up(FULL_WARP, own, 1, WARP);
                    let left = if lane == 0 { beside[y][h] } else { left };
                    window[y][Self::BESIDE - 1 - h] = if is_left { left } else { 0.0 };
                    if h < Self::RIGHT {
                        let right = gpu.warp_shuffle_down(FULL_WARP, window[y][Self::BESIDE + h], 1, WARP);
                        let right = if lane == WARP - 1 { beside[y][h] } else { right };
                        window[y][Self::BESIDE + Self::OWN + h] = if is_right { right } else { 0.0 };
                    }
                    h += 1;
                }
                y += 1;
            }
        }
        window
    }

    /// Loads a thread's own columns of a row.
    ///
    /// # Safety
    /// The row is there.
    #[inline(always)]
    unsafe fn load_own<G: Gpu>(
        gpu: G,
        line: GlobalPtr<T>,
        [own, width]: [u32; 2],
        is_inside: bool,
        window: &mut [f32; WINDOW],
    ) {
        let mut k = 0;
        while k < STRIDE {
            let (column, has_column) = inside(own + (k * COLUMNS) as u32, width);
            // SAFETY: as promised by the caller; the columns are in the map.
            let values: [T; COLUMNS] = unsafe { gpu.load_readonly(line.add(column as usize)) };
            let mut c = 0;
            while c < COLUMNS {
                let value = if is_inside && has_column { values[c].to_f32(gpu) } else { 0.0 };
                window[Self::BESIDE + k * COLUMNS + c] = value;
                c += 1;
            }
            k += 1;
        }
    }

    /// Computes and writes a thread's results; gives how many are not zero.
    ///
    /// # Safety
    /// The place is there, and its results are nobody else's.
    #[inline(always)]
    unsafe fn finish<G: Gpu>(
        gpu: G,
        args: &DepthwiseArgs<T>,
        place: &Place,
        weights: &[[f32; R]; R],
        bias: f32,
        window: &Window,
    ) -> u32 {
        let at = [place.image, place.channel];
        let mut sums = if are_finite(weights.as_flattened()) {
            Self::sums::<G, false>(gpu, weights, window)
        } else {
            Self::sums::<G, true>(gpu, weights, window)
        };
        // SAFETY: as promised by the caller.
        unsafe {
            let mut nonzeros = 0;
            for (o, sums) in sums.iter_mut().enumerate() {
                for sum in sums.iter_mut() {
                    *sum += bias;
                }
                if let Some(offset) = args.target.map.offset(place.row + o as u32, place.column) {
                    nonzeros += args.target.finish_biased(gpu, at, offset, *sums);
                }
            }
            nonzeros
        }
    }

    /// The sums of a thread; without what is zero if `EXACT`.
    #[inline(always)]
    fn sums<G: Gpu, const EXACT: bool>(
        gpu: G,
        weights: &[[f32; R]; R],
        window: &Window,
    ) -> [[f32; COLUMNS]; ROWS] {
        let mut sums = [[0.0; COLUMNS]; ROWS];
        for (o, sums) in sums.iter_mut().enumerate() {
            for (c, sum) in sums.iter_mut().enumerate() {
                for r in 0..R {
                    for s in 0..R {
                        let x = window[o * STRIDE + r][c * STRIDE + s];
                        *sum = add_product::<G, EXACT>(gpu, x, weights[r][s], *sum);
                    }
                }
            }
        }
        sums
    }
}
