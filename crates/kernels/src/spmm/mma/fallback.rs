//! The exact fallback: a tile by scalar products, for accumulators that were not finite.
use lacuna_gpu::{Gpu, WARP};

use super::TileArgs;
use crate::{DeviceValue, RowMask};

/// Computes the `rows` by `columns` of C from (`row`, `column`) on, by all warps of the block.
///
/// # Safety
/// The arguments describe live memory; no other block has this tile.
#[inline(always)]
pub(in crate::spmm) unsafe fn fallback<T: DeviceValue, G: Gpu>(
    gpu: G,
    args: &TileArgs<T>,
    batch: u32,
    [first_row, first_column]: [u32; 2],
    [rows, columns]: [u32; 2],
) {
    let (warp, lane) = (gpu.thread_idx_x() / WARP, gpu.thread_idx_x() % WARP);
    let warps = gpu.block_dim_x() / WARP;
    let mut at = warp;
    while at < rows && first_row + at < args.rows {
        let row = first_row + at;
        let mut column = first_column + lane;
        while column < args.n && column < first_column + columns {
            // SAFETY: row and column lie in C, and are this lane's alone.
            unsafe {
                let sum = element(gpu, args, row, column);
                args.output.store(gpu, row, column, batch, [sum]);
            }
            column += WARP;
        }
        at += warps;
    }
}

/// One element of A·B, over the row's nonzeros in their order.
///
/// # Safety
/// The arguments describe live memory; row and column lie in C.
#[inline(always)]
unsafe fn element<T: DeviceValue, G: Gpu>(gpu: G, args: &TileArgs<T>, row: u32, column: u32) -> f32 {
    let chunks = RowMask::chunks(args.cols);
    let mut sum = 0.0;
    let mut chunk = 0;
    while chunk < chunks {
        let at = RowMask::index(row, chunk, chunks) * RowMask::WORDS;
        // SAFETY: the masks have a record for each chunk; set bits stand for columns of A, which have a row in B, and for
        // as many values.
        unsafe {
            let [mut mask, mut value] = gpu.load_readonly::<u32, 2>(args.masks.add(at));
            while mask != 0 {
                let k = chunk * RowMask::COLUMNS + mask.trailing_zeros();
                let [x] = gpu.load_readonly::<T, 1>(args.values.add(value as usize));
                let row = args.b.add_rows(k, args.b_stride_bytes);
                let [y] = gpu.load_readonly::<T, 1>(row.add(column as usize));
                sum = gpu.fma(x.to_f32(gpu), y.to_f32(gpu), sum);
                mask &= mask - 1;
                value += 1;
            }
        }
        chunk += 1;
    }
    sum
}
