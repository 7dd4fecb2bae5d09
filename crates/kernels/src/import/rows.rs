//! Where the rows of a sparse matrix (M×K) start, from the row of each nonzero (COO).
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu};

use super::{SourceIndex, THREADS, Tile};
use crate::Kernel;

/// Checks row indices, and writes row offsets: a thread an element, and a row.
///
/// A thread checks that its element's row is below M and not below the row before. It also searches the array by halves for where
/// its row starts. Where the array does not rise, the offsets are any numbers: the verdict says that it does not.
#[derive(Debug)]
pub struct Rows<S>(PhantomData<S>);

/// What [`Rows`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RowsArgs<S> {
    /// The row of each nonzero: `nnz` elements.
    pub source: GlobalPtr<S>,
    /// Where each row starts, and the end of the last, to write: `rows + 1` elements.
    pub row_offsets: GlobalMut<u32>,
    /// One element, 0 before: 2³² − 1 less the index of the first wrong element, to write; 0 where all are right.
    pub verdict: GlobalMut<u32>,
    /// Rows of the matrix (below 2³² − 256).
    pub rows: u32,
    /// Elements of the matrix (below 2³² − 256).
    pub nnz: u32,
}

impl<S: SourceIndex> Kernel for Rows<S> {
    type Args = RowsArgs<S>;
    type Tile = Tile;

    const TILE: Tile = Tile { block_items: THREADS };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: RowsArgs<S>) {
        let index = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        // SAFETY: an index below `nnz` has a source, and one up to `rows` a place.
        unsafe {
            if index < args.nnz {
                let found = args.row_of(gpu, index);
                let before = if index > 0 { args.row_of(gpu, index - 1) } else { 0 };
                if found >= u64::from(args.rows) || before > found {
                    gpu.atomic_max(args.verdict, u32::MAX - index);
                }
            }
            if index <= args.rows {
                // The first element that is not of a row before is in `first..=last`.
                let (mut first, mut last) = (0, args.nnz);
                while first < last {
                    let middle = first + (last - first) / 2;
                    if args.row_of(gpu, middle) < u64::from(index) {
                        first = middle + 1;
                    } else {
                        last = middle;
                    }
                }
                gpu.store(args.row_offsets.add(index as usize), [first]);
            }
        }
    }
}

impl<S: SourceIndex> RowsArgs<S> {
    /// # Safety
    /// The index is below `nnz`, and the source is live.
    #[inline(always)]
    unsafe fn row_of<G: Gpu>(self, gpu: G, index: u32) -> u64 {
        // SAFETY: as promised by the caller.
        let [row] = unsafe { gpu.load_readonly(self.source.add(index as usize)) };
        row.number()
    }
}
