//! In persistent kernels: prefetching the first rows of B to L1.
//!
//! A block begins with an empty L1, and its warps with a chain of loads: the record of a row, its nonzeros, rows of B. They then
//! go along K together, so that each row of B comes from L2 when all of them wait for it. The first of these rows can come
//! while nobody has anything else to do.
use lacuna_gpu::{Gpu, Scalar, SharedPtr};

use super::Args;
use crate::Kernel;
use crate::common::strided;
use crate::spmm::Tile;

/// What comes from L2 at once, in bytes.
const SECTOR: u32 = 32;

/// Bytes of shared memory that a block of so many threads needs for it.
pub(super) const fn bytes(threads: u32) -> u32 {
    threads * size_of::<u32>() as u32
}

/// Prefetches [`ahead_rows`](Args::ahead_rows) rows of B to L1, over the block's tile of columns; all threads of the
/// block do so together. The last bytes of its shared memory belong to this.
///
/// # Safety
/// The arguments describe live memory, and rows of B and C begin at multiples of four bytes.
#[inline(always)]
pub(super) unsafe fn prefetch_l1<G: Gpu, T: Scalar, I, K: Kernel<Args = Args<T, I>, Tile = Tile>>(
    gpu: G,
    args: &Args<T, I>,
) {
    let value = size_of::<T>() as u32;
    let sectors = (K::TILE.block_columns * value).div_ceil(SECTOR);
    let scratch = SharedPtr::from_offset(K::SHARED_BYTES - bytes(K::THREADS)).add(gpu.thread_idx_x());
    let b = args.b.add((u64::from(gpu.block_idx_z()) * args.b_batch) as usize);
    let first = gpu.block_idx_x() * K::TILE.block_columns;
    strided(gpu.thread_idx_x(), args.ahead_rows * sectors, K::THREADS, |at| {
        let column = first + at % sectors * (SECTOR / value);
        if column < args.n {
            let from = b.add_rows(at / sectors, args.b_stride_bytes).add(column as usize);
            // SAFETY: the row is one of B's, and has this column and those of its four bytes.
            unsafe { gpu.prefetch_l1(scratch, from) };
        }
    });
}
