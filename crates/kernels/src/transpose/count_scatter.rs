//! The two passes over the rows of A: one counts the columns of each chunk of rows, the other puts elements in place.
//!
//! A warp goes through the rows of its chunk one after another, its lanes side by side along a row. The columns of one
//! row are distinct, so no two lanes meet at a counter; between two rows the warp waits for all its lanes.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, WARP};

use super::Tile;
use crate::{DeviceIndex, Kernel};

/// A cut into chunks of rows, and the counters of each.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Chunks<I> {
    /// Where each row starts, and the end of the last: `rows + 1` elements.
    pub row_offsets: GlobalPtr<u32>,
    /// The column of each nonzero, row by row; distinct in each row.
    pub columns: GlobalPtr<I>,
    /// A counter for each chunk and column: chunks × `cols`, row by row.
    pub counters: GlobalMut<u32>,
    /// Rows of A.
    pub rows: u32,
    /// Columns of A.
    pub cols: u32,
    /// Rows of a chunk (not 0); the last chunk may have fewer.
    pub chunk_rows: u32,
}

/// What [`Count`] takes. The counters hold zeros.
pub type CountArgs<I> = Chunks<I>;

/// What [`Scatter`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScatterArgs<I> {
    /// As for [`Count`]; a counter holds how many elements of its column are in chunks before.
    pub chunks: Chunks<I>,
    /// Where each column's elements start in Aᵀ: `cols` elements.
    pub offsets: GlobalPtr<u32>,
    /// The row of each nonzero, column by column, to write.
    pub rows: GlobalMut<I>,
    /// The index in A of each nonzero of Aᵀ, to write.
    pub permutation: GlobalMut<u32>,
}

/// Counts each chunk's columns: a warp a chunk.
#[derive(Debug)]
pub struct Count<I>(PhantomData<I>);

/// Puts each nonzero into its place in Aᵀ: a warp a chunk.
#[derive(Debug)]
pub struct Scatter<I>(PhantomData<I>);

/// A block is one warp, so that few warps spread over all multiprocessors.
const TILE: Tile = Tile { block_items: 1 };

/// One nonzero, as a lane meets it.
struct Nonzero {
    /// Its row in A.
    row: u32,
    /// Its index in A.
    index: u32,
    /// Its column in A.
    column: u32,
    /// The counter of its column, in this warp's chunk.
    counter: GlobalMut<u32>,
}

impl<I: DeviceIndex> Chunks<I> {
    /// Goes through the nonzeros of the warp's chunk, row by row.
    ///
    /// # Safety
    /// The arguments describe a matrix and live counters, no other warp has this chunk, and `visit` touches nothing that
    /// another lane touches in the same row.
    #[inline(always)]
    unsafe fn for_each<G: Gpu>(self, gpu: G, mut visit: impl FnMut(Nonzero)) {
        let lane = gpu.lane_id();
        let chunk = gpu.block_idx_x();
        let counters = self.counters.add(chunk as usize * self.cols as usize);
        let mut first = chunk * self.chunk_rows;
        let mut left = if self.rows - first < self.chunk_rows { self.rows - first } else { self.chunk_rows };
        while left > 0 {
            // Each lane loads the ends of one row; the rows then take their turns.
            let turns = if left < WARP { left } else { WARP };
            let (mut start, mut end) = (0, 0);
            if lane < turns {
                let offset = self.row_offsets.add(first as usize + lane as usize);
                // SAFETY: the row is one of `rows`.
                unsafe {
                    [start] = gpu.load_readonly(offset);
                    [end] = gpu.load_readonly(offset.add(1));
                }
            }
            for turn in 0..turns {
                let end = gpu.warp_shuffle_idx(FULL_WARP, end, turn, WARP);
                let mut index = gpu.warp_shuffle_idx(FULL_WARP, start, turn, WARP) + lane;
                while index < end {
                    // SAFETY: the index is inside the row.
                    let [column] = unsafe { gpu.load_readonly(self.columns.add(index as usize)) };
                    let column = column.widen();
                    visit(Nonzero {
                        row: first + turn,
                        index,
                        column,
                        counter: counters.add(column as usize),
                    });
                    index += WARP;
                }
                gpu.sync_warp(FULL_WARP);
            }
            first += turns;
            left -= turns;
        }
    }
}

impl<I: DeviceIndex> Kernel for Count<I> {
    type Args = CountArgs<I>;
    type Tile = Tile;

    const TILE: Tile = TILE;
    const THREADS: u32 = WARP;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: CountArgs<I>) {
        // SAFETY: a counter is touched by one lane a row.
        unsafe {
            args.for_each(gpu, |nonzero| {
                let [count] = gpu.load(nonzero.counter);
                gpu.store(nonzero.counter, [count + 1]);
            });
        }
    }
}

impl<I: DeviceIndex> Kernel for Scatter<I> {
    type Args = ScatterArgs<I>;
    type Tile = Tile;

    const TILE: Tile = TILE;
    const THREADS: u32 = WARP;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ScatterArgs<I>) {
        // SAFETY: a counter is touched by one lane a row; the place that it gives is no other nonzero's.
        unsafe {
            args.chunks.for_each(gpu, |nonzero| {
                let [offset] = gpu.load_readonly(args.offsets.add(nonzero.column as usize));
                let [before] = gpu.load(nonzero.counter);
                gpu.store(nonzero.counter, [before + 1]);
                let place = offset as usize + before as usize;
                gpu.store(args.rows.add(place), [I::narrow(nonzero.row)]);
                gpu.store(args.permutation.add(place), [nonzero.index]);
            });
        }
    }
}
