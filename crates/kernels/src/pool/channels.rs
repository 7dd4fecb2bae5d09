//! Windows as large as the map, in NHWC: the pixels of a channel lie apart, those of neighbouring channels side by side.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::join::{finish, join, join_vector, neutral};
use super::{CHUNK, PoolMode, Scheme, Tile};
use crate::common::{RawVector, load_raw};
use crate::{DeviceValue, Kernel};

/// A block has up to a warp's vectors of `V` channels of an image. A lane has one of them, of a part of the pixels. Then lanes of a warp
/// with the same channels join by shuffles, the farthest first, and warps in shared memory, the first first.
#[derive(Debug)]
pub struct ChannelPool<T, const V: usize>(PhantomData<T>);

/// What [`ChannelPool`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ChannelPoolArgs<T> {
    /// Images × pixels × channels; with `V` > 1 at a multiple of a vector.
    pub input: GlobalPtr<T>,
    /// Images × channels.
    pub out: GlobalMut<T>,
    /// Channels: at least 1, whole vectors.
    pub channels: u32,
    /// Pixels of an image: at least 1.
    pub pixels: u32,
    /// Bytes of the channels of a pixel.
    pub pixel_bytes: u32,
    /// Bytes of an image.
    pub image_bytes: u32,
    /// Vectors of a block, at most the lanes of a warp: 2 to the power of this.
    pub lanes_log2: u32,
    /// Blocks of an image.
    pub parts: u32,
    /// What is made of channels; its scale is not 0.
    pub mode: PoolMode,
}

/// Warps of a block.
const WARPS: u32 = 8;
/// Threads of a block.
const THREADS: u32 = WARPS * WARP;

impl<T: DeviceValue, const V: usize> Kernel for ChannelPool<T, V> {
    type Args = ChannelPoolArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(V == 1 || V * size_of::<T>() == 16, "a thread loads 16 bytes at once, or an element");
        assert!(WARP * V as u32 <= THREADS, "a thread finishes a channel");
        Tile { scheme: Scheme::Channels, vector: V as u32, value: T::TYPE }
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = THREADS * (V * size_of::<f32>()) as u32;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        // SAFETY: the arguments describe maps; all threads of the block come here.
        unsafe {
            if args.mode.is_max != 0 {
                Self::block::<G, true>(gpu, &args);
            } else {
                Self::block::<G, false>(gpu, &args);
            }
        }
    }
}

impl<T: DeviceValue, const V: usize> ChannelPool<T, V> {
    /// Computes the channels of a block. Lanes past the last channel have the last vector too, and write nothing.
    ///
    /// # Safety
    /// The arguments describe maps; all threads of the block come here.
    #[inline(always)]
    unsafe fn block<G: Gpu, const MAX: bool>(gpu: G, args: &ChannelPoolArgs<T>) {
        let (block, thread, lanes) = (gpu.block_idx_x(), gpu.thread_idx_x(), 1 << args.lanes_log2);
        let (image, first) = (block / args.parts, block % args.parts * lanes);
        let vector = (first + (thread & (lanes - 1))).min(args.channels / V as u32 - 1);
        let from = args.input.add_rows(image, args.image_bytes).add(vector as usize * V);
        // SAFETY: the image and the channels are there, and nobody writes them.
        let mut joined = unsafe {
            Self::share::<G, MAX>(gpu, from, args, [thread >> args.lanes_log2, THREADS >> args.lanes_log2])
        };
        let mut distance = WARP / 2;
        while distance >= lanes {
            for joined in &mut joined {
                *joined = join::<MAX>(*joined, gpu.warp_shuffle_xor(FULL_WARP, *joined, distance, WARP));
            }
            distance /= 2;
        }
        let parts = SharedPtr::<f32>::from_offset(0);
        let of_block = lanes * V as u32;
        // SAFETY: each warp has a place for each channel of the block, which is read after the barrier, to which all threads come.
        unsafe {
            if gpu.lane_id() < lanes {
                let place = thread / WARP * of_block + gpu.lane_id() * V as u32;
                for (v, joined) in joined.iter().enumerate() {
                    gpu.shared_store(parts.add(place + v as u32), [*joined]);
                }
            }
            gpu.sync_threads();
            let channel = first * V as u32 + thread;
            if thread < of_block && channel < args.channels {
                let mut all = neutral::<MAX>();
                for warp in 0..WARPS {
                    let [part] = gpu.shared_load(parts.add(warp * of_block + thread));
                    all = join::<MAX>(all, part);
                }
                let result = T::from_f32(gpu, finish::<MAX>(all, args.mode.scale));
                let to = args.out.add_rows(image, args.pixel_bytes).add(channel as usize);
                gpu.store(to, [result]);
            }
        }
    }

    /// What every `step`-th pixel from pixel `first` on joins to, of a vector of channels.
    ///
    /// # Safety
    /// The pixels are there, at least one, and nobody writes them.
    #[inline(always)]
    unsafe fn share<G: Gpu, const MAX: bool>(
        gpu: G,
        from: GlobalPtr<T>,
        args: &ChannelPoolArgs<T>,
        [first, step]: [u32; 2],
    ) -> [f32; V] {
        let mut joined = [neutral::<MAX>(); V];
        let mut first = first;
        while first < args.pixels {
            let mut raw = [RawVector::default(); CHUNK];
            for (i, raw) in raw.iter_mut().enumerate() {
                let pixel = (first + i as u32 * step).min(args.pixels - 1);
                // SAFETY: as promised by the caller.
                *raw = unsafe { load_raw::<G, T, V>(gpu, from.add_rows(pixel, args.pixel_bytes)) };
            }
            for (i, raw) in raw.iter().enumerate() {
                let is_inside = first + i as u32 * step < args.pixels;
                join_vector::<G, T, V, MAX>(gpu, raw, is_inside, &mut joined);
            }
            first += CHUNK as u32 * step;
        }
        joined
    }
}
