//! Tokens as pixels of maps in NCHW: the features of a token are channels, which lie a plane of pixels apart.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::moments::{Moments, Sums, plus, term};
use super::{CHUNK, Scale, Scheme, THREADS, Tile};
use crate::{Bounds, DeviceValue, Kernel};

/// Layer normalisation over the channels of maps of `T`: a block has a warp's pixels, a lane each, and of the channels each warp
/// has every eighth. Pixels of all images are counted through, so that small maps leave no lanes idle.
#[derive(Debug)]
pub struct LayerNormChannels<T>(PhantomData<T>);

/// What [`LayerNormChannels`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LayerNormChannelsArgs<T> {
    /// x: images × channels × pixels. Read only; may be the result.
    pub input: GlobalMut<T>,
    /// The result likewise.
    pub out: GlobalMut<T>,
    /// A weight for each channel; address 0 where there is none.
    pub weight: GlobalPtr<T>,
    /// A bias for each channel; address 0 where there is none.
    pub bias: GlobalPtr<T>,
    /// Bytes from one image of x to the next.
    pub input_stride_bytes: u32,
    /// The same of the result.
    pub out_stride_bytes: u32,
    /// Bytes of the pixels of a channel.
    pub plane_bytes: u32,
    /// Channels: at least 1, below 2³⁰.
    pub channels: u32,
    /// Pixels of an image: at least 1.
    pub pixels: u32,
    /// Pixels of all images of this launch; below 2³² less a warp's.
    pub tokens: u32,
    /// What sums become moments by.
    pub scale: Scale,
}

/// Warps of a block.
const WARPS: u32 = THREADS / WARP;
/// Sums of a token, for each of which every thread has a place in shared memory.
const SUMS: u32 = 3;

impl<T: DeviceValue> Kernel for LayerNormChannels<T> {
    type Args = LayerNormChannelsArgs<T>;
    type Tile = Tile;

    const TILE: Tile = Tile { value: T::TYPE, scheme: Scheme::Channels, vector: 1, block_tokens: WARP };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = SUMS * THREADS * size_of::<f32>() as u32;
    /// All 64 warps a multiprocessor: a thread has few bytes under way.
    const BOUNDS: Bounds = Bounds { max_threads: THREADS, min_blocks: 8 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: LayerNormChannelsArgs<T>) {
        let token = gpu.block_idx_x() * WARP + gpu.lane_id();
        let pixel = Pixel {
            image: token / args.pixels,
            pixel: token % args.pixels,
            // A lane past the last token has no channels, but comes to the barriers.
            channels: if token < args.tokens { args.channels } else { 0 },
            args,
        };
        // SAFETY: the pixel is there, if it has channels. Each of them is this thread's alone. All threads come here.
        unsafe {
            let [sum, _] = pixel.sums(gpu, 0.0);
            let mean = across_warps(gpu, 0, sum) * args.scale.inverse;
            let [sum, squares] = pixel.sums(gpu, mean);
            let sums = [across_warps(gpu, 1, sum), across_warps(gpu, 2, squares)];
            pixel.write(gpu, &Moments::new(gpu, mean, sums, args.scale));
        }
    }
}

/// The sum of a number over the threads of a token, a lane of each warp, the first warp first. A block does so at most once for
/// each `index`, and all threads come.
#[inline(always)]
fn across_warps<G: Gpu>(gpu: G, index: u32, value: f32) -> f32 {
    let parts = SharedPtr::<f32>::from_offset(index * THREADS * size_of::<f32>() as u32);
    let lane = parts.add(gpu.lane_id());
    // SAFETY: each thread has a place of its own, which is read after the barrier and not written again.
    unsafe {
        gpu.shared_store(parts.add(gpu.thread_idx_x()), [value]);
        gpu.sync_threads();
        let [mut sum] = gpu.shared_load(lane);
        for warp in 1..WARPS {
            let [part] = gpu.shared_load(lane.add(warp * WARP));
            sum += part;
        }
        sum
    }
}

/// What a thread knows of its pixel.
struct Pixel<T> {
    args: LayerNormChannelsArgs<T>,
    image: u32,
    pixel: u32,
    /// Channels of the pixel.
    channels: u32,
}

impl<T: DeviceValue> Pixel<T> {
    /// The pixel in the first channel of maps.
    #[inline(always)]
    fn of(&self, maps: GlobalMut<T>, stride_bytes: u32) -> GlobalMut<T> {
        maps.add_rows(self.image, stride_bytes).add(self.pixel as usize)
    }

    /// The `i`-th channel of a chunk, if there is one.
    #[inline(always)]
    fn channel(&self, first: u32, i: usize) -> Option<u32> {
        let channel = first + i as u32 * WARPS;
        (channel < self.channels).then_some(channel)
    }

    /// Asks for the numbers of a chunk of channels.
    ///
    /// # Safety
    /// The pixel is there, and no other thread writes these channels.
    #[inline(always)]
    unsafe fn load<G: Gpu>(&self, gpu: G, from: GlobalMut<T>, first: u32) -> [T; CHUNK] {
        let mut numbers = [T::default(); CHUNK];
        for (i, number) in numbers.iter_mut().enumerate() {
            if let Some(channel) = self.channel(first, i) {
                // SAFETY: as promised by the caller.
                [*number] = unsafe { gpu.load(from.add_rows(channel, self.args.plane_bytes)) };
            }
        }
        numbers
    }

    /// The sums over the thread's numbers, less `shift`.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    #[inline(always)]
    unsafe fn sums<G: Gpu>(&self, gpu: G, shift: f32) -> Sums {
        const { assert!(CHUNK == 4, "four terms are written out below") }
        let from = self.of(self.args.input, self.args.input_stride_bytes);
        let (mut first, mut sums) = (gpu.thread_idx_x() / WARP, [0.0; 2]);
        while first < self.channels {
            // SAFETY: as promised by the caller.
            let numbers = unsafe { self.load(gpu, from, first) };
            let of = |i: usize| match self.channel(first, i) {
                Some(_) => term(numbers[i].to_f32(gpu) - shift),
                None => [0.0; 2],
            };
            sums = plus(sums, plus(plus(of(0), of(1)), plus(of(2), of(3))));
            first += CHUNK as u32 * WARPS;
        }
        sums
    }

    /// Computes and writes the thread's part of the result.
    ///
    /// # Safety
    /// The pixel is there, and no other thread reads or writes these channels.
    #[inline(always)]
    unsafe fn write<G: Gpu>(&self, gpu: G, moments: &Moments) {
        let args = &self.args;
        let from = self.of(args.input, args.input_stride_bytes);
        let to = self.of(args.out, args.out_stride_bytes);
        let mut first = gpu.thread_idx_x() / WARP;
        while first < self.channels {
            // SAFETY: as promised by the caller; what has address 0 is not read. Nobody writes weight and bias.
            unsafe {
                let numbers = self.load(gpu, from, first);
                for (i, number) in numbers.iter().enumerate() {
                    let Some(channel) = self.channel(first, i) else { continue };
                    let parameter = |of: GlobalPtr<T>, absent: f32| {
                        if of.address() == 0 {
                            return absent;
                        }
                        let [parameter] = gpu.load_readonly(of.add(channel as usize));
                        parameter.to_f32(gpu)
                    };
                    // −0 changes no number, not even −0.
                    let (weight, bias) = (parameter(args.weight, 1.0), parameter(args.bias, -0.0));
                    let result = T::from_f32(gpu, moments.of(gpu, number.to_f32(gpu), weight, bias));
                    gpu.store(to.add_rows(channel, args.plane_bytes), [result]);
                }
            }
            first += CHUNK as u32 * WARPS;
        }
    }
}
