//! Numbers as sums of two bfloat16 numbers, and filters that are packed so.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, WARP};

use super::mma::CHANNELS;
use super::{Scheme, Tile};
use crate::{DeviceValue, Kernel};

/// Two numbers, in two parts each.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    /// Both rounded to bfloat16.
    pub(super) upper: u32,
    /// What that leaves of them, rounded to bfloat16.
    pub(super) lower: u32,
}

/// Splits two numbers.
#[inline(always)]
pub(super) fn split<G: Gpu>(gpu: G, x: f32, y: f32) -> Parts {
    let upper = gpu.pack_bf16(x, y);
    let (of_x, of_y) = (f32::from_bits(upper << 16), f32::from_bits(upper & 0xffff_0000));
    Parts { upper, lower: gpu.pack_bf16(x - of_x, y - of_y) }
}

/// Packs filters for [`MmaConv`](super::MmaConv), a lane's four words a thread: for each group of filters, 16 channels and tap, eights of filters,
/// lanes, and of a lane's filter both parts of channels 2t, 2t+1, and 2t+8, 2t+9. Zeros stand for what is not there.
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
    /// Fours of words: fewer than 2³².
    pub count: u32,
}

/// Threads of a block.
const THREADS: u32 = 256;

impl<T: DeviceValue> Kernel for PackMma<T> {
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
        let (lane, rest) = (at % WARP, at / WARP);
        let (eight, rest) = (rest % args.eights, rest / args.eights);
        let (tap, rest) = (rest % args.taps, rest / args.taps);
        let chunks = args.channels.div_ceil(CHANNELS);
        let (chunk, group) = (rest % chunks, rest / chunks);
        let filter = (group * args.eights + eight) * 8 + lane / 4;
        let channel = chunk * CHANNELS + lane % 4 * 2;
        let weight = |more: u32| {
            let channel = channel + more;
            if filter >= args.filters || channel >= args.channels {
                return 0.0;
            }
            let at = (filter * args.channels + channel) * args.taps + tap;
            // SAFETY: the arguments describe filters.
            let [weight] = unsafe { gpu.load_readonly(args.from.add(at as usize)) };
            weight.to_f32(gpu)
        };
        let (first, second) = (split(gpu, weight(0), weight(1)), split(gpu, weight(8), weight(9)));
        let words = [first.upper, second.upper, first.lower, second.lower];
        // SAFETY: as above; the words are this thread's.
        unsafe { gpu.store(args.to.add(4 * at as usize), words) };
    }
}
