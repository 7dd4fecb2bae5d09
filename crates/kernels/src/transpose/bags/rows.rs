//! What sorted nonzeros say: which rows are named, where each starts, and the bags.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, WARP};

use super::{TILE, Tile, chunk_end, lanes_below};
use crate::Kernel;
use crate::nhot::TableIndex;

/// The rows that nonzeros name, sorted; what [`CountRows`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SortedRows<I> {
    /// The row of each nonzero, in ascending order: `nnz` elements.
    pub rows: GlobalPtr<I>,
    /// How many rows start in each chunk, to write: a chunk an element. For [`NamedRows`] how many start before, and how many in all.
    pub offsets: GlobalMut<u32>,
    /// Nonzeros (not 0).
    pub nnz: u32,
    /// Nonzeros of a chunk (not 0), a multiple of 32.
    pub chunk: u32,
    /// Rows of the table. From the first nonzero that names this, none names a row.
    pub end: I,
}

/// Counts the rows that start in each chunk: a warp a chunk.
#[derive(Debug)]
pub struct CountRows<I>(PhantomData<I>);

/// Writes the rows that are named, and where each starts: a warp a chunk.
#[derive(Debug)]
pub struct NamedRows<I>(PhantomData<I>);

/// What [`NamedRows`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NamedRowsArgs<I> {
    /// As for [`CountRows`], its counts scanned.
    pub sorted: SortedRows<I>,
    /// The rows, in ascending order, to write.
    pub named: GlobalMut<I>,
    /// Where the nonzeros of each start, and the end of the last, to write: one element more.
    pub starts: GlobalMut<u32>,
}

/// Writes the bag of each place, and how many nonzeros the longest row has: a thread a place, and a row.
#[derive(Debug)]
pub struct BagsOfPlaces;

/// What [`BagsOfPlaces`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BagsOfPlacesArgs {
    /// Numbers of nonzeros among the indices: `nnz` elements.
    pub places: GlobalPtr<u32>,
    /// Where each bag starts, and the end of the last: `bags + 1` elements.
    pub bag_offsets: GlobalPtr<u32>,
    /// The bag of each place, to write: `nnz` elements.
    pub out: GlobalMut<u32>,
    /// Where the nonzeros of each row start, and the end of the last: `rows + 1` elements.
    pub starts: GlobalPtr<u32>,
    /// One element, 0 before: the most nonzeros of a row, to write.
    pub longest: GlobalMut<u32>,
    /// Nonzeros (below 2³² − 256).
    pub nnz: u32,
    /// Bags.
    pub bags: u32,
    /// Rows that are named: at most `nnz`.
    pub rows: u32,
}

impl<I: TableIndex> SortedRows<I> {
    /// Goes through the nonzeros of the warp's chunk, 32 together: whether a row starts at this lane's, its number, its row, and
    /// the row before it (`end` before the first). All lanes visit; those past the chunk's end with no row.
    ///
    /// # Safety
    /// The arguments describe nonzeros that are there.
    #[inline(always)]
    unsafe fn for_each<G: Gpu>(self, gpu: G, mut visit: impl FnMut(bool, u32, I, I)) {
        let mut first = gpu.block_idx_x() * self.chunk;
        let end = chunk_end(first, self.chunk, self.nnz);
        while first < end {
            let index = first + gpu.lane_id();
            let (mut row, mut before) = (self.end, self.end);
            // SAFETY: the nonzero is one of `nnz`, and so is the one before.
            unsafe {
                if index < end {
                    [row] = gpu.load_readonly(self.rows.add(index as usize));
                }
                if index < end && index > 0 {
                    [before] = gpu.load_readonly(self.rows.add(index as usize - 1));
                }
            }
            visit(row != self.end && row != before, index, row, before);
            first += WARP;
        }
    }
}

impl<I: TableIndex> Kernel for CountRows<I> {
    type Args = SortedRows<I>;
    type Tile = Tile;

    const TILE: Tile = TILE;
    const THREADS: u32 = WARP;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: SortedRows<I>) {
        let mut count = 0;
        // SAFETY: as promised by the caller; the chunk's element is this warp's alone.
        unsafe {
            args.for_each(gpu, |starts, _, _, _| count += gpu.warp_ballot(FULL_WARP, starts).count_ones());
            if gpu.lane_id() == 0 {
                gpu.store(args.offsets.add(gpu.block_idx_x() as usize), [count]);
            }
        }
    }
}

impl<I: TableIndex> Kernel for NamedRows<I> {
    type Args = NamedRowsArgs<I>;
    type Tile = Tile;

    const TILE: Tile = TILE;
    const THREADS: u32 = WARP;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: NamedRowsArgs<I>) {
        let sorted = args.sorted;
        // SAFETY: there is an offset a chunk, and one for all; a row has its place, and no other the same.
        unsafe {
            let [mut number] = gpu.load(sorted.offsets.add(gpu.block_idx_x() as usize));
            let chunks = sorted.nnz.div_ceil(sorted.chunk) as usize;
            sorted.for_each(gpu, |starts, index, row, before| {
                let starting = gpu.warp_ballot(FULL_WARP, starts);
                if starts {
                    let to = (number + (starting & lanes_below(gpu.lane_id())).count_ones()) as usize;
                    gpu.store(args.named.add(to), [row]);
                    gpu.store(args.starts.add(to), [index]);
                }
                number += starting.count_ones();
                // The end of the last row: where none is named any more, or after the last nonzero.
                let is_past = index < sorted.nnz && row == sorted.end && (index == 0 || before != sorted.end);
                let is_last = index == sorted.nnz - 1 && row != sorted.end;
                if is_past || is_last {
                    let [all] = gpu.load(sorted.offsets.add(chunks));
                    gpu.store(args.starts.add(all as usize), [if is_past { index } else { sorted.nnz }]);
                }
            });
        }
    }
}

const THREADS: u32 = 256;

impl Kernel for BagsOfPlaces {
    type Args = BagsOfPlacesArgs;
    type Tile = Tile;

    const TILE: Tile = Tile { block_items: THREADS };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: BagsOfPlacesArgs) {
        let index = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        if index >= args.nnz {
            return;
        }
        // SAFETY: the nonzero is one of `nnz`; the search stays in `0..=bags`; a row has a start, and an end.
        unsafe {
            let [place] = gpu.load_readonly(args.places.add(index as usize));
            // The first bag that starts after the place is in `first..=last`; the bag is the one before.
            let (mut first, mut last) = (0, args.bags);
            while first < last {
                let middle = first + (last - first) / 2;
                let [start] = gpu.load_readonly(args.bag_offsets.add(middle as usize));
                if start <= place {
                    first = middle + 1;
                } else {
                    last = middle;
                }
            }
            gpu.store(args.out.add(index as usize), [first - 1]);
            if index < args.rows {
                let start = args.starts.add(index as usize);
                let ([start], [end]) = (gpu.load_readonly(start), gpu.load_readonly(start.add(1)));
                gpu.atomic_max(args.longest, end - start);
            }
        }
    }
}
