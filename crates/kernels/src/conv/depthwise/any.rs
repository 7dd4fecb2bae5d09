//! Depthwise convolution with filters of any shape.
use core::marker::PhantomData;

use lacuna_gpu::Gpu;

use super::{DepthwiseArgs, THREADS};
use crate::conv::{Scheme, Tile};
use crate::{DeviceValue, Kernel};

/// A result a thread, of what is not zero. Results are divided by channels, columns and rows in NHWC, and by columns, rows and channels
/// in NCHW.
#[derive(Debug)]
pub struct AnyDepthwise<T>(PhantomData<T>);

impl<T: DeviceValue> Kernel for AnyDepthwise<T> {
    type Args = DepthwiseArgs<T>;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::AnyDepthwise, value: T::TYPE };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        let mut nonzeros = 0;
        if at < args.count {
            let [image, channel, row, column] = args.place(at);
            // SAFETY: the arguments describe maps and filters; this result is this thread's alone.
            nonzeros = unsafe { args.exact(gpu, [image, channel], [row, column]) };
        }
        // SAFETY: all threads come here.
        unsafe { args.target.count(gpu, nonzeros) };
    }
}
