//! Depthwise convolution: each channel has a filter of its own.
//!
//! ```text
//!   NCHW: rows.rs                              NHWC: channels.rs                    any layout and padding: column.rs
//!   ┌────┬────┬────┐ columns of a thread,      ┌────┬────┐ columns of a thread,     ┌────┐ a column of a thread,
//!   │ 4  │ 4  │ 4  │ 2 or 4 rows; those        │ 2  │ 2  │ 7 rows; lanes have       │ 1  │ 4 rows
//!   └────┴────┴────┘ beside come by shuffles   └────┴────┘ channels side by side    └────┘
//! ```
//! With more work than a wave small maps in NCHW take `planes.rs`: planes in shared memory, lanes of a warp in different ones. `any.rs` is for
//! filters of any shape.
//!
//! All of them multiply zeros too, where a filter's taps are finite. Where a tap is not finite, a test goes with each product.
//!
//! Lower bounds: the bytes of x and of the result, once each; and instructions: nine products of a result are 9 / 128 cycles of a
//! multiprocessor, and half of what a warp executes. So a thread has many results, whose places are one address and steps from there, and tests
//! are made only where a tile may reach over an edge of the map.
mod any;
mod channels;
mod column;
mod planes;
mod rows;

pub use any::AnyDepthwise;
pub use channels::DepthwiseNhwc;
pub use column::DepthwiseColumn;
use lacuna_gpu::{GlobalPtr, Gpu, Real, WARP};
pub use planes::{DepthwisePlanes, PLANES as PLANES_OF_BLOCK};
pub use rows::DepthwiseNchw;

use super::{Source, Target};
use crate::DeviceValue;
use crate::common::Divisor;

/// Threads of a block.
const THREADS: u32 = 128;

/// What the kernels of depthwise convolution take.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DepthwiseArgs<T> {
    /// What is convolved. In NCHW the filters are channels × taps; in NHWC those of [`PackFilters`](super::PackFilters), as of one
    /// channel, one a lane, at a multiple of 16 bytes.
    pub source: Source<T>,
    /// Threads with work; of [`DepthwisePlanes`] planes: below 2³¹.
    pub count: u32,
    /// What a thread's number is divided by, one after another: the remainders are what goes fastest in memory.
    pub divisors: [Divisor; 3],
    /// Where results go, which lie as the input does.
    pub target: Target<T>,
}

impl<T: Real> DepthwiseArgs<T> {
    /// The remainders by the divisors, and what is left.
    #[inline(always)]
    fn split(&self, number: u32) -> [u32; 4] {
        let [number, first] = self.divisors[0].divide(number);
        let [number, second] = self.divisors[1].divide(number);
        let [rest, third] = self.divisors[2].divide(number);
        [first, second, third, rest]
    }

    /// Image, channel, row (or strip of rows) and column of a thread that has one column of one channel.
    #[inline(always)]
    fn place(&self, at: u32) -> [u32; 4] {
        let [first, second, third, image] = self.split(at);
        if self.target.channels_last != 0 {
            [image, first, third, second]
        } else {
            [image, third, second, first]
        }
    }

    /// Where the taps of a channel are, and how many values are from one to the next: in NCHW they lie as they were given, side by
    /// side; in NHWC those of 32 channels lie side by side.
    #[inline(always)]
    fn taps(&self, channel: u32, taps: u32) -> (GlobalPtr<T>, u32) {
        let of_channel = taps * size_of::<T>() as u32;
        if self.target.channels_last != 0 {
            let group = self.source.filters.add_rows(channel / WARP, of_channel * WARP);
            (group.add((channel % WARP) as usize), WARP)
        } else {
            (self.source.filters.add_rows(channel, of_channel), 1)
        }
    }

    /// A channel's bias, or 0.
    ///
    /// # Safety
    /// The channel is there.
    #[inline(always)]
    unsafe fn bias<G: Gpu>(&self, gpu: G, channel: u32) -> f32 {
        if self.target.bias.address() == 0 {
            return 0.0;
        }
        // SAFETY: as promised by the caller.
        let [bias] = unsafe { gpu.load_readonly(self.target.bias.add(channel as usize)) };
        bias.to_f32(gpu)
    }

    /// Makes a result from what is not zero, and writes it. Whether it is not zero.
    ///
    /// # Safety
    /// Image, channel and pixel are there, and the result is nobody else's.
    #[inline(always)]
    unsafe fn exact<G: Gpu>(&self, gpu: G, [image, channel]: [u32; 2], [row, column]: [u32; 2]) -> u32 {
        let Source { map, taps: [rows, columns], strides, padding, input, .. } = &self.source;
        let (taps, step) = self.taps(channel, rows * columns);
        let plane = map.plane(*input, image, channel);
        let (mut sum, mut tap) = (0.0, 0);
        while tap < rows * columns {
            let y = (row * strides[0] + tap / columns).wrapping_sub(padding[0]);
            let x = (column * strides[1] + tap % columns).wrapping_sub(padding[1]);
            if let Some(offset) = map.offset(y, x) {
                // SAFETY: as promised by the caller; the pixel is in the map.
                let ([x], [weight]) = unsafe {
                    (
                        gpu.load_readonly(plane.add_bytes(offset.into())),
                        gpu.load_readonly(taps.add((tap * step) as usize)),
                    )
                };
                let (x, weight) = (x.to_f32(gpu), weight.to_f32(gpu));
                sum = if x != 0.0 { gpu.fma(x, weight, sum) } else { sum };
            }
            tap += 1;
        }
        match self.target.map.offset(row, column) {
            // SAFETY: as promised by the caller.
            Some(offset) => unsafe { self.target.finish(gpu, [image, channel], offset, [sum]) },
            None => 0,
        }
    }
}

/// Results of a thread: rows of vectors, of which each lies in memory as it is.
type Results<const V: usize, const VECTORS: usize, const ROWS: usize> = [[[f32; V]; VECTORS]; ROWS];

impl<T: DeviceValue> DepthwiseArgs<T> {
    /// Makes results of a thread's sums, to which the bias is added, and writes them, the first at so many bytes from the first pixel of the
    /// channel; the first `others` rows and vectors are other threads'. How many results of this thread are not zero.
    ///
    /// # Safety
    /// The image, the channels and the pixels are there; results that are not others' are this thread's alone. Vectors are at multiples of
    /// their size.
    #[inline(always)]
    unsafe fn finish<G: Gpu, const V: usize, const VECTORS: usize, const ROWS: usize>(
        &self,
        gpu: G,
        [image, channel]: [u32; 2],
        offset: u32,
        others: [u32; 2],
        mut sums: Results<V, VECTORS, ROWS>,
    ) -> u32 {
        let Target { out, residual, map, .. } = &self.target;
        if residual.address() != 0 {
            let mut line = map.plane(*residual, image, channel).add_bytes(offset.into());
            for sums in &mut sums {
                let mut place = line;
                for sums in sums.iter_mut() {
                    // SAFETY: as promised by the caller; the residual lies as the result does.
                    let added: [T; V] = unsafe { gpu.load_readonly(place) };
                    for (v, sum) in sums.iter_mut().enumerate() {
                        *sum += added[v].to_f32(gpu);
                    }
                    place = place.add_bytes(map.column_bytes.into());
                }
                line = line.add_bytes(map.row_bytes.into());
            }
        }
        self.target.limit(gpu, sums.as_flattened_mut().as_flattened_mut());
        let is_own = |o: usize, c: usize| o as u32 >= others[0] && c as u32 >= others[1];
        let mut results = [[[T::default(); V]; VECTORS]; ROWS];
        for o in 0..ROWS {
            for c in 0..VECTORS {
                for v in 0..V {
                    results[o][c][v] = T::from_f32(gpu, sums[o][c][v]);
                }
            }
        }
        let mut nonzeros = 0;
        if self.target.nonzeros.address() != 0 {
            for (o, results) in results.iter().enumerate() {
                for (c, results) in results.iter().enumerate() {
                    for result in results {
                        nonzeros += u32::from(is_own(o, c) && result.to_f32(gpu) != 0.0);
                    }
                }
            }
        }
        let mut line = map.plane_mut(*out, image, channel).add_bytes(offset.into());
        for (o, results) in results.iter().enumerate() {
            let mut place = line;
            for (c, &results) in results.iter().enumerate() {
                if is_own(o, c) {
                    // SAFETY: as promised by the caller.
                    unsafe { gpu.store(place, results) };
                }
                place = place.add_bytes(map.column_bytes.into());
            }
            line = line.add_bytes(map.row_bytes.into());
        }
        nonzeros
    }
}

/// A number below `end`, in place of one that is not, and whether it is.
#[inline(always)]
fn inside(number: u32, end: u32) -> (u32, bool) {
    let is_inside = number < end;
    (if is_inside { number } else { 0 }, is_inside)
}

/// Adds a product; not that of a zero if `EXACT`.
#[inline(always)]
fn add_product<G: Gpu, const EXACT: bool>(gpu: G, x: f32, weight: f32, sum: f32) -> f32 {
    let added = gpu.fma(x, weight, sum);
    if !EXACT || x != 0.0 { added } else { sum }
}
