//! The kernel: producer warps, consumer warps, and what passes between them.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr, WARP};

use super::operand::{Consumer, Stage, TileOperand};
use super::pipeline::Stages;
use super::reduction::add_slices;
use super::rows::{Rows, StageFilling};
use super::source::TileSource;
use super::value::TileValue;
use super::{TileArgs, fallback};
use crate::common::are_finite;
use crate::spmm::{Scheme, Tile};
use crate::{Bounds, DeviceValue, IndexType, Kernel};

/// SpMM by tiles of operands `O`, which go through the [`Stages`] `S`. For each chunk of a step there are `WM` consumer warps
/// along the rows and `WN` along the columns; each owns `RT` 8-row and `NT` 16-column vectors of C.
#[derive(Debug)]
pub struct MmaTiles<O, S, const RT: usize, const NT: usize, const WM: u32, const WN: u32>(
    PhantomData<(O, S)>,
);

impl<O: TileOperand, S: Stages, const RT: usize, const NT: usize, const WM: u32, const WN: u32> Kernel
    for MmaTiles<O, S, RT, NT, WM, WN>
{
    type Args = TileArgs<O::Value>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(
            Self::STAGE_BYTES.is_multiple_of(Rows::<O::Value, Self>::ROW),
            "rows begin at multiples of their bytes"
        );
        assert!(NT.is_multiple_of(2), "the swizzle of B works on 32 columns");
        assert!(Self::THREADS <= 1024, "a block has at most 1024 threads");
        let copies = Self::STEP * Self::BN / O::VECTOR;
        assert!(copies.is_multiple_of(S::WARPS * WARP), "producers share the copies of B evenly");
        assert!(Self::REDUCTION_BYTES <= Self::SHARED_BYTES, "the accumulators fit into the stages");
        assert!(Self::SHARED_BYTES <= 227 * 1024, "a block of sm_90 has 227 KiB");
        Tile {
            value: O::Value::TYPE,
            index: IndexType::U32,
            vector: O::VECTOR,
            block_rows: Self::BM,
            block_columns: Self::BN,
            scheme: Scheme::MmaTile { slices: S::CHUNKS, arithmetic: O::ARITHMETIC },
        }
    };
    const THREADS: u32 = (Self::CONSUMERS + S::GROUPS * S::WARPS) * WARP;
    const SHARED_BYTES: u32 = S::STAGES * Self::STAGE_BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 1 };
    const LAUNCHES_DEPENDENTS: bool = true;
    const EARLY_PROLOGUE: bool = true;
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TileArgs<O::Value>) {
        let batch = gpu.block_idx_z();
        let args = args.of_product(batch);
        let warp = gpu.thread_idx_x() / WARP;
        let row = gpu.block_idx_x() * Self::BM;
        let column = gpu.block_idx_y() * Self::BN;
        let mut accumulators = [[[0.0; 4]; NT]; RT];
        // SAFETY: the arguments describe the matrices. Stages are shared as the pipeline says, and free after it; each warp
        // stores its own part of C, which lies in it where row and column do.
        unsafe {
            if warp >= Self::CONSUMERS {
                Self::produce(gpu, &args, row, column);
            } else {
                gpu.grid_dependency_wait();
                let at = Consumer::of::<WM, WN>(warp);
                O::consume::<G, Self, RT, NT>(gpu, args.cols, at, &mut accumulators);
            }
            add_slices::<G, S>(gpu, accumulators.as_flattened_mut(), warp, Self::CONSUMERS);
            let stores = warp < WM * WN;
            if gpu.sync_threads_or(stores && !are_finite(accumulators.as_flattened().as_flattened())) {
                fallback::fallback(gpu, &args, batch, [row, column], [Self::BM, Self::BN]);
            } else if stores {
                let at = Consumer::of::<WM, WN>(warp);
                let row = row + at.m * RT as u32 * 8;
                let column = column + at.n * NT as u32 * 16;
                O::store(gpu, &args, batch, [row, column], &accumulators);
            }
        }
    }
}

impl<O: TileOperand, S: Stages, const RT: usize, const NT: usize, const WM: u32, const WN: u32> StageFilling
    for MmaTiles<O, S, RT, NT, WM, WN>
{
    const ROWS: u32 = Self::BM;
    const UNIT_ROWS: u32 = <Self as StageFilling>::ROWS;
    const TILES: u32 = S::CHUNKS;
    const WARPS: u32 = S::WARPS;
    const COLUMNS_PER_PREFETCH: u32 = 2;
    // A group by itself has no other's time for what comes late, and with wide tiles registers for more.
    const AHEAD: usize = if O::LOADS_TWO_AHEAD && S::GROUPS == 1 && Self::BN >= 64 { 2 } else { 1 };
    const TILE_BY_TILE: bool = false;
}

impl<O: TileOperand, S: Stages, const RT: usize, const NT: usize, const WM: u32, const WN: u32> Stage
    for MmaTiles<O, S, RT, NT, WM, WN>
{
    type Stages = S;
    const CHUNK: u32 = O::Value::COLUMNS;
    const STAGE_THREADS: u32 = (Self::CONSUMERS + S::WARPS) * WARP;
    const B_ROW: u32 = Self::BN + O::B_PADDING;
    const A_BYTES: u32 = Rows::<O::Value, Self>::BYTES;
    const BYTES: u32 = Self::A_BYTES + Self::STEP * <Self as Stage>::B_ROW * size_of::<O::Value>() as u32;
}

/// A producer lane's copies of B: what they start from.
struct CopyB<T> {
    /// B, at the lane's first row of the next step to fill and its columns.
    b: GlobalPtr<T>,
    /// The lane's first row of B, in a step, and its first column.
    k: u32,
    column: u32,
    /// Rows of B that are left; 0 for columns outside.
    rows: u32,
}

impl<O: TileOperand, S: Stages, const RT: usize, const NT: usize, const WM: u32, const WN: u32>
    MmaTiles<O, S, RT, NT, WM, WN>
{
    /// Rows and columns of C that a block computes.
    const BM: u32 = WM * RT as u32 * 8;
    const BN: u32 = WN * NT as u32 * 16;
    /// Columns of A, and rows of B, of a step.
    const STEP: u32 = S::CHUNKS * O::Value::COLUMNS;
    /// Consumer warps.
    const CONSUMERS: u32 = WM * WN * S::CHUNKS;
    const STAGE_BYTES: u32 = <Self as Stage>::BYTES;
    /// Bytes that the consumers' accumulators take when slices of K are added.
    const REDUCTION_BYTES: u32 = if S::CHUNKS > 1 { Self::CONSUMERS * (RT * NT) as u32 * 512 } else { 0 };
    /// Whether the first clearing of each stage comes before all else. The later ones are then in a branch, and where a lane has
    /// two vectors under way there, ptxas lets them land first: tiles of 64×128 then took a quarter more.
    const CLEARS_EARLY: bool = <Self as StageFilling>::AHEAD == 1;
    /// Rows of B that the producers copy at once.
    const COPY_ROWS: u32 = S::WARPS * WARP * O::VECTOR / Self::BN;

    /// Fills the group's stages, one after the other.
    ///
    /// # Safety
    /// The arguments describe live memory; all of the producer warp's group is here.
    #[inline(always)]
    unsafe fn produce<G: Gpu>(gpu: G, args: &TileArgs<O::Value>, row: u32, column: u32) {
        let thread = gpu.thread_idx_x() - Self::CONSUMERS * WARP;
        let (group, thread) = (thread / (S::WARPS * WARP), thread % (S::WARPS * WARP));
        let own_column = thread % (Self::BN / O::VECTOR) * O::VECTOR;
        let k = thread / (Self::BN / O::VECTOR);
        let first = group * Self::STEP;
        let mut source = CopyB {
            b: args.b.add_rows(first + k, args.b_stride_bytes).add((column + own_column) as usize),
            k,
            column: own_column,
            rows: if column + own_column < args.n { args.cols.saturating_sub(first) } else { 0 },
        };
        let mut pipeline = <Self as Stage>::pipeline(args.cols).of_group(group);
        // SAFETY: records and values are read where there are some; a stage is filled while it is empty.
        unsafe {
            let mut rows = Rows::<O::Value, Self>::new(gpu, args, [group, thread / WARP], row);
            rows.look_up_next(gpu, S::GROUPS);
            if Self::CLEARS_EARLY {
                for stage in pipeline.stages() {
                    rows.clear(gpu, stage * Self::STAGE_BYTES, None);
                }
            }
            gpu.grid_dependency_wait();
            let mut loaded = rows.next(gpu);
            rows.look_up_next(gpu, S::GROUPS);
            while !pipeline.is_done() {
                pipeline.wait_empty(gpu);
                Self::fill_b(gpu, args, &source, pipeline.stage);
                if !Self::CLEARS_EARLY || !pipeline.is_first() {
                    rows.clear(gpu, pipeline.stage * Self::STAGE_BYTES, None);
                }
                rows.fill(gpu, pipeline.stage * Self::STAGE_BYTES, &loaded);
                loaded = rows.next(gpu);
                rows.look_up_next(gpu, S::GROUPS);
                source.b = source.b.add_rows(S::GROUPS * Self::STEP, args.b_stride_bytes);
                source.rows = source.rows.saturating_sub(S::GROUPS * Self::STEP);
                pipeline.started(gpu);
            }
            pipeline.drain(gpu);
        }
    }

    /// Starts copying the thread's part of B.
    ///
    /// # Safety
    /// The stage is empty.
    #[inline(always)]
    unsafe fn fill_b<G: Gpu>(gpu: G, args: &TileArgs<O::Value>, source: &CopyB<O::Value>, stage: u32) {
        let b = SharedPtr::from_offset(stage * Self::STAGE_BYTES + <Self as Stage>::A_BYTES);
        for i in 0..Self::STEP / Self::COPY_ROWS {
            let k = source.k + i * Self::COPY_ROWS;
            let from = source.b.add_rows(i * Self::COPY_ROWS, args.b_stride_bytes);
            let to = b.add(k * <Self as Stage>::B_ROW + O::b_column(k, source.column));
            // SAFETY: rows and columns inside are live; the place is this thread's in the stage.
            unsafe { O::copy(gpu, to, from, k < source.rows) };
        }
    }
}
