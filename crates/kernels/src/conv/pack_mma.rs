//! Filters in the order in which kernels on tensor cores read them.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu};

use super::mma::CHANNELS;
use super::split::MmaValue;
use super::{Scheme, Tile};
use crate::Kernel;

/// Packs filters for [`MmaConv`](super::MmaConv) and [`WgmmaConv`](super::WgmmaConv), eight channels a thread: for each group of filters, 16 channels
/// and tap, the upper parts of eight channels for all filters of the group, those of the next eight, and the lower parts alike. Zeros stand for what is
/// not there.
#[derive(Debug)]
pub struct PackMma<T>(PhantomData<T>);

/// What [`PackMma`], [`PackPointwise`](super::PackPointwise) and [`PackPanels`](super::PackPanels) take.
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
    /// Threads: eights of channels, or pieces of 16 bytes; fewer than 2³².
    pub count: u32,
}

impl<T: MmaValue> PackMmaArgs<T> {
    /// A filter's weight of a channel at a tap; zero where there is none.
    ///
    /// # Safety
    /// The arguments describe filters, and the tap is one of theirs.
    #[inline(always)]
    pub(super) unsafe fn weight<G: Gpu>(&self, gpu: G, filter: u32, channel: u32, tap: u32) -> T {
        if filter >= self.filters || channel >= self.channels {
            return T::default();
        }
        let taps = self.from.add_rows(filter * self.channels + channel, self.taps * size_of::<T>() as u32);
        // SAFETY: as promised by the caller.
        let [weight] = unsafe { gpu.load_readonly(taps.add(tap as usize)) };
        weight
    }
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
        // SAFETY: the arguments describe filters.
        let weight = |channel: u32| unsafe { args.weight(gpu, filter, first + channel, tap) };
        let pair = |channel: u32| T::join(gpu, weight(channel), weight(channel + 1));
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
