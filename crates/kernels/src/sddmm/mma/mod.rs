//! SDDMM on tensor cores: compute as dense, keep what C has.
//!
//! ```text
//!              B  N×K  ┌──────────┐         A block owns BM×BN elements of A·Bᵀ and goes along K, 128 bytes of
//!                      │ BN rows  │         each row at a time. Three stages of shared memory hold BM rows of A and BN
//!                      └──────────┘         rows of B, filled by asynchronous copies two steps ahead. Its warps
//!   A  M×K ┌───────┐  ┌────────────┐        multiply 8·RT rows by 32 columns each.
//!          │ BM    │  │ x  x   x   │        At the end a lane looks up, for each of its elements, whether C has it:
//!          │ rows  │  │   x  x    x│        a bit of a [`RowMask`], which also says where the result goes.
//!          └───────┘  └────────────┘        A tile that C has nothing of is left at once.
//!                       D  M×N
//! ```
//! It pays where C is not too sparse: a row of B comes once for BM rows, where [`NonzeroSplit`](super::NonzeroSplit) loads it for
//! each nonzero.
mod operand;
mod stage;

use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, Real, WARP};

pub use operand::TileOperand;
use stage::{Source, Stage};

use super::{Operands, Scheme, Tile};
use crate::common::strided;
use crate::{Bounds, DeviceValue, IndexType, Kernel, RowMask};

/// Columns of a warp's part: two products of 16, and one [`RowMask`].
const COLUMNS: u32 = RowMask::COLUMNS;
/// Products of a warp along the columns.
const NT: usize = COLUMNS as usize / 16;
/// Stages of shared memory.
const STAGES: u32 = 3;

/// SDDMM by tiles, with operands `O`: a block of `WM`×`WN` warps, each with 8·`RT` rows and 32 columns.
#[derive(Debug)]
pub struct MmaTiles<O, const RT: usize, const WM: u32, const WN: u32>(PhantomData<O>);

/// What the entry points of [`MmaTiles`] take. The grid is tiles of rows, tiles of columns, splits and batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TileArgs<T> {
    /// C's pattern: [`RowMask`]s.
    pub masks: GlobalPtr<u32>,
    /// What is multiplied, and where results go. Rows of A and B are 16-byte aligned, and whole vectors of 16 bytes. Items are the
    /// rows of A and C.
    pub operands: Operands<T>,
    /// Rows of B, columns of C.
    pub cols: u32,
}

impl<O: TileOperand, const RT: usize, const WM: u32, const WN: u32> Kernel for MmaTiles<O, RT, WM, WN> {
    type Args = TileArgs<O::Value>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(RT >= 1 && RT <= 8, "a warp's accumulators fit its registers");
        assert!(Self::THREADS <= 1024, "a block has at most 1024 threads");
        Tile {
            value: O::Value::TYPE,
            index: IndexType::U32,
            vector: O::VECTOR,
            block_items: Self::BM,
            scheme: Scheme::MmaTile { columns: Self::BN, arithmetic: O::ARITHMETIC },
        }
    };
    const THREADS: u32 = WM * WN * WARP;
    const SHARED_BYTES: u32 = STAGES * Self::STAGE_BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: Self::BLOCKS };
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TileArgs<O::Value>) {
        let args = TileArgs { operands: args.operands.rebased_for_z(gpu.block_idx_z()), ..args };
        let row = gpu.block_idx_x() * Self::BM;
        let column = gpu.block_idx_y() * Self::BN;
        // SAFETY: the arguments describe live memory; all threads are here.
        unsafe {
            if !Self::has_any(gpu, &args, row, column) {
                return;
            }
            let warp = gpu.thread_idx_x() / WARP;
            let (m, n) = (warp % WM, warp / WM);
            let accumulators = Self::multiply_all(gpu, &args, [row, column], [m, n]);
            let at = [row + m * RT as u32 * 8, column + n * COLUMNS];
            Self::store(gpu, &args, at, &accumulators);
        }
    }
}

/// A warp's accumulators: of 8 rows and 16 columns each, transposed as [`Gpu::mma_tf32`] has them.
type Accumulators<const RT: usize> = [[[f32; 4]; NT]; RT];

impl<O: TileOperand, const RT: usize, const WM: u32, const WN: u32> MmaTiles<O, RT, WM, WN> {
    /// Rows of a block.
    const BM: u32 = WM * RT as u32 * 8;
    /// Columns of a block.
    const BN: u32 = WN * COLUMNS;
    /// Blocks that share a multiprocessor: with 384 threads each has 168 registers, and stages take 227 KiB at most.
    const BLOCKS: u32 = if Self::THREADS < 384 { 384 / Self::THREADS } else { 1 };
    const STAGE_BYTES: u32 = (Self::BM + Self::BN) * Stage::ROW;

    /// Whether C has an element in the block's tile.
    ///
    /// # Safety
    /// The masks are C's; all threads are here.
    #[inline(always)]
    unsafe fn has_any<G: Gpu>(gpu: G, args: &TileArgs<O::Value>, row: u32, column: u32) -> bool {
        let chunks = RowMask::chunks(args.cols);
        let mut any = false;
        strided(gpu.thread_idx_x(), Self::BM * WN, Self::THREADS, |i| {
            let (row, chunk) = (row + i % Self::BM, column / COLUMNS + i / Self::BM);
            if row < args.operands.items && chunk < chunks {
                let at = RowMask::index(row, chunk, chunks) * RowMask::WORDS;
                // SAFETY: each row of C has a record for each chunk.
                let [mask, _]: [u32; 2] = unsafe { gpu.load_readonly(args.masks.add(at)) };
                any |= mask != 0;
            }
        });
        gpu.sync_threads_or(any)
    }

    /// Multiplies the rows of the block along its K.
    ///
    /// # Safety
    /// The arguments describe live memory; all threads are here.
    #[inline(always)]
    unsafe fn multiply_all<G: Gpu>(
        gpu: G,
        args: &TileArgs<O::Value>,
        [row, column]: [u32; 2],
        [m, n]: [u32; 2],
    ) -> Accumulators<RT> {
        let Operands { a, b, items, k, a_stride_bytes, b_stride_bytes, .. } = args.operands;
        let of_a = Source { rows: a, first: row, end: items, stride_bytes: a_stride_bytes };
        let of_b = Source { rows: b, first: column, end: args.cols, stride_bytes: b_stride_bytes };
        let steps = k.div_ceil(O::STEP);
        let stage = |step: u32| Stage::at(step % STAGES * Self::STAGE_BYTES);
        let fill = |step: u32| {
            if step < steps {
                // SAFETY: nobody reads the stage: it was read before the last barrier, or never.
                unsafe {
                    let to = stage(step);
                    to.fill::<G, O, { WM }, { WN }>(gpu, &of_a, Self::BM, k, step);
                    to.after(Self::BM).fill::<G, O, { WM }, { WN }>(gpu, &of_b, Self::BN, k, step);
                }
            }
            gpu.copy_async_commit();
        };
        let mut accumulators = [[[0.0; 4]; NT]; RT];
        for step in 0..STAGES - 1 {
            fill(step);
        }
        for step in 0..steps {
            gpu.copy_async_wait::<{ STAGES - 2 }>();
            gpu.sync_threads();
            fill(step + STAGES - 1);
            let a = stage(step).after(m * RT as u32 * 8);
            let b = stage(step).after(Self::BM + n * COLUMNS);
            for half in 0..2 {
                // SAFETY: the stage is filled, and its rows are the block's.
                unsafe {
                    let mut x = [[O::Word::default(); 4]; RT];
                    for (r, x) in x.iter_mut().enumerate() {
                        *x = a.load(gpu, r as u32 * 8, half);
                    }
                    let mut w = [[[O::Word::default(); 4]; 2]; NT];
                    for (i, w) in w.as_flattened_mut().iter_mut().enumerate() {
                        *w = b.load(gpu, i as u32 * 8, half);
                    }
                    O::multiply(gpu, &x, &w, &mut accumulators);
                }
            }
        }
        gpu.copy_async_wait::<0>();
        accumulators
    }

    /// Writes those of a warp's accumulators that C has. What is not finite comes last, so that its loop is there once.
    ///
    /// # Safety
    /// The masks are C's, and D has its nonzeros; the part from row and column `at` is this warp's alone.
    #[inline(always)]
    unsafe fn store<G: Gpu>(
        gpu: G,
        args: &TileArgs<O::Value>,
        at: [u32; 2],
        accumulators: &Accumulators<RT>,
    ) {
        let part = LaneElements {
            row: at[0] + 2 * (gpu.lane_id() % 4),
            chunk: at[1] / COLUMNS,
            bit: gpu.lane_id() / 4,
        };
        if part.chunk >= RowMask::chunks(args.cols) {
            return;
        }
        // A bit for each sum.
        let mut non_finite: u64 = 0;
        // SAFETY: the part is C's, and its elements are this lane's alone.
        unsafe {
            let mut records = [[RowMask { mask: 0, first: 0 }; 2]; RT];
            for (r, records) in records.iter_mut().enumerate() {
                for (odd, record) in records.iter_mut().enumerate() {
                    *record = part.record(gpu, args, r as u32, odd as u32);
                }
            }
            for r in 0..RT {
                for odd in 0..2 {
                    let record = records[r][odd];
                    for i in 0..2 * NT {
                        let sum = accumulators[r][i / 2][odd + i % 2 * 2];
                        let wanted = part.has(&record, i as u32);
                        let whole = !O::TRUNCATES || sum.is_finite();
                        if wanted && whole {
                            args.operands.store(gpu, part.index(&record, i as u32), 0, sum);
                        }
                        non_finite |= u64::from(wanted && !whole) << (r * 8 + odd * 4 + i);
                    }
                }
            }
            while non_finite != 0 {
                let bit = non_finite.trailing_zeros();
                non_finite &= non_finite - 1;
                let (r, odd, i) = (bit / 8, bit / 4 % 2, bit % 4);
                let record = part.record(gpu, args, r, odd);
                let place = [part.row + r * 8 + odd, part.chunk * COLUMNS + part.column(i)];
                let sum = fallback(gpu, &args.operands, place);
                args.operands.store(gpu, part.index(&record, i), 0, sum);
            }
        }
    }
}

/// A lane's part of a warp's accumulators: of each 8 rows two neighbours, of each 8 columns one.
struct LaneElements {
    /// The first of its rows.
    row: u32,
    /// The chunk of the warp's columns, of the rows' chunks.
    chunk: u32,
    /// Its column of each 8.
    bit: u32,
}

impl LaneElements {
    /// The record of its row `odd` of the `r`-th 8 rows: with nothing where C has no such row.
    ///
    /// # Safety
    /// The masks are C's, and have the chunk.
    #[inline(always)]
    unsafe fn record<G: Gpu, T>(&self, gpu: G, args: &TileArgs<T>, r: u32, odd: u32) -> RowMask {
        let row = self.row + r * 8 + odd;
        if row >= args.operands.items {
            return RowMask { mask: 0, first: 0 };
        }
        let at = RowMask::index(row, self.chunk, RowMask::chunks(args.cols)) * RowMask::WORDS;
        // SAFETY: each row of C has a record for each chunk.
        let [mask, first] = unsafe { gpu.load_readonly(args.masks.add(at)) };
        RowMask { mask, first }
    }

    /// Its column of the `i`-th 8, from the chunk's first on.
    #[inline(always)]
    fn column(&self, i: u32) -> u32 {
        i * 8 + self.bit
    }

    /// Whether C has an element at that column.
    #[inline(always)]
    fn has(&self, record: &RowMask, i: u32) -> bool {
        record.mask >> self.column(i) & 1 != 0
    }

    /// Which nonzero of C that is, if it has one there.
    #[inline(always)]
    fn index(&self, record: &RowMask, i: u32) -> u32 {
        record.first + (record.mask & ((1 << self.column(i)) - 1)).count_ones()
    }
}

/// The product of a row of A and a row of B by fused multiply-adds, which IEEE 754 governs: for accumulators that are not finite.
/// Parts of an infinite number are no numbers, so that tensor cores would not give what the whole does.
///
/// # Safety
/// The rows are live.
#[inline(always)]
unsafe fn fallback<G: Gpu, T: Real>(gpu: G, operands: &Operands<T>, [row, column]: [u32; 2]) -> f32 {
    let a = operands.a.add_rows(row, operands.a_stride_bytes);
    let b = operands.b.add_rows(column, operands.b_stride_bytes);
    let mut sum = 0.0;
    for k in 0..operands.k as usize {
        // SAFETY: both rows have K elements.
        let ([a], [b]) =
            unsafe { (gpu.load_readonly::<T, 1>(a.add(k)), gpu.load_readonly::<T, 1>(b.add(k))) };
        sum = gpu.fma(a.to_f32(gpu), b.to_f32(gpu), sum);
    }
    sum
}
