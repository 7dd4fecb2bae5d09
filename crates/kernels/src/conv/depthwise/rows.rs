//! Depthwise convolution of maps that lie as NCHW, padded by half of the taps.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, WARP};

use super::{DepthwiseArgs, Results, THREADS, add_product};
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
/// result, whole vectors of them; with `COLUMNS` = 1, one column fewer may be there. The last strip begins where it ends with the map: what it
/// shares with the one before is that one's. So a map has `ROWS` rows at least. Rows are padded by half of the taps, columns by that or less.
#[derive(Debug)]
pub struct DepthwiseNchw<T, const R: usize, const STRIDE: usize, const ROWS: usize, const COLUMNS: usize>(
    PhantomData<T>,
);

/// Columns of a thread's window at most: its own, and what is beside them.
const WINDOW: usize = 8;
/// Rows of a thread's window at most.
const LINES: usize = 9;
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
        let row = u32::min(strip * ROWS as u32, args.target.map.height - ROWS as u32);
        let place = Place { image, channel, row, column: vector * COLUMNS as u32 };
        let others = [strip * ROWS as u32 - row, 0];
        // SAFETY: the arguments describe maps and filters; results that are not others' are this thread's alone, if it has work.
        unsafe {
            let weights = Self::weights(gpu, &args, channel);
            let bias = args.bias(gpu, channel);
            let window = Self::window(gpu, &args, &place);
            let mut nonzeros = 0;
            if has_work {
                let sums = if are_finite(weights.as_flattened()) {
                    Self::sums::<G, false>(gpu, &weights, bias, &window)
                } else {
                    Self::sums::<G, true>(gpu, &weights, bias, &window)
                };
                let map = &args.target.map;
                let offset = row * map.row_bytes + place.column * map.column_bytes;
                nonzeros = args.finish(gpu, [image, channel], offset, others, sums);
            }
            args.target.count(gpu, nonzeros);
        }
    }
}

impl<T: DeviceValue, const R: usize, const STRIDE: usize, const ROWS: usize, const COLUMNS: usize>
    DepthwiseNchw<T, R, STRIDE, ROWS, COLUMNS>
{
    /// Columns of the input that are a thread's own.
    const OWN: usize = STRIDE * COLUMNS;
    /// Columns beside them on the left; on the right there are no more. As many rows above, and below, may lie outside of the map.
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

    /// Loads a thread's part of the input, and gets what is beside it; zeros outside.
    ///
    /// # Safety
    /// The place is there; all threads of the warp come here.
    #[inline(always)]
    unsafe fn window<G: Gpu>(gpu: G, args: &DepthwiseArgs<T>, place: &Place) -> Window {
        let map = &args.source.map;
        let own = place.column * STRIDE as u32;
        let row = (place.row * STRIDE as u32).wrapping_sub(args.source.padding[0]);
        let has_row = |y: usize| {
            let is_edge = y < Self::BESIDE || y + Self::BESIDE >= Self::LINES;
            !is_edge || row.wrapping_add(y as u32) < map.height
        };
        // The first row of the input that is always there, and from it back to the first one.
        let inner = row.wrapping_add(Self::BESIDE as u32) * map.row_bytes;
        let back = Self::BESIDE as u64 * u64::from(map.row_bytes);
        let plane = map.plane(args.source.input, place.image, place.channel);
        let first = plane.add(own as usize).add_bytes(inner.into()).add_bytes(back.wrapping_neg());
        let next = |line: GlobalPtr<T>| line.add_bytes(map.row_bytes.into());

        let lane = gpu.lane_id();
        let (is_left, is_right) = (own > 0, own + (Self::OWN as u32) < map.width);
        let loads_left = lane == 0 && is_left;
        let loads_right = lane == WARP - 1 && is_right && Self::RIGHT > 0;
        let mut window = [[0.0; WINDOW]; LINES];
        let mut beside = [[0.0; 2]; LINES];
        // SAFETY: as promised by the caller.
        unsafe {
            let mut line = first;
            let mut y = 0;
            while y < Self::LINES {
                if has_row(y) {
                    Self::load_own(gpu, line, [own, map.width], &mut window[y]);
                }
                line = next(line);
                y += 1;
            }
            if loads_left || loads_right {
                let mut line = first;
                let mut y = 0;
                while y < Self::LINES {
                    let mut h = 0;
                    while h < Self::BESIDE {
                        let right = (Self::OWN + h) as u32;
                        // On the right there may be fewer columns than on the left.
                        let has_column = loads_left || COLUMNS > 1 || own + right < map.width;
                        let columns = if loads_left { (1 + h as u64).wrapping_neg() } else { right.into() };
                        let place = line.add_bytes(columns.wrapping_mul(size_of::<T>() as u64));
                        if has_row(y) && has_column {
                            let [x] = gpu.load_readonly(place);
                            beside[y][h] = x.to_f32(gpu);
                        }
                        h += 1;
                    }
                    line = next(line);
                    y += 1;
                }
            }
            for y in 0..Self::LINES {
                for h in 0..Self::BESIDE {
                    let own = window[y][Self::BESIDE + Self::OWN - 1 - h];
                    let left = gpu.warp_shuffle_up(FULL_WARP, own, 1, WARP);
                    let left = if lane == 0 { beside[y][h] } else { left };
                    window[y][Self::BESIDE - 1 - h] = if is_left { left } else { 0.0 };
                    if h < Self::RIGHT {
                        let own = window[y][Self::BESIDE + h];
                        let right = gpu.warp_shuffle_down(FULL_WARP, own, 1, WARP);
                        let right = if lane == WARP - 1 { beside[y][h] } else { right };
                        window[y][Self::BESIDE + Self::OWN + h] = if is_right { right } else { 0.0 };
                    }
                }
            }
        }
        window
    }

    /// Loads a thread's own columns of a row.
    ///
    /// # Safety
    /// The row is there; `line` is its first column of the thread's, `own` that column's number.
    #[inline(always)]
    unsafe fn load_own<G: Gpu>(
        gpu: G,
        line: GlobalPtr<T>,
        [own, width]: [u32; 2],
        window: &mut [f32; WINDOW],
    ) {
        for k in 0..STRIDE {
            if COLUMNS > 1 || k == 0 || own + (k as u32) < width {
                // SAFETY: as promised by the caller; the columns are in the map.
                let values: [T; COLUMNS] = unsafe { gpu.load_readonly(line.add(k * COLUMNS)) };
                for c in 0..COLUMNS {
                    window[Self::BESIDE + k * COLUMNS + c] = values[c].to_f32(gpu);
                }
            }
        }
    }

    /// The sums of a thread, and the bias; without what is zero if `EXACT`.
    #[inline(always)]
    fn sums<G: Gpu, const EXACT: bool>(
        gpu: G,
        weights: &[[f32; R]; R],
        bias: f32,
        window: &Window,
    ) -> Results<COLUMNS, 1, ROWS> {
        let mut sums = [[[0.0; COLUMNS]]; ROWS];
        for (o, sums) in sums.iter_mut().enumerate() {
            for (c, sum) in sums[0].iter_mut().enumerate() {
                for r in 0..R {
                    for s in 0..R {
                        let x = window[o * STRIDE + r][c * STRIDE + s];
                        *sum = add_product::<G, EXACT>(gpu, x, weights[r][s], *sum);
                    }
                }
                *sum += bias;
            }
        }
        sums
    }
}
