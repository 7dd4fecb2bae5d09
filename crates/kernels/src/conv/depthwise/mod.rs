//! Depthwise convolution: each channel has a filter of its own.
//!
//! ```text
//!   NCHW: rows.rs                              NHWC: channels.rs                    any layout and padding: column.rs
//!   ┌────┬────┬────┐ columns of a thread,      ┌────┬────┐ columns of a thread,     ┌────┐ a column of a thread,
//!   │ 4  │ 4  │ 4  │ 2 rows; those beside      │ 2  │ 2  │ 2 rows, 4 channels       │ 1  │ 4 rows
//!   └────┴────┴────┘ come by shuffles          └────┴────┘ side by side             └────┘
//! ```
//! With more work than a wave: in NHWC `strips.rs`, where a thread goes down a strip of rows; for small maps in NCHW `planes.rs`, a lane a
//! plane, from shared memory.
//!
//! All of them multiply zeros too, where a filter's taps are finite, and load without branches: what is outside is loaded from inside, and
//! made zero. Where a tap is not finite, a test goes with each product; `channels.rs` looks at sums for that, the others at taps. `any.rs` is for
//! filters of any shape.
//!
//! Lower bound: the bytes of x and of the result, once each.
mod any;
mod channels;
mod column;
mod planes;
mod rows;
mod strips;

pub use any::AnyDepthwise;
pub use channels::DepthwiseNhwc;
pub use column::DepthwiseColumn;
use lacuna_gpu::{GlobalPtr, Gpu, Real, WARP};
pub use planes::DepthwisePlanes;
pub use rows::DepthwiseNchw;
pub use strips::DepthwiseStrips;

use super::{Source, Target};
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
    /// Threads with work; of [`DepthwiseNhwc`] and [`DepthwiseStrips`] blocks, of [`DepthwisePlanes`] planes: below 2³¹.
    pub count: u32,
    /// What a thread's number, or a block's, is divided by, one after another: the remainders are what goes fastest in memory.
    pub divisors: [Divisor; 3],
    /// Logarithms to base 2 of the threads of a block that are side by side in channels and in columns; the rest is one below another.
    /// For [`DepthwiseNhwc`] and [`DepthwiseStrips`].
    pub lanes: [u32; 2],
    /// Rows of results of a thread of [`DepthwiseStrips`].
    pub strip: u32,
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
