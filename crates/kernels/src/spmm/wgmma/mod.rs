//! SpMM on tensor cores by warpgroups (wgmma of sm_90a), which read shared memory themselves. Values have 16 bits.
//!
//! ```text
//!   K ──►  chunk                      A stage of shared memory
//!        ┌────────┐                  ┌──────────────────────────┐
//!        │ 64 × BN│  B  ──────────►  │ B in swizzled panels     │ ──►
//!        └────────┘                  ├──────────────────────────┤      read by wgmma itself
//!  ┌─────────┐ values and places     │ . 5 . . . 7 . . 2 . . .  │ ──►
//!  │ 64 × 64 │ ──────────────────►   │ . . . 1 . . . . . . 4 .  │
//!  └─────────┘ zeros, then scattered └──────────────────────────┘
//! ```
//!
//! A thread block computes 64 rows and BN columns of C. It goes along K by steps of two or four chunks of 64 columns. Producer
//! warps fill stages: A as in [`mma`](super::mma), B by asynchronous copies. They form groups that take stages in turn. The
//! consumers are one warpgroup. It starts all products of a stage, and releases the stage when they have ended. Neighbouring
//! rows of tiles begin at different steps, so that they read different rows of B ([`traversal`]).
//!
//! Where tiles are few, a cluster of two blocks shares one (cluster split-K): each block has a half of K, and the second stores
//! its accumulators into the shared memory of the first ([`cluster`]).
//!
//! A comes row by row ([`Rows`]). Where its values stay, it comes pre-packed in the order of tiles ([`prepacked`]).
//! The pipeline of stages, and the fallback for accumulators that are not finite, are those of [`mma`](super::mma).
mod cluster;
mod columns;
mod prepacked;
mod traversal;

use core::marker::PhantomData;
use core::mem;

use lacuna_gpu::{FULL_WARP, Gpu, SharedPtr, WARP};

use self::cluster::Cluster;
use self::columns::{COPY, Columns};
pub use self::prepacked::{LoadedPacks, Pack, Prepacked};
use self::traversal::Traversal;
use super::mma::{Pipeline, Rows, StageFilling, Stages, TILE_ROW, TileArgs, TileSource, fallback};
use super::{Scheme, Tile};
use crate::common::are_finite;
use crate::{Bounds, HalfValue, IndexType, Kernel};

/// Rows of A and C that one warpgroup multiplies.
const ROWS: u32 = 64;
/// Consumer warps.
const CONSUMERS: u32 = 4;
/// Columns of A in a chunk.
const CHUNK: u32 = 64;
/// Bytes of a chunk of A in a stage: a panel of 64 rows.
const CHUNK_BYTES: u32 = ROWS * TILE_ROW;
/// Products of a chunk, of 16 columns of A each.
const STEPS: u32 = CHUNK / 16;
/// Bytes from one panel of B to the next, where there are two: in steps of two chunks.
const PANEL_BYTES: u32 = 2 * CHUNK * 128;

/// SpMM by warpgroups for values of `T`, that are put where their columns are: tiles of 2·`L` columns, through the stages `S`.
///
/// - Of `S`, more chunks make the vectors of rows longer, and barriers fewer.
/// - `PART`: of a step of a row the producers load ahead what one nonzero in so many columns makes. With a larger one, fewer
///   lanes share a row, which is faster unless the row has more.
/// - `BLOCKS`: blocks that share a tile.
pub type WgmmaTiles<T, S, const L: usize, const PART: u32, const BLOCKS: u32> =
    WgmmaKernel<T, Rows<T, Scattering<S, PART>>, S, L, BLOCKS>;

/// As [`WgmmaTiles`], for values that are [packed](Pack), of which a warp loads `AHEAD` packs ahead of each step. Each group of
/// producers has a stage of its own.
pub type PrepackedTiles<T, S, const L: usize, const AHEAD: usize, const BLOCKS: u32> =
    WgmmaKernel<T, Prepacked<T, S, AHEAD>, S, L, BLOCKS>;

/// How values are scattered that lie row by row.
#[derive(Debug)]
pub struct Scattering<S, const PART: u32>(PhantomData<S>);

impl<S: Stages, const PART: u32> StageFilling for Scattering<S, PART> {
    const ROWS: u32 = ROWS;
    const TILES: u32 = S::CHUNKS;
    const WARPS: u32 = S::WARPS;
    const COLUMNS_PER_PREFETCH: u32 = PART;
    const AHEAD: usize = 1;
    const TILE_BY_TILE: bool = true;
}

/// SpMM by warpgroups, with A from `A`, through the stages `S`.
#[derive(Debug)]
pub struct WgmmaKernel<T, A, S, const L: usize, const BLOCKS: u32>(PhantomData<(T, A, S)>);

impl<T: HalfValue, A: TileSource<T>, S: Stages, const L: usize, const BLOCKS: u32> Kernel
    for WgmmaKernel<T, A, S, L, BLOCKS>
{
    type Args = TileArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(S::GROUPS > 1, "each group has the time of the others' steps");
        assert!(
            L < 64 || S::CHUNKS == 2,
            "where B has two panels, they are apart by what a step of two chunks takes"
        );
        assert!(
            Self::A_BYTES.is_multiple_of(1024) && Self::B_BYTES.is_multiple_of(1024),
            "swizzled panels begin at multiples of their pattern"
        );
        assert!(Self::THREADS <= 1024, "a block has at most 1024 threads");
        assert!(Self::SHARED_BYTES <= 227 * 1024, "a block of sm_90 has 227 KiB");
        Tile {
            value: T::TYPE,
            index: IndexType::U32,
            vector: COPY,
            block_rows: ROWS,
            block_columns: Self::BN,
            scheme: match A::COLUMNS_PER_PREFETCH {
                0 => Scheme::PrepackedTile { chunks: S::CHUNKS, ahead: A::AHEAD, blocks: BLOCKS },
                part => Scheme::WgmmaTile { chunks: S::CHUNKS, part, blocks: BLOCKS },
            },
        }
    };
    const THREADS: u32 = (CONSUMERS + S::GROUPS * S::WARPS) * WARP;
    const SHARED_BYTES: u32 = Self::PIPELINE_BYTES + Cluster::<L, BLOCKS>::BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 1 };
    const LAUNCHES_DEPENDENTS: bool = true;
    const EARLY_PROLOGUE: bool = true;
    const CLUSTER: u32 = BLOCKS;
    const MIN_SM: u32 = 90;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TileArgs<T>) {
        let batch = gpu.block_idx_z();
        let args = args.of_product(batch);
        // By way of a shuffle the compiler sees that a warp has one trade.
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        let steps = args.cols.div_ceil(S::CHUNKS * CHUNK);
        let cluster = Cluster::<L, BLOCKS>::new(gpu.block_idx_x() % BLOCKS, steps);
        let row = gpu.block_idx_x() / BLOCKS * ROWS;
        let column = gpu.block_idx_y() * Self::BN;
        let mut accumulators = [0.0; L];
        // SAFETY: the arguments describe the matrices. Stages are shared as the pipeline says, and the others' accumulators
        // lie behind them; each warp of the block that has all accumulators stores its own part of C, which lies in it where
        // row and column do.
        unsafe {
            let is_consumer = warp < CONSUMERS;
            cluster.begin(gpu);
            if is_consumer {
                gpu.grid_dependency_wait();
                Self::consume(gpu, &cluster, &mut accumulators);
            } else {
                Self::produce(gpu, &args, &cluster, warp - CONSUMERS, row, column);
            }
            if !cluster.join(gpu, Self::PIPELINE_BYTES, warp, &mut accumulators) {
                return;
            }
            if gpu.sync_threads_or(is_consumer && !are_finite(&accumulators)) {
                fallback(gpu, &args, batch, [row, column], [ROWS, Self::BN]);
            } else if is_consumer {
                Self::store(gpu, &args, batch, [row + warp * 16, column], &accumulators);
            }
        }
    }
}

impl<T: HalfValue, A: TileSource<T>, S: Stages, const L: usize, const BLOCKS: u32>
    WgmmaKernel<T, A, S, L, BLOCKS>
{
    const BN: u32 = 2 * L as u32;
    /// Bytes of A and of B in a stage. All stages' A lie together, and then their B: so A begins at a multiple of its bytes.
    const A_BYTES: u32 = S::CHUNKS * CHUNK_BYTES;
    const B_BYTES: u32 = Columns::<T, S, L>::BYTES;
    /// Whether the products of a stage start while those of the one before may still run. Then that one is given back only when
    /// this one is full: producers must be fast.
    const OVERLAPS: bool = A::IS_CONSTANT && L < 32;
    const PIPELINE_BYTES: u32 = S::STAGES * (Self::A_BYTES + Self::B_BYTES);

    /// Where A and B of a stage begin.
    #[inline(always)]
    const fn places(stage: u32) -> [u32; 2] {
        [stage * Self::A_BYTES, S::STAGES * Self::A_BYTES + stage * Self::B_BYTES]
    }

    #[inline(always)]
    fn pipeline(cluster: &Cluster<L, BLOCKS>) -> Pipeline<S> {
        Pipeline::new(cluster.steps, (CONSUMERS + S::WARPS) * WARP).for_tensor_cores()
    }

    /// Fills the group's stages, one after the other. Of A is loaded ahead what the next one needs.
    ///
    /// # Safety
    /// The arguments describe live memory; all of the producer warp's group is here.
    #[inline(always)]
    unsafe fn produce<G: Gpu>(
        gpu: G,
        args: &TileArgs<T>,
        cluster: &Cluster<L, BLOCKS>,
        warp: u32,
        row: u32,
        column: u32,
    ) {
        let (group, warp) = (warp / S::WARPS, warp % S::WARPS);
        let thread = warp * WARP + gpu.lane_id();
        let columns = Columns::<T, S, L>::new(args, thread, column);
        let mut traversal = Traversal::<S>::new(cluster, row / ROWS, group);
        let mut pipeline = Self::pipeline(cluster).of_group(group);
        // SAFETY: values and rows of B are read where there are some; a stage is filled while it is empty.
        unsafe {
            let mut source = A::new(gpu, args, [group, warp], row);
            source.look_up(gpu, traversal.step());
            let clear = |source: &A| {
                for stage in pipeline.stages() {
                    source.clear(gpu, Self::places(stage)[0], None);
                }
            };
            let mut loaded;
            if A::IS_CONSTANT {
                // What never changes may be loaded before the launch before has ended.
                loaded = source.next(gpu);
                clear(&source);
                gpu.grid_dependency_wait();
            } else {
                clear(&source);
                gpu.grid_dependency_wait();
                loaded = source.next(gpu);
            }
            let mut before = None;
            // A loop that asks at its end was measured to be up to a tenth faster.
            let Some(mut step) = traversal.step() else { return };
            loop {
                traversal = traversal.next();
                source.look_up(gpu, traversal.step());
                pipeline.wait_empty(gpu);
                let [a, b] = Self::places(pipeline.stage);
                columns.fill(gpu, b, step);
                if !pipeline.is_first() {
                    source.clear(gpu, a, before.as_ref());
                }
                source.fill(gpu, a, &loaded);
                pipeline.started(gpu);
                match traversal.step() {
                    Some(next) => step = next,
                    None => return,
                }
                before = Some(mem::replace(&mut loaded, source.next(gpu)));
            }
        }
    }

    /// Multiplies all stages, one after the other.
    ///
    /// # Safety
    /// All of the consumer warpgroup is here.
    #[inline(always)]
    unsafe fn consume<G: Gpu>(gpu: G, cluster: &Cluster<L, BLOCKS>, accumulators: &mut [f32; L]) {
        let mut pipeline = Self::pipeline(cluster);
        if pipeline.is_done() {
            return;
        }
        pipeline.wait_full(gpu);
        // SAFETY: a stage is read while it is full, and given back when its products are over.
        unsafe {
            if !Self::OVERLAPS {
                loop {
                    Self::multiply(gpu, pipeline.stage, accumulators);
                    gpu.warpgroup_wait::<0, L>(accumulators);
                    pipeline.leave(gpu);
                    if pipeline.is_done() {
                        return;
                    }
                    pipeline.wait_full(gpu);
                }
            }
            Self::multiply(gpu, pipeline.stage, accumulators);
            loop {
                let stage = pipeline.stage;
                pipeline.next(gpu);
                if pipeline.is_done() {
                    return gpu.warpgroup_wait::<0, L>(accumulators);
                }
                Self::multiply(gpu, pipeline.stage, accumulators);
                gpu.warpgroup_wait::<1, L>(accumulators);
                pipeline.release(gpu, stage);
            }
        }
    }

    /// Starts the products of a stage.
    ///
    /// # Safety
    /// The stage is full; the whole consumer warpgroup is here.
    #[inline(always)]
    unsafe fn multiply<G: Gpu>(gpu: G, stage: u32, accumulators: &mut [f32; L]) {
        let [a, b] = Self::places(stage);
        gpu.warpgroup_arrive();
        for step in 0..S::CHUNKS * STEPS {
            let a = a + step / STEPS * CHUNK_BYTES + step % STEPS * 32;
            let b = b + step * Columns::<T, S, L>::STEP_BYTES;
            let [a, b] = [a, b].map(SharedPtr::from_offset);
            // SAFETY: rows of A and B lie in the stage.
            unsafe { T::warpgroup_mma::<G, L, PANEL_BYTES>(gpu, accumulators, a, b) };
        }
        gpu.warpgroup_commit();
    }

    /// Writes a warp's part of C. A lane has, of 16 rows, two, eight apart, and of each 8 columns two neighbours. Four lanes share
    /// a row: of each 32 columns they exchange theirs for 8 neighbours, and write 64 bytes together.
    ///
    /// # Safety
    /// The part is this warp's alone; what lies in C of it is live. All lanes of the warp are here.
    #[inline(always)]
    unsafe fn store<G: Gpu>(
        gpu: G,
        args: &TileArgs<T>,
        batch: u32,
        [row, column]: [u32; 2],
        accumulators: &[f32; L],
    ) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        for (wide, accumulators) in accumulators.as_chunks::<16>().0.iter().enumerate() {
            let column = column + wide as u32 * 32 + 8 * t;
            for half in 0..2 {
                let pair = |eight: usize| {
                    [accumulators[4 * eight + 2 * half], accumulators[4 * eight + 2 * half + 1]]
                };
                let [a, b, c, d] = exchange(gpu, [pair(0), pair(1), pair(2), pair(3)]);
                let row = row + g + half as u32 * 8;
                if row < args.rows && column < args.n {
                    let accumulators = [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]];
                    // SAFETY: as promised by the caller.
                    unsafe { args.output.store(gpu, row, column, batch, accumulators) };
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

/// Of two lanes that are `APART`, the lower gives `high` for the upper's `low`. All lanes of the warp are here.
#[inline(always)]
fn swap<G: Gpu, const APART: u32>(gpu: G, low: [f32; 2], high: [f32; 2]) -> [[f32; 2]; 2] {
    let is_upper = gpu.lane_id() & APART != 0;
    let give = |low, high| {
        let given = if is_upper { low } else { high };
        gpu.warp_shuffle_xor(FULL_WARP, given, APART, WARP)
    };
    let got = [give(low[0], high[0]), give(low[1], high[1])];
    if is_upper { [got, high] } else { [low, got] }
}
