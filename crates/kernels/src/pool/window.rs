//! Windows of a size that the kernel knows.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu};

use super::join::{counted, finish, join, join_vector, neutral};
use super::{PoolMode, Scheme, Tile};
use crate::common::{RawVector, load_raw, round_into};
use crate::{DeviceValue, Kernel, Map};

/// A thread has `V` channels of a column, and `ROWS` results one below another, of windows of `W` × `W` pixels: rows that windows share
/// are loaded and joined once. Columns are joined first, then rows.
#[derive(Debug)]
pub struct WindowPool<T, const W: usize, const STRIDE: usize, const ROWS: usize, const V: usize>(
    PhantomData<T>,
);

/// What [`WindowPool`] and [`AnyPool`](super::AnyPool) take.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct WindowPoolArgs<T> {
    /// The maps.
    pub input: GlobalPtr<T>,
    /// The result.
    pub out: GlobalMut<T>,
    /// How the maps lie: with `V` > 1 channels last, whole vectors of them, and addresses that are multiples of a vector.
    pub map: Map,
    /// How the result lies: alike.
    pub out_map: Map,
    /// Rows and columns of a window.
    pub window: [u32; 2],
    /// Rows and columns from one window to the next.
    pub strides: [u32; 2],
    /// Rows above and below, and columns on both sides: at most half of a window's.
    pub padding: [u32; 2],
    /// What is made of windows.
    pub mode: PoolMode,
    /// Not 0 where channels lie side by side, rather than columns.
    pub channels_last: u32,
    /// Threads with work: columns × vectors of channels × strips × images; below 2³¹.
    pub count: u32,
    /// Strips of rows of an image's results.
    pub strips: u32,
}

/// Threads of a block.
pub(super) const THREADS: u32 = 128;

/// The results of a thread.
#[derive(Clone, Copy)]
pub(super) struct Work {
    pub(super) image: u32,
    pub(super) channel: u32,
    /// The first row.
    pub(super) row: u32,
    pub(super) column: u32,
}

impl<T> WindowPoolArgs<T> {
    /// The work of thread `at`. What goes fastest lies side by side in memory.
    #[inline(always)]
    pub(super) fn work<const ROWS: usize, const V: usize>(&self, at: u32) -> Work {
        let (columns, vectors, strips) = (self.out_map.width, self.map.channels / V as u32, self.strips);
        let [column, vector, strip, image] = if self.channels_last != 0 {
            let [pixel, vector] = [at / vectors, at % vectors];
            let [row, column] = [pixel / columns, pixel % columns];
            [column, vector, row % strips, row / strips]
        } else {
            let [row, column] = [at / columns, at % columns];
            let [plane, strip] = [row / strips, row % strips];
            [column, plane % vectors, strip, plane / vectors]
        };
        Work { image, channel: vector * V as u32, row: strip * ROWS as u32, column }
    }

    /// Where windows of a row and a column begin; before the map below 0.
    #[inline(always)]
    pub(super) fn corner(&self, row: u32, column: u32) -> [i32; 2] {
        [
            (row * self.strides[0]) as i32 - self.padding[0] as i32,
            (column * self.strides[1]) as i32 - self.padding[1] as i32,
        ]
    }
}

/// Pixels of a map's extent that are in a window of so many from `first` on.
#[inline(always)]
pub(super) fn overlap(first: i32, window: u32, extent: u32) -> u32 {
    (first + window as i32).min(extent as i32).wrapping_sub(first.max(0)) as u32
}

/// The nearest row or column of those that are there.
#[inline(always)]
fn nearest(at: i32, extent: u32) -> u32 {
    at.max(0).min(extent as i32 - 1) as u32
}

/// Whether it is there itself.
#[inline(always)]
fn is_there(at: i32, extent: u32) -> bool {
    (at as u32) < extent
}

/// Rows of the input that a thread has at most.
const MOST_ROWS: usize = 9;

impl<T: DeviceValue, const W: usize, const STRIDE: usize, const ROWS: usize, const V: usize> Kernel
    for WindowPool<T, W, STRIDE, ROWS, V>
{
    type Args = WindowPoolArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(V == 1 || V * size_of::<T>() == 16, "a thread loads 16 bytes at once, or an element");
        assert!(Self::INPUT_ROWS <= MOST_ROWS, "a thread's rows are in registers");
        let scheme = Scheme::Window { window: W as u32, stride: STRIDE as u32, rows: ROWS as u32 };
        Tile { scheme, vector: V as u32, value: T::TYPE }
    };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        if at >= args.count {
            return;
        }
        let work = args.work::<ROWS, V>(at);
        // SAFETY: the arguments describe maps; these results are this thread's alone.
        unsafe {
            if args.mode.is_max != 0 {
                Self::strip::<G, true>(gpu, &args, work);
            } else {
                Self::strip::<G, false>(gpu, &args, work);
            }
        }
    }
}

impl<T: DeviceValue, const W: usize, const STRIDE: usize, const ROWS: usize, const V: usize>
    WindowPool<T, W, STRIDE, ROWS, V>
{
    /// Rows of the input that a thread has.
    const INPUT_ROWS: usize = (ROWS - 1) * STRIDE + W;

    /// Computes and writes a thread's results.
    ///
    /// # Safety
    /// The image, the column and the channels are there, and these results are nobody else's.
    #[inline(always)]
    unsafe fn strip<G: Gpu, const MAX: bool>(gpu: G, args: &WindowPoolArgs<T>, work: Work) {
        let Map { height, width, row_bytes, column_bytes, .. } = args.map;
        let plane = args.map.plane(args.input, work.image, work.channel);
        let [top, left] = args.corner(work.row, work.column);
        let mut raw = [[RawVector::default(); W]; MOST_ROWS];
        for (y, raw) in raw.iter_mut().enumerate() {
            if y < Self::INPUT_ROWS {
                let row = plane.add_rows(nearest(top + y as i32, height), row_bytes);
                for (x, raw) in raw.iter_mut().enumerate() {
                    let pixel = row.add_rows(nearest(left + x as i32, width), column_bytes);
                    // SAFETY: the pixel and the channels are there, and nobody writes them.
                    *raw = unsafe { load_raw::<G, T, V>(gpu, pixel) };
                }
            }
        }
        let mut rows = [[neutral::<MAX>(); V]; MOST_ROWS];
        for (y, row) in rows.iter_mut().enumerate() {
            for (x, raw) in raw[y].iter().enumerate() {
                join_vector::<G, T, V, MAX>(gpu, raw, is_there(left + x as i32, width), row);
            }
        }
        let columns_inside = overlap(left, W as u32, width);
        for o in 0..ROWS {
            let first = top + (o * STRIDE) as i32;
            let scale = args.mode.scale_of(overlap(first, W as u32, height).wrapping_mul(columns_inside));
            let mut all = [neutral::<MAX>(); V];
            for y in 0..W {
                let is_inside = is_there(first + y as i32, height);
                for (v, all) in all.iter_mut().enumerate() {
                    *all = join::<MAX>(*all, counted::<MAX>(is_inside, rows[o * STRIDE + y][v]));
                }
            }
            let mut results = [T::default(); V];
            round_into(gpu, &all, |joined| finish::<MAX>(joined, scale), &mut results);
            if let Some(offset) = args.out_map.offset(work.row + o as u32, work.column) {
                let to = args.out_map.plane_mut(args.out, work.image, work.channel).add_bytes(offset.into());
                // SAFETY: the pixel and the channels are there, and are this thread's.
                unsafe { gpu.store(to, results) };
            }
        }
    }
}
