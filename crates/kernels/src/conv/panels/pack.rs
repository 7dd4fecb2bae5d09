//! Filters in swizzled panels.
use core::marker::PhantomData;

use lacuna_gpu::Gpu;

use super::{OF_PIECE, PANEL_CHANNELS, PIECES};
use crate::Kernel;
use crate::conv::pack_mma::PackMmaArgs;
use crate::conv::results::filter_of;
use crate::conv::split::MmaValue;
use crate::conv::{Scheme, Tile};

/// Packs filters for [`WgmmaPanelConv`](super::WgmmaPanelConv), a piece of eight channels a thread: for each group of filters, 64 channels and tap, the panel
/// as it lies in shared memory, with rows in the order of lanes. Zeros stand for what is not there.
#[derive(Debug)]
pub struct PackPanels<T>(PhantomData<T>);

/// Threads of a block.
const THREADS: u32 = 256;

impl<T: MmaValue> Kernel for PackPanels<T> {
    type Args = PackMmaArgs<T>;
    type Tile = Tile;

    const TILE: Tile = Tile { scheme: Scheme::Pack, value: T::TYPE };
    const THREADS: u32 = THREADS;
    const MIN_SM: u32 = 90;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let at = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        if at >= args.count {
            return;
        }
        let of_group = 8 * args.eights;
        let (place, rest) = (at % PIECES, at / PIECES);
        let (row, rest) = (rest % of_group, rest / of_group);
        let (tap, rest) = (rest % args.taps, rest / args.taps);
        let chunks = args.channels.div_ceil(PANEL_CHANNELS);
        let (chunk, group) = (rest % chunks, rest / chunks);
        let filter = group * of_group + filter_of(row);
        let first = chunk * PANEL_CHANNELS + (place ^ (row % 8)) * OF_PIECE;
        // SAFETY: the arguments describe filters.
        let weight = |channel: u32| unsafe { args.weight(gpu, filter, first + channel, tap) };
        let pair = |channel: u32| T::join(gpu, weight(channel), weight(channel + 1)).upper;
        let words = [pair(0), pair(2), pair(4), pair(6)];
        // SAFETY: the words are this thread's.
        unsafe { gpu.store(args.to.add(4 * at as usize), words) };
    }
}
