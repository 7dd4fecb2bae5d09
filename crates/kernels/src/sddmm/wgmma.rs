//! SDDMM by warpgroups (wgmma of sm_90a), for values of 16 bits: compute as dense, keep what C has.
//!
//! ```text
//!              B  N×K  ┌──────────┐        A thread block takes tiles of D one after another. It goes along K, 64
//!                      │ 128 rows │        columns a step: the last warps fill a stage of shared memory each with
//!                      └──────────┘        rows of A and B, in core matrices, and run ahead into the next tile.
//!   A  M×K ┌───────┐  ┌────────────┐       Two warpgroups multiply 64 rows each. Then a warp writes its 16 rows of
//!          │ 64    │  │ x  x   x   │       sums to shared memory, and takes from there what C has: 16 lanes a row, a
//!          ├───────┤  ├────────────┤       nonzero each. So the end of a tile costs by its nonzeros. A lane that
//!          │ 64    │  │   x  x    x│       looked up each of its sums in a bitmask, as in MmaTiles, would cost by its
//!          └───────┘  └────────────┘       elements. Tiles that C has nothing of are multiplied, too.
//! ```
use core::marker::PhantomData;

use lacuna_gpu::{CoreMatrices, FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::{Operands, Scheme, Tile};
use crate::common::strided;
use crate::{Arithmetic, Bounds, DeviceIndex, HalfValue, Kernel, RowMask};

/// SDDMM by tiles of `GROUPS` warpgroups, 64 rows each, and 2·`L` columns.
#[derive(Debug)]
pub struct WgmmaTiles<T, I, const L: usize, const GROUPS: u32>(PhantomData<(T, I)>);

/// What the entry points of [`WgmmaTiles`] take. The grid's x is blocks, of any number, and its z splits and
/// batch.
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

/// Threads of a warpgroup, its rows, and those of its warps.
const WARPGROUP: u32 = 4 * WARP;
const GROUP_ROWS: u32 = 64;
const WARP_ROWS: u32 = 16;
/// Columns of A and B of a step, and pieces of a row that has them: 16 bytes, a row of a core matrix.
const STEP: u32 = 64;
const PIECES: u32 = 8;
const PIECE: u32 = 16;
/// Stages of shared memory, each with a warp that fills it.
const STAGES: u32 = 4;
/// Lanes that take the nonzeros of a row, and pairs of rows of a warp.
const LANES: u32 = 16;
const PAIRS: usize = WARP_ROWS as usize / 2;

/// What a thread works on.
struct Work<T, I, G> {
    gpu: G,
    args: WgmmaTileArgs<T, I>,
    /// Tiles of D along its rows, and all.
    row_tiles: u32,
    tiles: u32,
    /// Steps along K.
    steps: u32,
}

impl<T: HalfValue, I: DeviceIndex, const L: usize, const GROUPS: u32> Kernel for WgmmaTiles<T, I, L, GROUPS> {
    type Args = WgmmaTileArgs<T, I>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(Self::COLUMNS <= 256 && Self::COLUMNS.is_multiple_of(RowMask::COLUMNS), "as wgmma has");
        assert!(Self::SHARED_BYTES <= 227 * 1024, "a block of sm_90 has 227 KiB");
        Tile {
            value: T::TYPE,
            index: I::TYPE,
            vector: 8,
            block_items: Self::ROWS,
            scheme: Scheme::WgmmaTile { columns: Self::COLUMNS, arithmetic: Arithmetic::Half },
        }
    };
    const THREADS: u32 = GROUPS * WARPGROUP + STAGES * WARP;
    const SHARED_BYTES: u32 = Self::SUMS + Self::ROWS * Self::PITCH * 4;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 1 };
    const MIN_SM: u32 = 90;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let args = WgmmaTileArgs { operands: args.operands.rebased_for_z(gpu.block_idx_z()), ..args };
        let row_tiles = args.operands.items.div_ceil(Self::ROWS);
        let tiles = row_tiles * args.cols.div_ceil(Self::COLUMNS);
        let work = Work { gpu, args, row_tiles, tiles, steps: args.operands.k.div_ceil(STEP) };
        // By way of a shuffle the compiler sees that a warp has one trade.
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        // SAFETY: the arguments describe live memory; the last warps are the producers.
        unsafe {
            if warp >= 4 * GROUPS {
                Self::produce(&work, warp - 4 * GROUPS);
            } else {
                Self::consume(&work, warp);
            }
        }
    }
}

impl<T: HalfValue, I: DeviceIndex, const L: usize, const GROUPS: u32> WgmmaTiles<T, I, L, GROUPS> {
    /// Rows of a tile.
    const ROWS: u32 = GROUPS * GROUP_ROWS;
    /// Columns of a tile.
    const COLUMNS: u32 = 2 * L as u32;
    /// Bytes from a piece of all rows to the next piece. 16 more keep copies of a row's pieces on different banks.
    const A_LEADING: u32 = Self::ROWS * PIECE + PIECE;
    const B_LEADING: u32 = Self::COLUMNS * PIECE + PIECE;
    const STAGE_BYTES: u32 = PIECES * (Self::A_LEADING + Self::B_LEADING);
    /// Where warps put sums down, and sums from one row to the next: eight more keep rows that are written together on different banks.
    const SUMS: u32 = STAGES * Self::STAGE_BYTES;
    const PITCH: u32 = Self::COLUMNS + 8;
    /// Barriers: of an empty stage, and of one that is full for a warpgroup.
    const EMPTY: u32 = 1;
    const FULL: u32 = Self::EMPTY + STAGES;

    /// The first row and column of a tile.
    #[inline(always)]
    fn place<G>(work: &Work<T, I, G>, tile: u32) -> [u32; 2] {
        [tile % work.row_tiles * Self::ROWS, tile / work.row_tiles * Self::COLUMNS]
    }

    /// Fills this warp's stage, for every step that is the stage's.
    ///
    /// # Safety
    /// The whole warp is here; the operands are live.
    #[inline(always)]
    unsafe fn produce<G: Gpu>(work: &Work<T, I, G>, stage: u32) {
        let gpu = work.gpu;
        let Operands { a, b, items, k, a_stride_bytes, b_stride_bytes, .. } = work.args.operands;
        let (mut tile, mut step, mut is_first) = (gpu.block_idx_x(), stage, true);
        loop {
            while step >= work.steps && tile < work.tiles {
                (tile, step) = (tile + gpu.grid_dim_x(), step - work.steps);
            }
            if tile >= work.tiles {
                return;
            }
            if !is_first {
                gpu.barrier_sync(Self::EMPTY + stage, GROUPS * WARPGROUP + WARP);
            }
            let [row, column] = Self::place(work, tile);
            let a = Rows { matrix: a, first: row, end: items, stride_bytes: a_stride_bytes };
            let b = Rows { matrix: b, first: column, end: work.args.cols, stride_bytes: b_stride_bytes };
            let to = stage * Self::STAGE_BYTES;
            // SAFETY: as promised by the caller; the warpgroups have left the stage.
            unsafe {
                a.copy(gpu, to, Self::ROWS, Self::A_LEADING, step * STEP, k);
                let to = to + PIECES * Self::A_LEADING;
                b.copy(gpu, to, Self::COLUMNS, Self::B_LEADING, step * STEP, k);
            }
            gpu.copy_async_commit();
            gpu.copy_async_wait::<0>();
            gpu.fence_async_proxy();
            for group in 0..GROUPS {
                gpu.barrier_arrive(Self::FULL + stage * GROUPS + group, WARPGROUP + WARP);
            }
            (step, is_first) = (step + STAGES, false);
        }
    }

    /// Multiplies this warpgroup's rows of each tile, and writes what C has.
    ///
    /// # Safety
    /// The whole warpgroup is here; the arguments describe live memory.
    #[inline(always)]
    unsafe fn consume<G: Gpu>(work: &Work<T, I, G>, warp: u32) {
        let gpu = work.gpu;
        let mut tile = gpu.block_idx_x();
        if tile >= work.tiles {
            return;
        }
        let stride = gpu.grid_dim_x();
        let mut left = (work.tiles - tile).div_ceil(stride) * work.steps;
        let mut stage = 0;
        // SAFETY: as promised by the caller; a stage is read while it is full.
        unsafe {
            // What says where nonzeros are comes two tiles ahead, and their columns one.
            let mut own = Nonzeros::of(work, Self::ends(work, warp, tile), Self::place(work, tile)[1]);
            let mut ends = Self::ends(work, warp, tile + stride);
            while tile < work.tiles {
                let next = Nonzeros::of(work, ends, Self::place(work, tile + stride)[1]);
                ends = Self::ends(work, warp, tile + 2 * stride);
                let mut sums = [0.0; L];
                for _ in 0..work.steps {
                    gpu.barrier_sync(Self::FULL + stage * GROUPS + warp / 4, WARPGROUP + WARP);
                    Self::multiply(gpu, stage, warp / 4, &mut sums);
                    if left > STAGES {
                        gpu.barrier_arrive(Self::EMPTY + stage, GROUPS * WARPGROUP + WARP);
                    }
                    (left, stage) = (left - 1, if stage + 1 == STAGES { 0 } else { stage + 1 });
                }
                Self::store(work, warp, &own, &sums);
                (own, tile) = (next, tile + stride);
            }
        }
    }

    /// The records that say where the nonzeros of a row of the warp in this tile begin and end: the first chunk's and the last one's.
    /// Lane l has row l % 16.
    ///
    /// # Safety
    /// The masks are C's.
    #[inline(always)]
    unsafe fn ends<G: Gpu>(work: &Work<T, I, G>, warp: u32, tile: u32) -> [[u32; 2]; 2] {
        let (gpu, args) = (work.gpu, &work.args);
        let [row, column] = Self::place(work, tile);
        let row = row + warp * WARP_ROWS + gpu.lane_id() % WARP_ROWS;
        if tile >= work.tiles || row >= args.operands.items {
            return [[0; 2]; 2];
        }
        let chunks = RowMask::chunks(args.cols);
        let first = column / RowMask::COLUMNS;
        let next = first + Self::COLUMNS / RowMask::COLUMNS;
        let last = if next < chunks { next } else { chunks } - 1;
        let record = |chunk: u32| args.masks.add(RowMask::index(row, chunk, chunks) * RowMask::WORDS);
        // SAFETY: each row of C has a record for each chunk, and tiles begin inside of C.
        unsafe { [gpu.load_readonly(record(first)), gpu.load_readonly(record(last))] }
    }

    /// Adds the products of a step.
    ///
    /// # Safety
    /// The stage is full; the whole warpgroup is here.
    #[inline(always)]
    unsafe fn multiply<G: Gpu>(gpu: G, stage: u32, group: u32, sums: &mut [f32; L]) {
        let a = stage * Self::STAGE_BYTES + group * GROUP_ROWS * PIECE;
        let b = stage * Self::STAGE_BYTES + PIECES * Self::A_LEADING;
        let matrices = |first: u32, leading: u32| CoreMatrices {
            first: SharedPtr::from_offset(first),
            leading,
            stride: 8 * PIECE,
        };
        gpu.warpgroup_arrive();
        for pair in 0..PIECES / 2 {
            let a = matrices(a + 2 * pair * Self::A_LEADING, Self::A_LEADING);
            let b = matrices(b + 2 * pair * Self::B_LEADING, Self::B_LEADING);
            // SAFETY: as promised by the caller.
            unsafe { T::warpgroup_mma_cores(gpu, sums, a, b) };
        }
        gpu.warpgroup_commit();
        gpu.warpgroup_wait::<0, L>(sums);
    }

    /// Writes those of a warp's sums that C has.
    ///
    /// # Safety
    /// D has these nonzeros, and they are this warp's alone.
    #[inline(always)]
    unsafe fn store<G: Gpu>(work: &Work<T, I, G>, warp: u32, own: &Nonzeros<I>, sums: &[f32; L]) {
        let (gpu, lane) = (work.gpu, work.gpu.lane_id());
        let place = |row: u32, column: u32| {
            SharedPtr::<f32>::from_offset(Self::SUMS + ((warp * WARP_ROWS + row) * Self::PITCH + column) * 4)
        };
        // All lanes have taken what the last tile left here.
        gpu.sync_warp(FULL_WARP);
        for row in 0..2 {
            for eight in 0..L / 4 {
                let to = place(lane / 4 + 8 * row as u32, 8 * eight as u32 + 2 * (lane % 4));
                let at = 4 * eight + 2 * row;
                // SAFETY: the place is this lane's alone.
                unsafe { gpu.shared_store(to, [sums[at], sums[at + 1]]) };
            }
        }
        gpu.sync_warp(FULL_WARP);
        let Operands { d, scale, partial, .. } = work.args.operands;
        let is_plain = scale.address() == 0 && partial.address() == 0;
        let mut at = lane % LANES;
        let mut columns = own.columns;
        loop {
            // SAFETY: as promised by the caller; lanes without a nonzero read the first of the row.
            unsafe {
                let next = own.columns(work, at + LANES);
                let mut taken = [0.0; PAIRS];
                for (i, taken) in taken.iter_mut().enumerate() {
                    let column = columns[i].widen() - own.column;
                    [*taken] = gpu.shared_load(place(2 * i as u32 + lane / LANES, column));
                }
                let mut is_more = false;
                for (i, &sum) in taken.iter().enumerate() {
                    let [start, end] = own.ends[i];
                    let index = start + at;
                    if index < end {
                        // Apart, so that nothing waits for a scale that is not there.
                        if is_plain {
                            gpu.store(d.add(index as usize), [T::from_f32(gpu, sum)]);
                        } else {
                            work.args.operands.store(gpu, index, 0, sum);
                        }
                    }
                    is_more |= index + LANES < end;
                }
                if !gpu.warp_any(FULL_WARP, is_more) {
                    return;
                }
                (at, columns) = (at + LANES, next);
            }
        }
    }
}

/// The nonzeros of a warp's rows in a tile: 16 lanes have those of a row of each pair of rows.
struct Nonzeros<I> {
    /// The tile's first column.
    column: u32,
    /// Where those of the row begin and end.
    ends: [[u32; 2]; PAIRS],
    /// The columns of the lane's first.
    columns: [I; PAIRS],
}

impl<I: DeviceIndex> Nonzeros<I> {
    /// Those between these records, in the tile from `column` on. Starts loading columns.
    ///
    /// # Safety
    /// The records are C's, and the whole warp is here.
    #[inline(always)]
    unsafe fn of<G: Gpu, T>(work: &Work<T, I, G>, records: [[u32; 2]; 2], column: u32) -> Self {
        let (gpu, lane) = (work.gpu, work.gpu.lane_id());
        let [[_, start], [mask, of_last]] = records;
        let end = of_last + mask.count_ones();
        let mut ends = [[0; 2]; PAIRS];
        for (i, ends) in ends.iter_mut().enumerate() {
            let of = 2 * i as u32 + lane / LANES;
            *ends = [start, end].map(|bound| gpu.warp_shuffle_idx(FULL_WARP, bound, of, WARP));
        }
        let mut own = Self { column, ends, columns: [I::narrow(column); PAIRS] };
        // SAFETY: as promised by the caller.
        own.columns = unsafe { own.columns(work, lane % LANES) };
        own
    }

    /// The columns of nonzero `at` of each row; the tile's first column where there are fewer.
    ///
    /// # Safety
    /// As for [`of`](Self::of).
    #[inline(always)]
    unsafe fn columns<G: Gpu, T>(&self, work: &Work<T, I, G>, at: u32) -> [I; PAIRS] {
        let mut columns = [I::narrow(self.column); PAIRS];
        for (i, column) in columns.iter_mut().enumerate() {
            let [start, end] = self.ends[i];
            if start + at < end {
                let from = work.args.columns.add((start + at) as usize);
                // SAFETY: each nonzero has a column.
                [*column] = unsafe { work.gpu.load_readonly(from) };
            }
        }
        columns
    }
}

/// Rows of a dense matrix that a block works on.
struct Rows<T> {
    matrix: GlobalPtr<T>,
    /// The tile's first row.
    first: u32,
    /// Rows that the matrix has.
    end: u32,
    stride_bytes: u32,
}

impl<T: HalfValue> Rows<T> {
    /// Starts copying 64 columns, from `column` on, of `rows` rows into core matrices, by a warp. Zeros stand for what is not there.
    ///
    /// # Safety
    /// The rows are live, of `k` elements; nobody uses the place.
    #[inline(always)]
    unsafe fn copy<G: Gpu>(&self, gpu: G, to: u32, rows: u32, leading: u32, column: u32, k: u32) {
        let (piece, first) = (gpu.lane_id() % PIECES, gpu.lane_id() / PIECES);
        let column = column + piece * 8;
        let is_inside = column < k;
        let from = self.matrix.add_rows(self.first + first, self.stride_bytes);
        let from = from.add(if is_inside { column as usize } else { 0 });
        let mut from = GlobalPtr::<u16>::from_address(from.address());
        let to = to + piece * leading;
        strided(first, rows, WARP / PIECES, |row| {
            let is_there = is_inside && self.first + row < self.end;
            // SAFETY: as promised by the caller; what is not there is not read.
            unsafe {
                gpu.copy_async_or_zero::<u16, 8>(SharedPtr::from_offset(to + row * PIECE), from, is_there)
            };
            from = from.add_bytes(u64::from(WARP / PIECES) * u64::from(self.stride_bytes));
        });
    }
}
