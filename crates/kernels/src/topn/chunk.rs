//! The chunk of a row that a block works on; it may be all of the row.
use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, SharedPtr};

use super::output::{Output, RowSoftmax};
use crate::common::strided;

/// What [`RadixSelect`](super::RadixSelect) and [`Insertion`](super::Insertion) take. The grid is a block for each chunk of
/// each row, along x.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TopNArgs<T> {
    /// The first element of row 0; rows may start anywhere.
    pub logits: GlobalPtr<T>,
    /// Where rows have several chunks: the list of each, n keys, of which as many are written as the chunk has elements; for
    /// [`StreamingSelect`](super::StreamingSelect) as many as it gathers.
    pub keys: GlobalMut<u64>,
    /// Likewise: the greatest value of each chunk, and its sum.
    pub sums: GlobalMut<f32>,
    /// For [`StreamingSelect`](super::StreamingSelect) alone: the number of keys of each chunk, and a threshold that at least
    /// n of them reach, as the bits of an ordered number; 0 where there is none.
    pub counts: GlobalMut<u32>,
    /// Where rows are one chunk: the results.
    pub output: Output,
    /// Elements from row to row.
    pub row_stride: u64,
    /// Elements of a row.
    pub columns: u32,
    /// Elements of each chunk but perhaps the last.
    pub chunk: u32,
    /// Chunks of a row.
    pub chunks: u32,
    /// How many values are wanted of a row.
    pub n: u32,
}

/// What a block does.
#[derive(Clone, Copy)]
pub(super) struct Chunk<T> {
    /// Its elements.
    pub(super) values: GlobalPtr<T>,
    /// Their number.
    pub(super) len: u32,
    /// How many of them are wanted.
    pub(super) n: u32,
    /// The index of its first element in the row.
    pub(super) first: u32,
    list: usize,
}

impl<T> Chunk<T> {
    /// The part of this block.
    #[inline(always)]
    pub(super) fn of<G: Gpu>(gpu: G, args: &TopNArgs<T>) -> Self {
        Self::of_block(args, gpu.block_idx_x())
    }

    /// The part of a block.
    #[inline(always)]
    pub(super) fn of_block(args: &TopNArgs<T>, list: u32) -> Self {
        let (row, first) = (list / args.chunks, list % args.chunks * args.chunk);
        let len = args.chunk.min(args.columns - first);
        let start = u64::from(row) * args.row_stride + u64::from(first);
        let values = args.logits.add(start as usize);
        Self { values, len, n: args.n.min(len), first, list: list as usize }
    }

    /// Writes the first n of sorted keys: as the row's results, or as a list of its own.
    ///
    /// # Safety
    /// The arguments' arrays have the room that they say; the keys were written before a barrier.
    #[inline(always)]
    pub(super) unsafe fn write<G: Gpu, const THREADS: u32>(
        &self,
        gpu: G,
        args: &TopNArgs<T>,
        keys: SharedPtr<u64>,
        greatest: f32,
        sum: f32,
    ) {
        let thread = gpu.thread_idx_x();
        // SAFETY: as promised by the caller; each slot is one thread's.
        unsafe {
            if args.chunks > 1 {
                let list = args.keys.add(self.list * args.n as usize);
                strided(thread, self.n, THREADS, |place| {
                    let key = gpu.shared_load::<u64, 1>(keys.add(place));
                    gpu.store(list.add(place as usize), key);
                });
                if thread == 0 {
                    gpu.store(args.sums.add(2 * self.list), [greatest, sum]);
                }
                return;
            }
            let row = RowSoftmax::of(gpu, &args.output, greatest, sum);
            strided(thread, self.n, THREADS, |place| {
                let [key] = gpu.shared_load(keys.add(place));
                row.write(gpu, self.list * args.n as usize + place as usize, key);
            });
            if thread == 0 {
                row.write_log_sum(gpu, self.list);
            }
        }
    }

    /// Writes gathered keys as a list of their own, as they are, with room for `ROOM`; and a threshold that n of them reach.
    ///
    /// # Safety
    /// As for [`write`](Self::write).
    #[inline(always)]
    pub(super) unsafe fn write_gathered<G: Gpu, const THREADS: u32, const ROOM: u32>(
        &self,
        gpu: G,
        args: &TopNArgs<T>,
        (keys, count): (SharedPtr<u64>, u32),
        threshold: u32,
        sums: [f32; 2],
    ) {
        let thread = gpu.thread_idx_x();
        let list = args.keys.add(self.list * ROOM as usize);
        // SAFETY: as promised by the caller; each slot is one thread's.
        unsafe {
            strided(thread, count, THREADS, |place| {
                let key = gpu.shared_load::<u64, 1>(keys.add(place));
                gpu.store(list.add(place as usize), key);
            });
            if thread == 0 {
                gpu.store(args.sums.add(2 * self.list), sums);
                // A threshold of fewer than N is none for the row.
                let threshold = if self.n == args.n { threshold } else { 0 };
                gpu.store(args.counts.add(2 * self.list), [count, threshold]);
            }
        }
    }
}
