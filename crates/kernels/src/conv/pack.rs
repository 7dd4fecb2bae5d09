//! Filters as the kernels read them.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu};

use super::{Scheme, Tile};
use crate::{DeviceValue, Kernel};

/// Reorders filters, a value a thread: groups of 32·F filters; in each the channels, their taps, 32 lanes, and F filters of a lane, 32 apart.
/// Zeros stand for filters that are not there.
#[derive(Debug)]
pub struct PackFilters<T>(PhantomData<T>);

/// What [`PackFilters`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PackFiltersArgs<T> {
    /// Filters × channels × taps.
    pub from: GlobalPtr<T>,
    /// The packed filters.
    pub to: GlobalMut<T>,
    /// Filters.
    pub filters: u32,
    /// Channels.
    pub channels: u32,
    /// Taps of a channel.
    pub taps: u32,
    /// Filters of a lane: F.
    pub of_lane: u32,
    /// Packed values: fewer than 2³².
    pub count: u32,
}

/// Threads of a block.
const THREADS: u32 = 256;

impl<T: DeviceValue> Kernel for PackFilters<T> {
    type Args = PackFiltersArgs<T>;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::Pack, value: T::TYPE };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        if at >= args.count {
            return;
        }
        let (of_lane, rest) = (at % args.of_lane, at / args.of_lane);
        let (lane, rest) = (rest % 32, rest / 32);
        let (tap, rest) = (rest % args.taps, rest / args.taps);
        let (channel, group) = (rest % args.channels, rest / args.channels);
        let filter = (group * args.of_lane + of_lane) * 32 + lane;
        // SAFETY: the arguments describe filters, before and after.
        unsafe {
            let value = if filter < args.filters {
                let [value] = gpu.load_readonly(
                    args.from.add(((filter * args.channels + channel) * args.taps + tap) as usize),
                );
                value
            } else {
                T::default()
            };
            gpu.store(args.to.add(at as usize), [value]);
        }
    }
}
