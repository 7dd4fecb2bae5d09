//! One list of several.
use lacuna_gpu::{GlobalPtr, Gpu};

use super::output::{Output, RowSoftmax};
use super::sums::of_chunks;
use super::{Method, Tile};
use crate::Kernel;

/// The results of rows whose chunks have a sorted list each. A thread has a key of a list. Its place in the result is its own
/// plus the number of greater keys in each other list, found by halving; it is written where that is below n.
#[derive(Debug)]
pub struct Merge;

/// What [`Merge`] takes. The grid is the keys of a row along x, in blocks of its threads, and rows along y.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MergeArgs {
    /// The lists: n places for each chunk of each row.
    pub keys: GlobalPtr<u64>,
    /// The greatest value of each chunk, and its sum.
    pub sums: GlobalPtr<f32>,
    /// The results of these rows.
    pub output: Output,
    /// Elements of a row.
    pub columns: u32,
    /// Elements of each chunk but perhaps the last.
    pub chunk: u32,
    /// Chunks of a row.
    pub chunks: u32,
    /// Keys of a list, and of the result.
    pub n: u32,
}

impl MergeArgs {
    /// Keys of a row's list `list`.
    #[inline(always)]
    fn len(&self, list: u32) -> u32 {
        self.n.min(self.chunk).min(self.columns - list * self.chunk)
    }
}

impl Kernel for Merge {
    type Args = MergeArgs;
    type Tile = Tile;

    const TILE: Tile = Tile { method: Method::Merge, value: None, capacity: 0, most: u32::MAX };
    const THREADS: u32 = 128;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: MergeArgs) {
        let item = gpu.block_idx_x() * Self::THREADS + gpu.thread_idx_x();
        let row = gpu.block_idx_y() as usize;
        let lists = args.keys.add(row * args.chunks as usize * args.n as usize);
        let sums = args.sums.add(2 * row * args.chunks as usize);
        // SAFETY: each chunk has its greatest value and its sum.
        let [greatest, sum] = unsafe { of_chunks(gpu, args.output.exponent_scale, sums, args.chunks) };
        let (own, own_place) = (item / args.n, item % args.n);
        if own >= args.chunks || own_place >= args.len(own) {
            return;
        }
        // SAFETY: each list has as many keys as its chunk's length and n allow. A place of the result is that of one key.
        unsafe {
            let [key] = gpu.load_readonly(lists.add(item as usize));
            let mut place = own_place;
            let mut list = 0;
            while list < args.chunks && place < args.n {
                if list != own {
                    let keys = lists.add(list as usize * args.n as usize);
                    // No more matter than would push this key out of the result.
                    place += greater(gpu, keys, args.len(list).min(args.n - place), key);
                }
                list += 1;
            }
            if place < args.n {
                let output = RowSoftmax::of(gpu, &args.output, greatest, sum);
                output.write(gpu, row * args.n as usize + place as usize, key);
                if place == 0 {
                    output.write_log_sum(gpu, row);
                }
            }
        }
    }
}

/// How many of the first `len` keys of a list, in falling order, are greater than `key`.
///
/// # Safety
/// The list has as many.
#[inline(always)]
unsafe fn greater<G: Gpu>(gpu: G, list: GlobalPtr<u64>, len: u32, key: u64) -> u32 {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = (low + high) / 2;
        // SAFETY: as promised by the caller.
        let [other] = unsafe { gpu.load_readonly(list.add(middle as usize)) };
        if other > key { low = middle + 1 } else { high = middle }
    }
    low
}
