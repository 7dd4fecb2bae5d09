//! The two scans over counters: from chunk to chunk, and from column to column.
use lacuna_gpu::{GlobalMut, Gpu, SharedPtr, WARP};

use super::Tile;
use crate::Kernel;
use crate::common::sums_of_block;

/// What [`ScanChunks`] and [`ScanColumns`] take.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScanArgs {
    /// A counter for each chunk and column: `chunks` × `cols`, row by row.
    pub counters: GlobalMut<u32>,
    /// `cols + 1` elements: the totals, then the offsets.
    pub offsets: GlobalMut<u32>,
    /// Chunks of rows.
    pub chunks: u32,
    /// Columns (not 0).
    pub cols: u32,
}

/// Replaces each counter by the sum of its column's in the chunks before, and writes the columns' totals to the offsets:
/// a thread a column.
#[derive(Debug)]
pub struct ScanChunks;

/// Replaces the columns' totals by the sums of those before, and appends the sum of all: one block for all columns.
#[derive(Debug)]
pub struct ScanColumns;

const CHUNKS_THREADS: u32 = 256;
/// Counters that a thread loads at once.
const UNROLL: u32 = 8;

impl Kernel for ScanChunks {
    type Args = ScanArgs;
    type Tile = Tile;

    const TILE: Tile = Tile { block_items: CHUNKS_THREADS };
    const THREADS: u32 = CHUNKS_THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ScanArgs) {
        let column = gpu.block_idx_x() as usize * CHUNKS_THREADS as usize + gpu.thread_idx_x() as usize;
        if column >= args.cols as usize {
            return;
        }
        let cols = args.cols as usize;
        let mut counter = args.counters.add(column);
        let mut left = args.chunks;
        let mut sum = 0;
        // SAFETY: the column is one of `cols`, and no other thread has it.
        unsafe {
            while left >= UNROLL {
                let mut counts = [0; UNROLL as usize];
                for (i, count) in counts.iter_mut().enumerate() {
                    [*count] = gpu.load(counter.add(i * cols));
                }
                for (i, &count) in counts.iter().enumerate() {
                    gpu.store(counter.add(i * cols), [sum]);
                    sum += count;
                }
                counter = counter.add(UNROLL as usize * cols);
                left -= UNROLL;
            }
            while left > 0 {
                let [count] = gpu.load(counter);
                gpu.store(counter, [sum]);
                sum += count;
                counter = counter.add(cols);
                left -= 1;
            }
            gpu.store(args.offsets.add(column), [sum]);
        }
    }
}

const COLUMNS_THREADS: u32 = 1024;
const COLUMNS_WARPS: u32 = COLUMNS_THREADS / WARP;

impl Kernel for ScanColumns {
    type Args = ScanArgs;
    type Tile = Tile;

    const TILE: Tile = Tile { block_items: u32::MAX };
    const THREADS: u32 = COLUMNS_THREADS;
    const SHARED_BYTES: u32 = COLUMNS_WARPS * 4;

    /// A thread has a run of neighbouring columns: it adds them up, learns the sum of all threads before it, and goes
    /// through its run again.
    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ScanArgs) {
        const { assert!(COLUMNS_WARPS == WARP, "a lane for each warp's total") }
        let thread = gpu.thread_idx_x();
        let run = args.cols.div_ceil(COLUMNS_THREADS) as usize;
        let cols = args.cols as usize;
        let bound = |column: usize| if column < cols { column } else { cols };
        let first = bound(thread as usize * run);
        let last = bound(first + run);
        // SAFETY: runs do not overlap and lie in the offsets; the block's shared memory has a place for each warp.
        unsafe {
            let mut own = 0;
            for column in first..last {
                let [count] = gpu.load(args.offsets.add(column));
                own += count;
            }
            let [mut sum, all] = sums_of_block(gpu, SharedPtr::from_offset(0), own);
            for column in first..last {
                let [count] = gpu.load(args.offsets.add(column));
                gpu.store(args.offsets.add(column), [sum]);
                sum += count;
            }
            if thread == 0 {
                gpu.store(args.offsets.add(cols), [all]);
            }
        }
    }
}
