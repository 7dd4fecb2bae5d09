//! The columns of a sparse matrix (CSR, M×K) from an array of another program's: checked, and copied to where kernels read them.
//! And where its rows start, from an array of row indices ([`Rows`]); the indices of bags, in any order ([`Indices`]);
//! and the columns of lists of each row ([`SortLists`]).
//!
//! Other programs hold indices in 32 or 64 bits, signed. A negative index, read without its sign, is 2³¹ or 2⁶³ at least. The host gives
//! no greater number of columns with it, so that one comparison finds both. A thread takes an element: it checks that the column is
//! below K and, unless the element is the first of a row, above the one before; narrows it; and stores it. Few threads must know a row:
//! only where columns fall, which they do at most row starts, a thread searches the row offsets for its element. The first wrong
//! element is what an atomic maximum keeps, so that the verdict is the same in every run.
mod indices;
mod list;
mod lists;
mod rows;

use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, Scalar};

pub use self::indices::{Indices, IndicesArgs};
pub use self::lists::{CopyLists, CopyListsArgs, MAX_LIST, SortLists, SortListsArgs};
pub use self::rows::{Rows, RowsArgs};
use crate::{DeviceIndex, Kernel};

/// What the host must know of a kernel's shape: a grid is one dimension of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Elements that a block writes.
    pub block_items: u32,
}

/// A column index as other programs hold it, its sign read as a bit of the number.
pub trait SourceIndex: Scalar {
    /// The same number in 64 bits.
    fn number(self) -> u64;
    /// Whether all its bits are set: −1, which some use for what is not there.
    fn is_none(self) -> bool;
}
impl SourceIndex for u32 {
    #[inline(always)]
    fn number(self) -> u64 {
        self.into()
    }
    #[inline(always)]
    fn is_none(self) -> bool {
        self == Self::MAX
    }
}
impl SourceIndex for u64 {
    #[inline(always)]
    fn number(self) -> u64 {
        self
    }
    #[inline(always)]
    fn is_none(self) -> bool {
        self == Self::MAX
    }
}

/// Checks and copies columns: a thread an element.
#[derive(Debug)]
pub struct Columns<S, I>(PhantomData<(S, I)>);

/// What [`Columns`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ColumnsArgs<S, I> {
    /// The column of each nonzero, row by row: `nnz` elements.
    pub source: GlobalPtr<S>,
    /// Where each row starts, and the end of the last: `rows + 1` rising elements, the first 0 and the last `nnz`.
    pub row_offsets: GlobalPtr<u32>,
    /// The columns, to write: `len` elements. Those past `nnz` become zero, and so do wrong ones.
    pub columns: GlobalMut<I>,
    /// One element, 0 before: 2³² − 1 less the index of the first wrong element, to write; 0 where all are right.
    pub verdict: GlobalMut<u32>,
    /// Rows of the matrix.
    pub rows: u32,
    /// Columns of the matrix: not more than `I` can index.
    pub cols: u32,
    /// Elements of the matrix.
    pub nnz: u32,
    /// Elements to write: `nnz`, or more (below 2³² − 256).
    pub len: u32,
}

const THREADS: u32 = 256;

impl<S: SourceIndex, I: DeviceIndex> Kernel for Columns<S, I> {
    type Args = ColumnsArgs<S, I>;
    type Tile = Tile;

    const TILE: Tile = Tile { block_items: THREADS };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ColumnsArgs<S, I>) {
        let index = gpu.block_idx_x() * THREADS + gpu.thread_idx_x();
        if index >= args.len {
            return;
        }
        let mut column = 0;
        // SAFETY: an index below `nnz` has a source, and one below `len` a place; the offsets have `rows + 1` elements.
        unsafe {
            if index < args.nnz {
                let source = args.source.add(index as usize);
                let [found] = gpu.load_readonly(source);
                let found = found.number();
                let mut is_right = found < u64::from(args.cols);
                if is_right && index > 0 {
                    let [before] = gpu.load_readonly(args.source.add(index as usize - 1));
                    is_right = before.number() < found || args.starts_row(gpu, index);
                }
                if is_right {
                    column = found as u32;
                } else {
                    gpu.atomic_max(args.verdict, u32::MAX - index);
                }
            }
            gpu.store(args.columns.add(index as usize), [I::narrow(column)]);
        }
    }
}

impl<S: SourceIndex, I: DeviceIndex> ColumnsArgs<S, I> {
    /// Whether a row starts at this element: a search by halves.
    ///
    /// # Safety
    /// The row offsets are live, and as they should be.
    #[inline(always)]
    unsafe fn starts_row<G: Gpu>(self, gpu: G, index: u32) -> bool {
        // The first offset that is not below the index is in `first..=last`; the last of all is `nnz`, above it.
        let (mut first, mut last) = (0, self.rows);
        while first < last {
            let middle = first + (last - first) / 2;
            // SAFETY: `middle` is below `rows`.
            let [offset] = unsafe { gpu.load_readonly(self.row_offsets.add(middle as usize)) };
            if offset < index {
                first = middle + 1;
            } else {
                last = middle;
            }
        }
        // SAFETY: `first` is at most `rows`.
        let [offset] = unsafe { gpu.load_readonly(self.row_offsets.add(first as usize)) };
        offset == index
    }
}
