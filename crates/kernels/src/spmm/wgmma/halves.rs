//! 16-bit values, as they are: C += A·B, by warpgroups with 64 rows each. Both lie in swizzled panels of shared memory.
//!
//! A stage has A by units of 64 rows: all chunks of the first, then those of the second. All warpgroups read the same B.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, Gpu, SharedPtr};

use super::{CHUNK_BYTES, ROWS, WARP_PART, WarpgroupOperand};
use crate::common::transpose_words;
use crate::spmm::epilogue::TileSums;
use crate::spmm::mma::{Stages, TileArgs, TileValue};
use crate::{Arithmetic, HalfValue};

/// Columns of A in a chunk.
const CHUNK: u32 = 64;
/// Columns of A that a product takes.
const DEPTH: u32 = 16;
/// Bytes from one panel of B to the next, where there are two: in steps of two chunks.
const PANEL_BYTES: u32 = 2 * CHUNK * 128;

/// Tiles of 64·`M` rows and 2·`L` columns, by `M` consumer warpgroups. With `FOURS`, rows of B and C may begin at multiples of 8 bytes: maps of 14²
/// pixels have no others. That takes registers and code, so there are kernels for it.
#[derive(Debug)]
pub struct Halves<T, const L: usize, const M: u32, const FOURS: bool>(PhantomData<T>);

impl<T: HalfValue + TileValue, const L: usize, const M: u32, const FOURS: bool> WarpgroupOperand<L>
    for Halves<T, L, M, FOURS>
{
    type Value = T;
    const ARITHMETIC: Arithmetic = Arithmetic::Half;
    const ROWS: u32 = M * ROWS;
    const COLUMNS: u32 = 2 * L as u32;
    const VECTOR: u32 = if FOURS { 4 } else { 8 };
    const WARPGROUPS: u32 = M;
    const WARPS_ALONG_ROWS: bool = true;
    const CHUNK_BYTES: u32 = M * CHUNK_BYTES;
    const PANEL_ROW: u32 = if L < 32 { 64 } else { 128 };
    const OVERLAPS: bool = L < 32;

    #[inline(always)]
    fn swizzle(row: u32) -> u32 {
        if Self::PANEL_ROW == 128 { row % 8 * 16 } else { row / 2 % 4 * 16 }
    }

    #[inline(always)]
    unsafe fn multiply<G: Gpu, S: Stages>(gpu: G, [a, b]: [u32; 2], part: u32, accumulators: &mut [f32; L]) {
        const {
            assert!(
                L < 64 || S::CHUNKS == 2,
                "where B has two panels, they are apart by what a step of two chunks takes"
            );
        }
        let a = a + part * S::CHUNKS * CHUNK_BYTES;
        gpu.warpgroup_arrive();
        for step in 0..S::CHUNKS * CHUNK / DEPTH {
            let a = a + step / (CHUNK / DEPTH) * CHUNK_BYTES + step % (CHUNK / DEPTH) * 32;
            let b = b + step * DEPTH * Self::PANEL_ROW;
            let [a, b] = [a, b].map(SharedPtr::from_offset);
            // SAFETY: rows of A and B lie in the stage.
            unsafe { T::warpgroup_mma::<G, L, PANEL_BYTES>(gpu, accumulators, a, b) };
        }
        gpu.warpgroup_commit();
    }

    #[inline(always)]
    unsafe fn store<G: Gpu>(
        gpu: G,
        args: &TileArgs<T>,
        batch: u32,
        at: [u32; 2],
        warp: u32,
        accumulators: &[f32; L],
    ) {
        let c = args.output.product(batch).address() as u32;
        // SAFETY: as promised by the caller.
        unsafe {
            if !FOURS || (c | args.output.c_stride_bytes | (2 * args.n)).is_multiple_of(16) {
                store_by::<G, T, L, true>(gpu, args, batch, at, warp, accumulators);
            } else {
                store_by::<G, T, L, false>(gpu, args, batch, at, warp, accumulators);
            }
        }
    }
}

/// Writes consumer warp `warp`'s part of a tile, by eight elements if `WIDE`, or by four. Of each 32 columns the four lanes of a row exchange theirs for 8
/// neighbours, and write 64 bytes together. Sums are rounded first, so that half as many words are exchanged.
///
/// # Safety
/// As for [`store`](WarpgroupOperand::store); rows of C begin at multiples of as many elements, and have multiples of them.
#[inline(always)]
unsafe fn store_by<G: Gpu, T: HalfValue + TileValue, const L: usize, const WIDE: bool>(
    gpu: G,
    args: &TileArgs<T>,
    batch: u32,
    [row, column]: [u32; 2],
    warp: u32,
    accumulators: &[f32; L],
) {
    let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
    let row = row + warp * WARP_PART + g;
    let (product, size) = (args.output.product(batch), [args.rows, args.n]);
    let mut sums = *accumulators;
    // SAFETY: as promised by the caller.
    unsafe { args.output.finish_tile(gpu, product, size, [row, column + 2 * t], &mut sums) };
    let column = column + 8 * t;
    let c = product.add_rows(row, args.output.c_stride_bytes).add(column as usize);
    let c = GlobalMut::<u32>::from_address(c.address());
    let c = [c, c.add_rows(TileSums::ROWS_APART, args.output.c_stride_bytes)];
    for (wide, sums) in sums.as_chunks::<16>().0.iter().enumerate() {
        for half in 0..2 {
            let pair =
                |eight: usize| T::pack(gpu, sums[4 * eight + 2 * half], sums[4 * eight + 2 * half + 1]);
            let words = transpose_words(gpu, [pair(0), pair(1), pair(2), pair(3)]);
            let row = row + half as u32 * TileSums::ROWS_APART;
            let (column, to) = (column + wide as u32 * 32, c[half].add(wide * 16));
            // SAFETY: as promised by the caller.
            unsafe {
                if WIDE {
                    if row < args.rows && column < args.n {
                        gpu.store(to, words);
                    }
                    continue;
                }
                let [first, second, third, fourth] = words;
                if row < args.rows && column < args.n {
                    gpu.store(to, [first, second]);
                }
                if row < args.rows && column + 4 < args.n {
                    gpu.store(to.add(2), [third, fourth]);
                }
            }
        }
    }
}
