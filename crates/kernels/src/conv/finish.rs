//! What follows a convolution by a vendor's library: bias, residual, limits and count, element by element. It brings filters into another
//! layout, too, which is the same without anything to follow.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, Gpu};

use super::{Scheme, Target, Tile};
use crate::{DeviceValue, Kernel, Map};

/// Finishes sums that lie in a map, an element a thread.
#[derive(Debug)]
pub struct FinishMaps<T>(PhantomData<T>);

/// What [`FinishMaps`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FinishMapsArgs<T> {
    /// The sums. Read only; may be the result, if they lie as it does.
    pub from: GlobalMut<T>,
    /// How they lie: as many as in the result.
    pub map: Map,
    /// Elements of the result: fewer than 2³².
    pub count: u32,
    /// Where results go. Its tiles are not looked at.
    pub target: Target<T>,
}

/// Threads of a block.
const THREADS: u32 = 256;

impl<T: DeviceValue> Kernel for FinishMaps<T> {
    type Args = FinishMapsArgs<T>;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::Finish, value: T::TYPE };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let target = &args.target;
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        let mut nonzeros = 0;
        // SAFETY: the arguments describe sums and results; a thread alone has its element, and reads it before it writes.
        unsafe {
            if at < args.count {
                let Map { channels, height, width, .. } = target.map;
                let pixels = height * width;
                let (image, of_image) = (at / (channels * pixels), at % (channels * pixels));
                let [channel, pixel] = target.element(of_image, channels, pixels);
                let (row, column) = (pixel / width, pixel % width);
                let offsets = args.map.offset(row, column).zip(target.map.offset(row, column));
                if let Some((from, to)) = offsets {
                    let sums = args.map.plane_mut(args.from, image, channel);
                    let [sum]: [T; 1] = gpu.load(sums.add_bytes(from.into()));
                    nonzeros = target.finish(gpu, [image, channel], to, [sum.to_f32(gpu)]);
                }
            }
            target.count(gpu, nonzeros);
        }
    }
}
