//! The pattern of lists of columns, one a row, in any order: what a search for the greatest leaves.
//!
//! ```text
//!   lists, 3 × 4         sorted in shared memory      counts   scanned      columns
//!   7 2 . 2              2 2 7 .                      2        0            2 7
//!   0 9 4 5     ─sort─►  0 4 5 9         ─count─►     4        2   ─copy─►  0 4 5 9
//!   . . . .              . . . .                      0        6
//! ```
//! A thread block sorts a row's list (a bitonic sort; what there is not, and columns past the diagonal, come last), and its first warp
//! writes each column once, 32 together. Rows then have their places by a scan of the counts, and are copied there.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

use super::{SourceIndex, THREADS, Tile};
use crate::{DeviceIndex, Kernel};

/// Columns of a list at most: they are sorted in shared memory.
pub const MAX_LIST: u32 = 4096;

/// In place of a column that is not there. No matrix has so many.
const NONE: u32 = u32::MAX;

/// A thread block takes a row.
const TILE: Tile = Tile { block_items: 1 };

/// Sorts and checks lists: a thread block a row.
#[derive(Debug)]
pub struct SortLists<S>(PhantomData<S>);

/// What [`SortLists`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SortListsArgs<S> {
    /// The columns of each row, in any order: rows × `length`. All bits set, as of −1, stands for none.
    pub source: GlobalPtr<S>,
    /// Each row's columns in ascending order, each once, to write: rows × `length`, of which as many as the count says.
    pub sorted: GlobalMut<u32>,
    /// How many these are, to write: an element a row.
    pub counts: GlobalMut<u32>,
    /// One element, 0 before: 2³² − 1 less the number of the first wrong element, to write; 0 where all are right.
    pub verdict: GlobalMut<u32>,
    /// Row i keeps columns up to i + `diagonal`.
    pub diagonal: i64,
    /// Columns of the matrix (below 2³² − 1).
    pub cols: u32,
    /// Elements of a list (rows × `length` is below 2³² − 256).
    pub length: u32,
    /// The next power of two: at most [`MAX_LIST`].
    pub padded: u32,
}

/// Copies sorted lists to where kernels read them: a thread block a row.
#[derive(Debug)]
pub struct CopyLists<I>(PhantomData<I>);

/// What [`CopyLists`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CopyListsArgs<I> {
    /// As [`SortLists`] wrote them.
    pub sorted: GlobalPtr<u32>,
    /// Where each row starts, and the end of the last.
    pub row_offsets: GlobalPtr<u32>,
    /// The columns, to write.
    pub columns: GlobalMut<I>,
    /// Elements of a list.
    pub length: u32,
}

impl<S: SourceIndex> Kernel for SortLists<S> {
    type Args = SortListsArgs<S>;
    type Tile = Tile;

    const TILE: Tile = TILE;
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = MAX_LIST * 4;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: SortListsArgs<S>) {
        let (row, thread) = (gpu.block_idx_x(), gpu.thread_idx_x());
        let list = SharedPtr::<u32>::from_offset(0);
        let first = row as usize * args.length as usize;
        let mut at = thread;
        // SAFETY: a list has `length` elements, and shared memory room for `padded`; barriers stand between steps, in which each thread
        // has pairs of its own; the row's place in `sorted` and its count are this block's alone.
        unsafe {
            while at < args.padded {
                let column = if at < args.length { args.column(gpu, row, first + at as usize) } else { NONE };
                gpu.shared_store(list.add(at), [column]);
                at += THREADS;
            }
            gpu.sync_threads();
            let mut run = 2;
            while run <= args.padded {
                let mut distance = run / 2;
                while distance > 0 {
                    let mut pair = thread;
                    while pair < args.padded / 2 {
                        // The pair's lower place: its number, with a zero put in at the bit of the distance.
                        let low = (pair & !(distance - 1)) << 1 | pair & (distance - 1);
                        let places = [list.add(low), list.add(low + distance)];
                        let ([a], [b]) =
                            (gpu.shared_load::<u32, 1>(places[0]), gpu.shared_load::<u32, 1>(places[1]));
                        let ascends = low & run == 0;
                        if (a > b) == ascends {
                            gpu.shared_store(places[0], [b]);
                            gpu.shared_store(places[1], [a]);
                        }
                        pair += THREADS;
                    }
                    gpu.sync_threads();
                    distance /= 2;
                }
                run *= 2;
            }
            if thread < WARP {
                let mut count = 0;
                let mut base = 0;
                while base < args.padded {
                    let at = base + thread;
                    let (mut column, mut before) = (NONE, NONE);
                    if at < args.padded {
                        [column] = gpu.shared_load(list.add(at));
                    }
                    if at < args.padded && at > 0 {
                        [before] = gpu.shared_load(list.add(at - 1));
                    }
                    let is_new = column != NONE && column != before;
                    let new = gpu.warp_ballot(FULL_WARP, is_new);
                    if is_new {
                        let to = count + (new & ((1 << thread) - 1)).count_ones();
                        gpu.store(args.sorted.add(first + to as usize), [column]);
                    }
                    count += new.count_ones();
                    base += WARP;
                }
                if thread == 0 {
                    gpu.store(args.counts.add(row as usize), [count]);
                }
            }
        }
    }
}

impl<S: SourceIndex> SortListsArgs<S> {
    /// The column at this place, if it is there, and the row keeps it.
    ///
    /// # Safety
    /// The place is one of the lists'.
    #[inline(always)]
    unsafe fn column<G: Gpu>(self, gpu: G, row: u32, place: usize) -> u32 {
        // SAFETY: as promised by the caller.
        let [found] = unsafe { gpu.load_readonly(self.source.add(place)) };
        if found.is_none() {
            return NONE;
        }
        let number = found.number();
        if number >= u64::from(self.cols) {
            // SAFETY: the verdict is live.
            unsafe { gpu.atomic_max(self.verdict, u32::MAX - place as u32) };
            return NONE;
        }
        if number as i64 - i64::from(row) > self.diagonal { NONE } else { number as u32 }
    }
}

impl<I: DeviceIndex> Kernel for CopyLists<I> {
    type Args = CopyListsArgs<I>;
    type Tile = Tile;

    const TILE: Tile = TILE;
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: CopyListsArgs<I>) {
        let row = gpu.block_idx_x() as usize;
        let offset = args.row_offsets.add(row);
        // SAFETY: a row has as many columns as its offsets say, in its list, and places of its own.
        unsafe {
            let ([start], [end]) = (gpu.load_readonly(offset), gpu.load_readonly(offset.add(1)));
            let mut at = gpu.thread_idx_x();
            while at < end - start {
                let [column] = gpu.load_readonly(args.sorted.add(row * args.length as usize + at as usize));
                gpu.store(args.columns.add((start + at) as usize), [I::narrow(column)]);
                at += THREADS;
            }
        }
    }
}
