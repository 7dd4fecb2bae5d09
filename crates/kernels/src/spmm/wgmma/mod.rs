//! SpMM on tensor cores by warpgroups (wgmma of sm_90a), which read shared memory themselves. The picture is of 16-bit values
//! ([`halves`]); those of `f32` are in [`singles`].
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
//! A thread block computes a tile of C. It goes along K by steps of one to four chunks; a chunk is 128 bytes of a row of A. Producer
//! warps fill stages: A as in [`mma`](super::mma), B by asynchronous copies, of a vector a thread ([`columns`]) or of a panel a group
//! ([`boxes`]). They form groups that take stages in turn. The
//! consumers are one to three warpgroups, each with rows of its own, or of `f32` columns. A warpgroup starts all products of a stage, and
//! releases the stage when they have ended. Neighbouring rows of tiles begin at different steps, so that they read different rows
//! of B ([`traversal`]).
//!
//! Where tiles are few, a cluster of blocks shares one (cluster split-K): each block has a part of K, and adds up a part of the
//! tile, which the others store into its shared memory ([`cluster`]).
//!
//! A comes row by row ([`Rows`]). Where its values stay, it comes pre-packed in the order of tiles ([`prepacked`]).
//! The pipeline of stages, and the fallback for accumulators that are not finite, are those of [`mma`](super::mma).
mod boxes;
mod cluster;
mod columns;
mod copies;
mod halves;
mod packs;
mod prepacked;
mod singles;
mod tiles;
mod traversal;

use core::marker::PhantomData;
use core::mem::{self, MaybeUninit};

use lacuna_gpu::{FULL_WARP, Gpu, WARP};

pub use self::boxes::BoxArgs;
use self::cluster::Cluster;
use self::copies::CopiesOfB;
pub use self::packs::{Pack, PackShape, WidePack};
pub use self::prepacked::{LoadedPacks, Prepacked};
pub use self::tiles::{
    PrepackedTiles, PrepackedTilesByThreads, PrepackedTilesOfFours, Scattering, SinglePrepackedTiles,
    WgmmaTiles, WgmmaTilesOfFours,
};
use self::traversal::Traversal;
use super::mma::{Pipeline, Stages, TILE_ROW, TileArgs, TileSource, TileValue, fallback};
use super::{Scheme, Tile};
use crate::common::are_finite;
use crate::{Arithmetic, Bounds, DeviceValue, IndexType, Kernel};

/// Rows that a warpgroup's product has: of A, where that comes first.
const ROWS: u32 = 64;
/// Warps of a warpgroup.
const WARPS: u32 = 4;
/// Bytes of a chunk of A: a panel of 64 rows.
const CHUNK_BYTES: u32 = ROWS * TILE_ROW;
/// Rows of a product that a warp has.
const WARP_PART: u32 = ROWS / WARPS;

/// The values of a tile, and how warpgroups with `L` accumulators a thread multiply them.
pub trait WarpgroupOperand<const L: usize>: Send + Sync + 'static {
    /// Type of the values.
    type Value: TileValue;
    /// What is multiplied.
    const ARITHMETIC: Arithmetic;
    /// Rows and columns of a tile.
    const ROWS: u32;
    /// See [`ROWS`](Self::ROWS).
    const COLUMNS: u32;
    /// Columns of B and C of which N, strides and addresses are multiples.
    const VECTOR: u32;
    /// Consumer warpgroups.
    const WARPGROUPS: u32;
    /// Whether each consumer warp has rows of the tile, 16, and not columns.
    const WARPS_ALONG_ROWS: bool;
    /// Bytes of a chunk of A in a stage, of all rows: of as many columns as 128 bytes have.
    const CHUNK_BYTES: u32;
    /// Bytes of a row of B in a panel. A stage has B in panels one after the other, each with a part of the tile's columns.
    const PANEL_ROW: u32;
    /// Whether the products of a stage may start while those of the one before run. Then that one is given back only when
    /// this one is full: producers must be fast.
    const OVERLAPS: bool;

    /// Where in its row, in bytes, the first 16 bytes of row `row` of B lie.
    fn swizzle(row: u32) -> u32;

    /// Starts the products of warpgroup `part` with a stage of `S`, whose A and B these are.
    ///
    /// # Safety
    /// The stage is full; the whole warpgroup is here.
    unsafe fn multiply<G: Gpu, S: Stages>(gpu: G, places: [u32; 2], part: u32, accumulators: &mut [f32; L]);

    /// Writes consumer warp `warp`'s part of the tile of C at row and column `at`.
    ///
    /// # Safety
    /// What lies in C of the tile is live, and this block's alone. All lanes of the warp are here. Rows of C begin at multiples of
    /// [`VECTOR`](Self::VECTOR) elements, and have multiples of them.
    unsafe fn store<G: Gpu>(
        gpu: G,
        args: &TileArgs<Self::Value>,
        batch: u32,
        at: [u32; 2],
        warp: u32,
        accumulators: &[f32; L],
    );
}

/// SpMM by warpgroups of values `O`, with A from `A` and B from `B`, through the stages `S`.
#[derive(Debug)]
pub struct WgmmaKernel<O, A, B, S, const L: usize, const BLOCKS: u32>(PhantomData<(O, A, B, S)>);

impl<O, A, B, S, const L: usize, const BLOCKS: u32> Kernel for WgmmaKernel<O, A, B, S, L, BLOCKS>
where
    O: WarpgroupOperand<L>,
    A: TileSource<O::Value>,
    B: CopiesOfB<O, S, L> + Send + Sync,
    S: Stages,
{
    type Args = B::Args;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(S::GROUPS > 1, "each group has the time of the others' steps");
        assert!(
            Self::A_BYTES.is_multiple_of(1024) && Self::B_BYTES.is_multiple_of(1024),
            "swizzled panels begin at multiples of their pattern"
        );
        assert!(Self::THREADS <= 1024, "a block has at most 1024 threads");
        assert!(Self::SHARED_BYTES <= 227 * 1024, "a block of sm_90 has 227 KiB");
        let tile = Tile {
            value: O::Value::TYPE,
            index: IndexType::U32,
            vector: O::VECTOR,
            block_rows: O::ROWS,
            block_columns: O::COLUMNS,
            scheme: match A::COLUMNS_PER_PREFETCH {
                0 => Scheme::PrepackedTile {
                    arithmetic: O::ARITHMETIC,
                    chunks: S::CHUNKS,
                    ahead: A::AHEAD,
                    blocks: BLOCKS,
                },
                part => Scheme::WgmmaTile { chunks: S::CHUNKS, part, blocks: BLOCKS },
            },
        };
        match (tile.box_dim(), B::BOX) {
            (None, None) => {}
            (Some([columns, rows]), Some(own)) => assert!(columns == own[0] && rows == own[1]),
            _ => panic!("the host has a tensor map for a kernel that takes one"),
        }
        tile
    };
    const THREADS: u32 = (Self::CONSUMERS + S::GROUPS * S::WARPS) * WARP;
    const SHARED_BYTES: u32 = {
        assert!(Self::CONSUMERS.is_multiple_of(BLOCKS), "each block adds up as many warps' sums");
        Self::BARRIERS + B::BARRIER_BYTES
    };
    const HAS_MAP: bool = B::BOX.is_some();
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 1 };
    const LAUNCHES_DEPENDENTS: bool = true;
    const EARLY_PROLOGUE: bool = true;
    const CLUSTER: u32 = BLOCKS;
    const MIN_SM: u32 = 90;

    #[inline(always)]
    fn with_map_at(args: B::Args, address: u64) -> B::Args {
        B::with_map_at(args, address)
    }

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, all: B::Args) {
        Cluster::<BLOCKS>::begin(gpu);
        let batch = gpu.block_idx_z();
        let args = B::tile(&all).of_product(batch);
        // By way of a shuffle the compiler sees that a warp has one trade.
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        let steps = args.cols.div_ceil(S::CHUNKS * O::Value::COLUMNS);
        let cluster = Cluster::<BLOCKS>::new(gpu.block_idx_x() % BLOCKS, steps);
        let row = gpu.block_idx_x() / BLOCKS * O::ROWS;
        let column = gpu.block_idx_y() * O::COLUMNS;
        // Of consumers alone: where producers had zeros here, these would take their registers.
        let mut accumulators = MaybeUninit::<[f32; L]>::uninit();
        // SAFETY: the arguments describe the matrices. Stages are shared as the pipeline says, and accumulators are joined when
        // all products have ended; each warp that has all sums of its part stores that part of C, which lies in it where row and
        // column do. Consumers have written theirs first.
        unsafe {
            let is_consumer = warp < Self::CONSUMERS;
            if is_consumer {
                gpu.grid_dependency_wait();
                Self::consume(gpu, &cluster, warp / WARPS, accumulators.write([0.0; L]));
            } else {
                Self::produce(gpu, (&all, &args), &cluster, warp - Self::CONSUMERS, [row, batch, column]);
            }
            cluster.join(gpu, warp, Self::CONSUMERS, Self::STAGE_BYTES, &mut accumulators);
            let has_sums = cluster.has_sums(warp, Self::CONSUMERS);
            if gpu.sync_threads_or(has_sums && !are_finite(accumulators.assume_init_ref())) {
                let first = cluster.first_own(Self::CONSUMERS) * WARP_PART;
                let (at, extent) = if O::WARPS_ALONG_ROWS {
                    ([row + first, column], [Self::OWN_WARPS * WARP_PART, O::COLUMNS])
                } else {
                    ([row, column + first], [O::ROWS, Self::OWN_WARPS * WARP_PART])
                };
                fallback(gpu, &args, batch, at, extent);
            } else if has_sums {
                O::store(gpu, &args, batch, [row, column], warp, accumulators.assume_init_ref());
            }
        }
    }
}

impl<O, A, B, S, const L: usize, const BLOCKS: u32> WgmmaKernel<O, A, B, S, L, BLOCKS>
where
    O: WarpgroupOperand<L>,
    A: TileSource<O::Value>,
    B: CopiesOfB<O, S, L>,
    S: Stages,
{
    /// Consumer warps.
    const CONSUMERS: u32 = O::WARPGROUPS * WARPS;
    /// Those of them whose sums a block adds up.
    const OWN_WARPS: u32 = Self::CONSUMERS / BLOCKS;
    /// Bytes of A and of B in a stage. All stages' A lie together, and then their B: so A begins at a multiple of its bytes.
    const A_BYTES: u32 = S::CHUNKS * O::CHUNK_BYTES;
    const B_BYTES: u32 = S::CHUNKS * O::Value::COLUMNS * O::COLUMNS * size_of::<O::Value>() as u32;
    /// Bytes of all stages. Sums of a tile's other blocks lie behind them.
    const STAGE_BYTES: u32 = S::STAGES * (Self::A_BYTES + Self::B_BYTES);
    /// Where what copies of B need begins.
    const BARRIERS: u32 = Self::STAGE_BYTES + (BLOCKS - 1) * Self::OWN_WARPS * WARP * 4 * L as u32;

    /// Where A and B of a stage begin.
    #[inline(always)]
    const fn places(stage: u32) -> [u32; 2] {
        [stage * Self::A_BYTES, S::STAGES * Self::A_BYTES + stage * Self::B_BYTES]
    }

    #[inline(always)]
    fn pipeline(cluster: &Cluster<BLOCKS>) -> Pipeline<S> {
        Pipeline::new(cluster.steps, (Self::CONSUMERS + S::WARPS) * WARP).for_tensor_cores()
    }

    /// Fills the group's stages, one after the other. Of A is loaded ahead what the next one needs.
    ///
    /// # Safety
    /// The arguments describe live memory; all of the producer warp's group is here.
    #[inline(always)]
    unsafe fn produce<G: Gpu>(
        gpu: G,
        (all, args): (&B::Args, &TileArgs<O::Value>),
        cluster: &Cluster<BLOCKS>,
        warp: u32,
        [row, batch, column]: [u32; 3],
    ) {
        let (group, warp) = (warp / S::WARPS, warp % S::WARPS);
        let mut traversal = Traversal::<S>::new(cluster, row / O::ROWS, group);
        let mut pipeline = Self::pipeline(cluster).of_group(group);
        // SAFETY: values and rows of B are read where there are some; a stage is filled while it is empty.
        unsafe {
            let columns = B::new(gpu, all, Self::BARRIERS, [group, warp], [batch, column]);
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
                columns.fill(gpu, b, step, &pipeline);
                if !pipeline.is_first() {
                    source.clear(gpu, a, before.as_ref());
                }
                source.fill(gpu, a, &loaded);
                columns.wait(gpu, &pipeline);
                pipeline.started(gpu);
                match traversal.step() {
                    Some(next) => step = next,
                    None => return,
                }
                before = Some(mem::replace(&mut loaded, source.next(gpu)));
            }
        }
    }

    /// Multiplies all stages, one after the other, with the part of warpgroup `part`.
    ///
    /// # Safety
    /// All of the consumer warpgroup is here.
    #[inline(always)]
    unsafe fn consume<G: Gpu>(gpu: G, cluster: &Cluster<BLOCKS>, part: u32, accumulators: &mut [f32; L]) {
        let mut pipeline = Self::pipeline(cluster);
        if pipeline.is_done() {
            return;
        }
        pipeline.wait_full(gpu);
        // SAFETY: a stage is read while it is full, and given back when its products are over.
        unsafe {
            if !(O::OVERLAPS && A::IS_CONSTANT) {
                loop {
                    O::multiply::<G, S>(gpu, Self::places(pipeline.stage), part, accumulators);
                    gpu.warpgroup_wait::<0, L>(accumulators);
                    pipeline.leave(gpu);
                    if pipeline.is_done() {
                        return;
                    }
                    pipeline.wait_full(gpu);
                }
            }
            O::multiply::<G, S>(gpu, Self::places(pipeline.stage), part, accumulators);
            loop {
                let stage = pipeline.stage;
                pipeline.next(gpu);
                if pipeline.is_done() {
                    return gpu.warpgroup_wait::<0, L>(accumulators);
                }
                O::multiply::<G, S>(gpu, Self::places(pipeline.stage), part, accumulators);
                gpu.warpgroup_wait::<1, L>(accumulators);
                pipeline.release(gpu, stage);
            }
        }
    }
}
