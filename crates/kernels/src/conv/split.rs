//! Numbers as sums of two bfloat16 numbers, and filters that are packed so.
use core::marker::PhantomData;

use lacuna_gpu::{Bf16, CoreMatrices, F16, GlobalMut, GlobalPtr, Gpu};

use super::mma::CHANNELS;
use super::{Scheme, Tile};
use crate::{DeviceValue, Kernel};

/// Two numbers, in one or two parts each.
#[derive(Clone, Copy)]
pub struct Parts {
    /// Both, of 16 bits, the first in the lower half; `f32` rounded to bfloat16.
    pub(super) upper: u32,
    /// What that leaves of them, rounded to bfloat16.
    pub(super) lower: u32,
}

/// A value that tensor cores multiply: one of 16 bits as it is, `f32` in two parts.
pub trait MmaValue: DeviceValue {
    /// Parts of a number.
    const PARTS: u32;

    /// Two numbers in their parts; one part is `upper`.
    fn split<G: Gpu>(gpu: G, x: f32, y: f32) -> Parts;

    /// `A·B + C` of parts, by a warp: see [`Gpu::mma_f16`].
    fn mma<G: Gpu>(gpu: G, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];

    /// Starts `sums += A·B` of parts, by a warpgroup: see [`Gpu::warpgroup_mma_f16_cores`].
    ///
    /// # Safety
    /// See there.
    unsafe fn warpgroup_mma<G: Gpu, const L: usize>(
        gpu: G,
        sums: &mut [f32; L],
        a: CoreMatrices,
        b: CoreMatrices,
    );
}

/// Writes the implementation for a type: its parts, how two numbers become them, and the products of parts.
macro_rules! mma_value {
    ($type:ident, $parts:literal, |$gpu:ident, $x:ident, $y:ident| $split:expr, $mma:ident, $warpgroup_mma:ident) => {
        impl MmaValue for $type {
            const PARTS: u32 = $parts;
            #[inline(always)]
            fn split<G: Gpu>($gpu: G, $x: f32, $y: f32) -> Parts {
                $split
            }
            #[inline(always)]
            fn mma<G: Gpu>(gpu: G, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
                gpu.$mma(a, b, c)
            }
            #[inline(always)]
            unsafe fn warpgroup_mma<G: Gpu, const L: usize>(
                gpu: G,
                sums: &mut [f32; L],
                a: CoreMatrices,
                b: CoreMatrices,
            ) {
                // SAFETY: passed on to the caller.
                unsafe { gpu.$warpgroup_mma(sums, a, b) };
            }
        }
    };
}
mma_value!(f32, 2, |gpu, x, y| split(gpu, x, y), mma_bf16, warpgroup_mma_bf16_cores);
mma_value!(
    Bf16,
    1,
    |gpu, x, y| Parts { upper: gpu.pack_bf16(x, y), lower: 0 },
    mma_bf16,
    warpgroup_mma_bf16_cores
);
mma_value!(
    F16,
    1,
    |gpu, x, y| Parts { upper: pack_f16(gpu, x, y), lower: 0 },
    mma_f16,
    warpgroup_mma_f16_cores
);

/// Splits two numbers.
#[inline(always)]
fn split<G: Gpu>(gpu: G, x: f32, y: f32) -> Parts {
    let upper = gpu.pack_bf16(x, y);
    let (of_x, of_y) = (f32::from_bits(upper << 16), f32::from_bits(upper & 0xffff_0000));
    Parts { upper, lower: gpu.pack_bf16(x - of_x, y - of_y) }
}

/// Two binary16 numbers in a word.
#[inline(always)]
fn pack_f16<G: Gpu>(gpu: G, x: f32, y: f32) -> u32 {
    u32::from(gpu.f32_to_f16(x).0) | u32::from(gpu.f32_to_f16(y).0) << 16
}

/// Packs filters for [`MmaConv`](super::MmaConv) and [`WgmmaConv`](super::WgmmaConv), eight channels a thread: for each group of filters, 16 channels
/// and tap, the upper parts of eight channels for all filters of the group, those of the next eight, and the lower parts alike. Zeros stand for what is
/// not there.
#[derive(Debug)]
pub struct PackMma<T>(PhantomData<T>);

/// What [`PackMma`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PackMmaArgs<T> {
    /// Filters × channels × taps.
    pub from: GlobalPtr<T>,
    /// The packed filters.
    pub to: GlobalMut<u32>,
    /// Filters.
    pub filters: u32,
    /// Channels.
    pub channels: u32,
    /// Taps of a channel.
    pub taps: u32,
    /// Eights of filters in a group.
    pub eights: u32,
    /// Eights of channels: fewer than 2³².
    pub count: u32,
}

/// Threads of a block.
const THREADS: u32 = 256;

impl<T: MmaValue> Kernel for PackMma<T> {
    type Args = PackMmaArgs<T>;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::Pack, value: T::TYPE };
    const THREADS: u32 = THREADS;
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        if at >= args.count {
            return;
        }
        let of_group = 8 * args.eights;
        let (of_filter, rest) = (at % of_group, at / of_group);
        let (eight, rest) = (rest % 2, rest / 2);
        let (tap, rest) = (rest % args.taps, rest / args.taps);
        let chunks = args.channels.div_ceil(CHANNELS);
        let (chunk, group) = (rest % chunks, rest / chunks);
        let (filter, first) = (group * of_group + of_filter, chunk * CHANNELS + 8 * eight);
        let weight = |channel: u32| {
            let channel = first + channel;
            if filter >= args.filters || channel >= args.channels {
                return 0.0;
            }
            let at = (filter * args.channels + channel) * args.taps + tap;
            // SAFETY: the arguments describe filters.
            let [weight] = unsafe { gpu.load_readonly(args.from.add(at as usize)) };
            weight.to_f32(gpu)
        };
        let pair = |channel: u32| T::split(gpu, weight(channel), weight(channel + 1));
        let (a, b, c, d) = (pair(0), pair(2), pair(4), pair(6));
        // Rows of 16 bytes: those of the step, of this part, and of the filter.
        let row = (at / of_group / 2 * 2 * T::PARTS + eight) * of_group + of_filter;
        let to = args.to.add(4 * row as usize);
        // SAFETY: as above; the words are this thread's.
        unsafe {
            gpu.store(to, [a.upper, b.upper, c.upper, d.upper]);
            if T::PARTS > 1 {
                gpu.store(to.add(4 * 2 * of_group as usize), [a.lower, b.lower, c.lower, d.lower]);
            }
        }
    }
}
