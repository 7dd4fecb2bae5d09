//! SDDMM by warpgroups (wgmma of sm_90a), for values of 16 bits: compute as dense, keep what C has.
//!
//! ```text
//!              B  N×K  ┌──────────┐        A thread block owns GROUPS·64 × 2·L elements of A·Bᵀ, and each of its
//!                      │ 2·L rows │        warpgroups 64 rows of them. It goes along K, 64 columns a step, as
//!                      └──────────┘        asynchronous copies fill core matrices of A and B two steps ahead.
//!   A  M×K ┌───────┐  ┌────────────┐       At last a warp writes its 16 rows of sums to shared memory, and takes from
//!          │ 64    │  │ x  x   x   │       there what C has: 16 lanes a row, a nonzero each. So the end of a tile
//!          ├───────┤  ├────────────┤       costs by its nonzeros. A lane that looked up each of its sums in a
//!          │ 64    │  │   x  x    x│       bitmask, as in MmaTiles, would cost by the tile's elements.
//!          └───────┘  └────────────┘       A tile that C has nothing of is left at once.
//! ```
use core::marker::PhantomData;

use lacuna_gpu::{CoreMatrices, FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::{Operands, Scheme, Tile};
use crate::{Arithmetic, Bounds, DeviceIndex, HalfValue, Kernel, RowMask};

/// SDDMM by tiles of `GROUPS` warpgroups, 64 rows each, and 2·`L` columns.
#[derive(Debug)]
pub struct WgmmaTiles<T, I, const L: usize, const GROUPS: u32>(PhantomData<(T, I)>);

/// What the entry points of [`WgmmaTiles`] take. The grid is tiles of rows, tiles of columns, splits and batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct WgmmaTileArgs<T, I> {
    /// C's pattern: [`RowMask`]s.
    pub masks: GlobalPtr<u32>,
    /// The column of each nonzero.
    pub columns: GlobalPtr<I>,
    /// What is multiplied, and where results go. Rows of A and B are 16-byte aligned, and whole vectors of 16 bytes. Items are the
    /// rows of A and C.
    pub operands: Operands<T>,
    /// Rows of B, columns of C.
    pub cols: u32,
}

/// Threads of a warpgroup, and its rows.
const WARPGROUP: u32 = 4 * WARP;
const GROUP_ROWS: u32 = 64;
/// Rows of a warp.
const WARP_ROWS: u32 = 16;
/// Columns of A and B of a step, and pieces of a row that has them: 16 bytes, a row of a core matrix.
const STEP: u32 = 64;
const PIECES: u32 = 8;
const PIECE: u32 = 16;
/// Stages of shared memory.
const STAGES: u32 = 3;
/// Lanes that take the nonzeros of a row, and pairs of rows of a warp.
const LANES: u32 = 16;
const PAIRS: usize = WARP_ROWS as usize / 2;

impl<T: HalfValue, I: DeviceIndex, const L: usize, const GROUPS: u32> Kernel for WgmmaTiles<T, I, L, GROUPS> {
    type Args = WgmmaTileArgs<T, I>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(
            2 * L <= 256 && Self::COLUMNS.is_multiple_of(RowMask::COLUMNS),
            "a product has 256 columns at most"
        );
        assert!(Self::SHARED_BYTES <= 227 * 1024, "a block of sm_90 has 227 KiB");
        Tile {
            value: T::TYPE,
            index: I::TYPE,
            vector: 8,
            block_items: Self::ROWS,
            scheme: Scheme::WgmmaTile { columns: Self::COLUMNS, arithmetic: Arithmetic::Half },
        }
    };
    const THREADS: u32 = GROUPS * WARPGROUP;
    const SHARED_BYTES: u32 = if Self::SUMS_BYTES > STAGES * Self::STAGE_BYTES {
        Self::SUMS_BYTES
    } else {
        STAGES * Self::STAGE_BYTES
    };
    const BOUNDS: Bounds = Bounds {
        max_threads: Self::THREADS,
        min_blocks: if Self::SHARED_BYTES <= 113 * 1024 { 2 } else { 1 },
    };
    const MIN_SM: u32 = 90;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let args = WgmmaTileArgs { operands: args.operands.of_blocks(gpu.block_idx_z(), 0), ..args };
        let place = [gpu.block_idx_x() * Self::ROWS, gpu.block_idx_y() * Self::COLUMNS];
        // By way of a shuffle the compiler sees that it is the same for all lanes.
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        // SAFETY: the arguments describe live memory; all threads are here.
        unsafe {
            let row = place[0] + warp * WARP_ROWS + gpu.lane_id() % WARP_ROWS;
            let nonzeros = Self::nonzeros(gpu, &args, row, place[1]);
            if !gpu.sync_threads_or(nonzeros[0] < nonzeros[1]) {
                return;
            }
            let sums = Self::multiply(gpu, &args, place, warp / 4);
            Self::store(gpu, &args, warp, nonzeros, place[1], &sums);
        }
    }
}

impl<T: HalfValue, I: DeviceIndex, const L: usize, const GROUPS: u32> WgmmaTiles<T, I, L, GROUPS> {
    /// Rows of a block.
    const ROWS: u32 = GROUPS * GROUP_ROWS;
    /// Columns of a block.
    const COLUMNS: u32 = 2 * L as u32;
    /// Bytes from a piece of all rows to the next piece. 16 more keep copies of a row's pieces on different banks.
    const A_LEADING: u32 = Self::ROWS * PIECE + PIECE;
    const B_LEADING: u32 = Self::COLUMNS * PIECE + PIECE;
    const STAGE_BYTES: u32 = PIECES * (Self::A_LEADING + Self::B_LEADING);
    /// Sums from one row to the next, where a warp puts them down: eight more keep the rows that it writes together on different banks.
    const PITCH: u32 = Self::COLUMNS + 8;
    const SUMS_BYTES: u32 = Self::ROWS * Self::PITCH * 4;

    /// Where the nonzeros of this row in the tile from `column` on begin and end.
    ///
    /// # Safety
    /// The masks are C's.
    #[inline(always)]
    unsafe fn nonzeros<G: Gpu>(gpu: G, args: &WgmmaTileArgs<T, I>, row: u32, column: u32) -> [u32; 2] {
        if row >= args.operands.items {
            return [0; 2];
        }
        let chunks = RowMask::chunks(args.cols);
        let first = column / RowMask::COLUMNS;
        let next = first + Self::COLUMNS / RowMask::COLUMNS;
        let last = if next < chunks { next } else { chunks } - 1;
        let record = |chunk: u32| args.masks.add(RowMask::index(row, chunk, chunks) * RowMask::WORDS);
        // SAFETY: each row of C has a record for each chunk, and tiles begin inside of C.
        let ([_, start], [mask, of_last]): ([u32; 2], [u32; 2]) =
            unsafe { (gpu.load_readonly(record(first)), gpu.load_readonly(record(last))) };
        [start, of_last + mask.count_ones()]
    }

    /// Multiplies 64 rows of the tile along the block's K.
    ///
    /// # Safety
    /// The arguments describe live memory; all threads are here.
    #[inline(always)]
    unsafe fn multiply<G: Gpu>(
        gpu: G,
        args: &WgmmaTileArgs<T, I>,
        [row, column]: [u32; 2],
        group: u32,
    ) -> [f32; L] {
        let Operands { a, b, items, k, a_stride_bytes, b_stride_bytes, .. } = args.operands;
        let steps = k.div_ceil(STEP);
        let fill = |step: u32| {
            if step < steps {
                let to = step % STAGES * Self::STAGE_BYTES;
                // SAFETY: nobody reads the stage: it was read before the last barrier, or never.
                unsafe {
                    let a = Rows { matrix: a, first: row, end: items, stride_bytes: a_stride_bytes };
                    a.copy::<G, GROUPS>(gpu, to, Self::ROWS, Self::A_LEADING, step * STEP, k);
                    let b = Rows { matrix: b, first: column, end: args.cols, stride_bytes: b_stride_bytes };
                    let to = to + PIECES * Self::A_LEADING;
                    b.copy::<G, GROUPS>(gpu, to, Self::COLUMNS, Self::B_LEADING, step * STEP, k);
                }
            }
            gpu.copy_async_commit();
        };
        let matrices = |first: u32, leading: u32| CoreMatrices {
            first: SharedPtr::from_offset(first),
            leading,
            stride: 8 * PIECE,
        };
        let mut sums = [0.0; L];
        for step in 0..STAGES - 1 {
            fill(step);
        }
        for step in 0..steps {
            gpu.copy_async_wait::<{ STAGES - 2 }>();
            gpu.fence_async_proxy();
            gpu.sync_threads();
            fill(step + STAGES - 1);
            let a = step % STAGES * Self::STAGE_BYTES + group * GROUP_ROWS * PIECE;
            let b = step % STAGES * Self::STAGE_BYTES + PIECES * Self::A_LEADING;
            gpu.warpgroup_arrive();
            for pair in 0..PIECES / 2 {
                let a = matrices(a + 2 * pair * Self::A_LEADING, Self::A_LEADING);
                let b = matrices(b + 2 * pair * Self::B_LEADING, Self::B_LEADING);
                // SAFETY: the stage is filled, and the whole warpgroup is here.
                unsafe { T::warpgroup_mma_cores(gpu, &mut sums, a, b) };
            }
            gpu.warpgroup_commit();
            gpu.warpgroup_wait::<0, L>(&mut sums);
        }
        gpu.copy_async_wait::<0>();
        sums
    }

    /// Writes those of a warp's sums that C has. Lane l knows where the nonzeros of row l % 16 begin and end.
    ///
    /// # Safety
    /// D has these nonzeros, and they are this warp's alone; all threads are here.
    #[inline(always)]
    unsafe fn store<G: Gpu>(
        gpu: G,
        args: &WgmmaTileArgs<T, I>,
        warp: u32,
        [start, end]: [u32; 2],
        column: u32,
        sums: &[f32; L],
    ) {
        let lane = gpu.lane_id();
        let place = |row: u32, column: u32| {
            SharedPtr::<f32>::from_offset(((warp * WARP_ROWS + row) * Self::PITCH + column) * 4)
        };
        // No stage is read any more.
        gpu.sync_threads();
        for row in 0..2 {
            for eight in 0..L / 4 {
                let to = place(lane / 4 + 8 * row as u32, 8 * eight as u32 + 2 * (lane % 4));
                let at = 4 * eight + 2 * row;
                // SAFETY: the place is this lane's alone.
                unsafe { gpu.shared_store(to, [sums[at], sums[at + 1]]) };
            }
        }
        gpu.sync_warp(FULL_WARP);
        let half = lane / LANES;
        let mut nonzeros = [[0; 2]; PAIRS];
        for i in 0..PAIRS {
            let of = 2 * i as u32 + half;
            nonzeros[i] = [start, end].map(|bound| gpu.warp_shuffle_idx(FULL_WARP, bound, of, WARP));
        }
        let z = gpu.block_idx_z();
        let mut own = lane % LANES;
        loop {
            let mut columns = [0; PAIRS];
            for i in 0..PAIRS {
                let [start, end] = nonzeros[i];
                if start + own < end {
                    // SAFETY: each nonzero has a column.
                    let [index] =
                        unsafe { gpu.load_readonly::<I, 1>(args.columns.add((start + own) as usize)) };
                    columns[i] = index.widen() - column;
                }
            }
            let mut is_more = false;
            for i in 0..PAIRS {
                let [start, end] = nonzeros[i];
                if start + own < end {
                    let from = place(2 * i as u32 + half, columns[i]);
                    // SAFETY: the warp has written its rows; the nonzero is this lane's alone.
                    unsafe {
                        let [sum] = gpu.shared_load(from);
                        args.operands.store(gpu, start + own, z, sum);
                    }
                }
                is_more |= start + own + LANES < end;
            }
            if !gpu.warp_any(FULL_WARP, is_more) {
                return;
            }
            own += LANES;
        }
    }
}

/// Rows of a dense matrix that a block works on.
struct Rows<T> {
    matrix: GlobalPtr<T>,
    /// The block's first row.
    first: u32,
    /// Rows that the matrix has.
    end: u32,
    stride_bytes: u32,
}

impl<T: HalfValue> Rows<T> {
    /// Starts copying 64 columns, from `column` on, of `rows` rows into core matrices. Zeros stand for what is not there.
    ///
    /// # Safety
    /// The rows are live, of `k` elements; nobody uses the place.
    #[inline(always)]
    unsafe fn copy<G: Gpu, const GROUPS: u32>(
        &self,
        gpu: G,
        to: u32,
        rows: u32,
        leading: u32,
        column: u32,
        k: u32,
    ) {
        let (piece, row) = (gpu.thread_idx_x() % PIECES, gpu.thread_idx_x() / PIECES);
        let at_once = GROUPS * WARPGROUP / PIECES;
        let column = column + piece * 8;
        let from = GlobalPtr::<u16>::from_address(self.matrix.address()).add(column as usize);
        for i in 0..rows / at_once {
            let row = row + i * at_once;
            let is_there = self.first + row < self.end && column < k;
            let from = from.add_rows(self.first + row, self.stride_bytes);
            let to = SharedPtr::from_offset(to + piece * leading + row * PIECE);
            // SAFETY: as promised by the caller; what is not there is not read.
            unsafe { gpu.copy_async_or_zero::<u16, 8>(to, from, is_there) };
        }
    }
}
