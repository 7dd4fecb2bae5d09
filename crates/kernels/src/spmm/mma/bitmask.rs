//! Makes the pattern of A as tiles take it. Producers read where a chunk's values begin, and places; the masks' bits serve
//! the exact fallback.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, WARP};

use crate::spmm::{Scheme, Tile};
use crate::{DeviceIndex, Kernel, RowMask, RowRecord, ValueType};

/// What the entry points of [`Bitmasks`] take. The grid is [`Tile::block_rows`] rows by [`Tile::block_columns`] chunks.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BitmaskArgs<I> {
    /// `rows` [`RowRecord`]s, in any order.
    pub row_table: GlobalPtr<u32>,
    /// Column of each nonzero, rising in each row.
    pub columns: GlobalPtr<I>,
    /// [`RowMask::count`] records; those of rows that A does not have stay as they are.
    pub masks: GlobalMut<u32>,
    /// A byte for each nonzero: see [`TileArgs::places`](super::TileArgs::places). What follows the last stays as it is.
    pub places: GlobalMut<u8>,
    /// Rows of A.
    pub rows: u32,
    /// Columns of A.
    pub cols: u32,
}

/// Makes the masks and places of a pattern, a thread a chunk: it looks for the chunk's first nonzero by bisection, and goes
/// through those of the chunk.
#[derive(Debug)]
pub struct Bitmasks<I>(PhantomData<I>);

/// Chunks of a block: a warp for each row of a group.
const BLOCK_CHUNKS: u32 = WARP;

impl<I: DeviceIndex> Kernel for Bitmasks<I> {
    type Args = BitmaskArgs<I>;
    type Tile = Tile;

    const TILE: Tile = Tile {
        value: ValueType::F32,
        index: I::TYPE,
        vector: 1,
        block_rows: RowMask::ROWS,
        block_columns: BLOCK_CHUNKS,
        scheme: Scheme::Bitmask,
    };
    const THREADS: u32 = RowMask::ROWS * BLOCK_CHUNKS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: BitmaskArgs<I>) {
        let thread = gpu.thread_idx_x();
        let index = gpu.block_idx_x() * RowMask::ROWS + thread / BLOCK_CHUNKS;
        let chunk = gpu.block_idx_y() * BLOCK_CHUNKS + thread % BLOCK_CHUNKS;
        let chunks = RowMask::chunks(args.cols);
        if index >= args.rows || chunk >= chunks {
            return;
        }
        let begin = chunk * RowMask::COLUMNS;
        // SAFETY: the table has a record for each row, and its indices are those of columns and places; a chunk's places are
        // this thread's alone.
        let (row, record) = unsafe {
            let row = RowRecord::load(gpu, args.row_table, index as usize);
            let column = |index: u32| -> u32 {
                let [column] = gpu.load_readonly::<I, 1>(args.columns.add(index as usize));
                column.widen()
            };
            let (mut low, mut high) = (row.start, row.end);
            while low < high {
                let middle = low + (high - low) / 2;
                if column(middle) < begin {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            let mut record = RowMask { mask: 0, first: low };
            while low < row.end && column(low) - begin < RowMask::COLUMNS {
                let column = column(low);
                record.mask |= 1 << (column - begin);
                gpu.store(args.places.add(low as usize), [column as u8]);
                low += 1;
            }
            (row.row, record)
        };
        let at = RowMask::index(row, chunk, chunks) * RowMask::WORDS;
        // SAFETY: the record lies in the masks, and is this thread's alone.
        unsafe { gpu.store(args.masks.add(at), [record.mask, record.first]) };
    }
}
