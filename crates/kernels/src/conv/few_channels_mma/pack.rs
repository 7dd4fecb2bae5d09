//! Filters in the order of lanes.
use core::marker::PhantomData;

use lacuna_gpu::{Gpu, WARP};

use super::{CHANNELS, steps_of_row};
use crate::Kernel;
use crate::conv::pack_mma::PackMmaArgs;
use crate::conv::results::filter_of;
use crate::conv::split::MmaValue;
use crate::conv::{Scheme, Tile};

/// Packs filters for [`FewChannelsMmaConv`](super::FewChannelsMmaConv), a piece of 16 bytes a thread: for each group of filters, row of taps, four taps in it, and
/// sixteen filters, what each lane multiplies. Zeros stand for what is not there.
#[derive(Debug)]
pub struct PackFewChannels<T>(PhantomData<T>);

/// Threads of a block.
const THREADS: u32 = 256;

impl<T: MmaValue> Kernel for PackFewChannels<T> {
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
        // As many rows as columns.
        let mut side = 1;
        while side * side < args.taps {
            side += 1;
        }
        let (lane, rest) = (at % WARP, at / WARP);
        let (pair, rest) = (rest % (args.eights / 2), rest / (args.eights / 2));
        let steps = steps_of_row(side);
        let (step, rest) = (rest % steps, rest / steps);
        let (row, group) = (rest % side, rest / side);
        let (g, t) = (lane / 4, lane % 4);
        let pair_of = |eight: u32, taps_on: u32| {
            let filter = group * 8 * args.eights + filter_of(pair * 16 + eight * 8 + g);
            let (tap, channel) = (step * 4 + taps_on + t / 2, t % 2 * 2);
            let weight = |channel: u32| {
                if tap >= side {
                    return T::default();
                }
                // SAFETY: the arguments describe filters, and the tap is there.
                unsafe { args.weight(gpu, filter, channel, row * side + tap) }
            };
            const { assert!(CHANNELS == 4, "two lanes share a tap") }
            T::join(gpu, weight(channel), weight(channel + 1)).upper
        };
        let words = [pair_of(0, 0), pair_of(0, 2), pair_of(1, 0), pair_of(1, 2)];
        // SAFETY: the words are this thread's.
        unsafe { gpu.store(args.to.add(4 * at as usize), words) };
    }
}
