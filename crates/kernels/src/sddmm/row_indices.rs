//! The row of each nonzero: the pattern in coordinates.
use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, WARP};

use super::{Scheme, Tile};
use crate::common::strided;
use crate::{IndexType, Kernel, RowRecord};

/// Writes the row of each nonzero: a warp a row.
#[derive(Debug)]
pub struct RowIndices;

/// What [`RowIndices`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RowArgs {
    /// `rows` records of [`RowRecord`] words, in any order.
    pub row_table: GlobalPtr<u32>,
    /// `len` elements to write: the row of each nonzero, and then the last of them again.
    pub indices: GlobalMut<u32>,
    /// Rows of the matrix.
    pub rows: u32,
    /// Its nonzeros.
    pub nnz: u32,
    /// Elements to write: `nnz`, or more, below 2³² - 32.
    pub len: u32,
}

const WARPS: u32 = 8;

impl Kernel for RowIndices {
    type Args = RowArgs;
    type Tile = Tile;

    const TILE: Tile = Tile::without_products(IndexType::U32, WARPS, Scheme::RowIndices);
    const THREADS: u32 = WARPS * WARP;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: RowArgs) {
        let index = gpu.block_idx_x() * WARPS + gpu.thread_idx_x() / WARP;
        if index >= args.rows {
            return;
        }
        // SAFETY: the table has a record for each of `rows`; the nonzeros of a row are its warp's alone.
        unsafe {
            let RowRecord { row, start, end } = RowRecord::load(gpu, args.row_table, index as usize);
            let end = if start < end && end == args.nnz { args.len } else { end };
            strided(start + gpu.lane_id(), end, WARP, |at| gpu.store(args.indices.add(at as usize), [row]));
        }
    }
}
