//! Filters of one tap in the order in which lanes take them.
use core::marker::PhantomData;

use lacuna_gpu::{Gpu, WARP};

use super::mma::CHANNELS;
use super::pack_mma::PackMmaArgs;
use super::split::MmaValue;
use super::{Scheme, Tile};
use crate::Kernel;

/// Packs filters for [`PointwiseConv`](super::PointwiseConv), 16 bytes a thread: for each group of filters, 16 channels, and eight filters (sixteen, of values of 16
/// bits), what a lane of a product takes: four channels in their parts. Zeros stand for what is not there. Groups have an even number of eights, and channels one tap.
#[derive(Debug)]
pub struct PackPointwise<T>(PhantomData<T>);

/// Threads of a block.
const THREADS: u32 = 256;

impl<T: MmaValue> Kernel for PackPointwise<T> {
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
        let quads = args.eights * T::PARTS / 2;
        let (quad, rest) = (rest % quads, rest / quads);
        let chunks = args.channels.div_ceil(CHANNELS);
        let (chunk, group) = (rest % chunks, rest / chunks);
        // Column c of product n is such a filter that a lane's sums are of four filters side by side.
        let column = lane / 4;
        let of_product = |n: u32| n / 2 * 16 + column / 2 * 4 + n % 2 * 2 + column % 2;
        let first = chunk * CHANNELS + lane % 4 * 4;
        // SAFETY: the arguments describe filters of one tap.
        let weight = |filter: u32, channel: u32| unsafe { args.weight(gpu, filter, channel, 0) };
        let pairs = |n: u32| {
            let filter = group * 8 * args.eights + of_product(n);
            let pair = |at: u32| T::join(gpu, weight(filter, first + at), weight(filter, first + at + 1));
            [pair(0), pair(2)]
        };
        let words = if T::PARTS > 1 {
            let [a, b] = pairs(quad);
            [a.upper, b.upper, a.lower, b.lower]
        } else {
            let ([a, b], [c, d]) = (pairs(2 * quad), pairs(2 * quad + 1));
            [a.upper, b.upper, c.upper, d.upper]
        };
        // SAFETY: the words are this thread's.
        unsafe { gpu.store(args.to.add(4 * at as usize), words) };
    }
}
