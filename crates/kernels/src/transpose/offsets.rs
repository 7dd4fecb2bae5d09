//! Row offsets from the row table.
use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu};

use super::Tile;
use crate::{Kernel, RowRecord};

/// Row offsets from the row table, which has the rows by length: a thread a row.
#[derive(Debug)]
pub struct Offsets;

/// What [`Offsets`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OffsetsArgs {
    /// `rows` records of [`RowRecord`] words, one for each row, in any order.
    pub row_table: GlobalPtr<u32>,
    /// `rows + 1` elements to write: where each row starts, and the end of the last.
    pub row_offsets: GlobalMut<u32>,
    /// Rows of the matrix.
    pub rows: u32,
}

const THREADS: u32 = 256;

impl Kernel for Offsets {
    type Args = OffsetsArgs;
    type Tile = Tile;

    const TILE: Tile = Tile { block_items: THREADS };
    const THREADS: u32 = THREADS;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: OffsetsArgs) {
        let index = u64::from(gpu.block_idx_x()) * u64::from(THREADS) + u64::from(gpu.thread_idx_x());
        if index >= u64::from(args.rows) {
            return;
        }
        // SAFETY: the table has a record for each of `rows`, and the offsets a place for the end of each.
        unsafe {
            let RowRecord { row, end, .. } = RowRecord::load(gpu, args.row_table, index as usize);
            gpu.store(args.row_offsets.add(row as usize + 1), [end]);
            if row == 0 {
                gpu.store(args.row_offsets, [0]);
            }
        }
    }
}
