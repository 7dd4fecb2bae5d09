//! 16-bit values, as they are: C += A·B, by warpgroups with 64 rows each. Both lie in swizzled panels of shared memory.
//!
//! A stage has A by units of 64 rows: all chunks of the first, then those of the second. All warpgroups read the same B.
use core::marker::PhantomData;

use lacuna_gpu::{Gpu, SharedPtr};

use super::{CHUNK_BYTES, ROWS, WARP_PART, WarpgroupOperand};
use crate::common::swap;
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

/// Writes consumer warp `warp`'s part of a tile, by eight elements if `WIDE`, or by four. A lane has, of 16 rows, two, eight apart, and of each 8 columns two
/// neighbours. Four lanes share a row: of each 32 columns they exchange theirs for 8 neighbours, and write 64 bytes together.
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
    let row = row + warp * WARP_PART;
    let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
    for (wide, accumulators) in accumulators.as_chunks::<16>().0.iter().enumerate() {
        let column = column + wide as u32 * 32 + 8 * t;
        for half in 0..2 {
            let pair =
                |eight: usize| [accumulators[4 * eight + 2 * half], accumulators[4 * eight + 2 * half + 1]];
            let [a, b, c, d] = exchange(gpu, [pair(0), pair(1), pair(2), pair(3)]);
            let row = row + g + half as u32 * 8;
            let [first, second] = [[a[0], a[1], b[0], b[1]], [c[0], c[1], d[0], d[1]]];
            if row >= args.rows || column >= args.n {
                continue;
            }
            // SAFETY: as promised by the caller.
            unsafe {
                if WIDE {
                    let neighbours = [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]];
                    args.output.store(gpu, row, column, batch, neighbours);
                    continue;
                }
                args.output.store(gpu, row, column, batch, first);
                if column + 4 < args.n {
                    args.output.store(gpu, row, column + 4, batch, second);
                }
            }
        }
    }
}

/// Of four lanes, each gives its pair `i` to lane `i`, and gets what the others have for it, in their order. All lanes of the
/// warp are here.
#[inline(always)]
fn exchange<G: Gpu>(gpu: G, pairs: [[f32; 2]; 4]) -> [[f32; 2]; 4] {
    // A matrix is transposed by exchanging what is not on the diagonal: in each block of two by two, then the blocks.
    let [a, b, c, d] = pairs;
    let ([a, b], [c, d]) = (swap::<G, 1>(gpu, a, b), swap::<G, 1>(gpu, c, d));
    let ([a, c], [b, d]) = (swap::<G, 2>(gpu, a, c), swap::<G, 2>(gpu, b, d));
    [a, b, c, d]
}
