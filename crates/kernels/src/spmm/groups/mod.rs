//! SpMM by warpgroups: tiles of 16-bit values on the tensor cores of sm_90a, which read shared memory themselves.
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
//! A block has 64 rows and BN columns of C, and walks along K in steps of two or four chunks of 64 columns. Producer warps
//! fill stages: A as in [`tiles`](super::tiles), B by asynchronous copies. They work in teams that take stages in turn, so
//! that each has time for what it waits for. The consumers, one warpgroup, start all products of a stage, and give it back
//! when they are over. Neighbouring rows of tiles begin at different steps ([`walk`]).
//!
//! Where tiles are few, two blocks share one, as a cluster: each has a half of K, and the second stores its sums into the shared
//! memory of the first ([`parts`]).
//!
//! A comes row by row ([`Rows`]), or, for a matrix whose values stay, from packs in the order of tiles ([`packed`]).
//!
//! The ring of stages, and what happens to sums that are not finite, are those of [`tiles`](super::tiles).
mod columns;
mod packed;
mod parts;
mod source;
mod walk;

use core::marker::PhantomData;
use core::mem;

use lacuna_gpu::{FULL_WARP, Gpu, SharedPtr, WARP};

use self::columns::{COPY, Columns};
pub use self::packed::{LoadedPacks, Pack, Packed};
use self::parts::Parts;
pub use self::source::{Scattering, Source};
use self::walk::Walk;
use super::tiles::{Ring, Rows, TILE_ROW, TileArgs, again};
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

/// SpMM by warpgroups for values of `T`, that are put where their columns are.
///
/// - `L`: half of BN. `CHUNKS`: chunks of a step. With more, the pieces of rows are longer, and barriers fewer.
/// - `PART`: of a step of a row the producers load ahead what one nonzero in so many columns makes. With a larger one, fewer
///   lanes share a row, which is faster unless the row has more.
/// - `TEAMS`: teams of producers. `WARPS`: warps of a team. `STAGES`: stages of shared memory.
/// - `BLOCKS`: blocks that share a tile.
pub type GroupTiles<
    T,
    const L: usize,
    const CHUNKS: u32,
    const PART: u32,
    const TEAMS: u32,
    const WARPS: u32,
    const STAGES: u32,
    const BLOCKS: u32,
> = Groups<T, Rows<T, Scattering<CHUNKS, PART, WARPS>>, L, CHUNKS, TEAMS, WARPS, STAGES, BLOCKS>;

/// As [`GroupTiles`], for values that are [packed](Pack). Each of `TEAMS` teams has a stage of its own.
///
/// - `AHEAD`: packs that a warp loads ahead of each step.
pub type PackedTiles<
    T,
    const L: usize,
    const CHUNKS: u32,
    const TEAMS: u32,
    const WARPS: u32,
    const AHEAD: usize,
    const BLOCKS: u32,
> = Groups<T, Packed<T, CHUNKS, TEAMS, WARPS, AHEAD>, L, CHUNKS, TEAMS, WARPS, TEAMS, BLOCKS>;

/// SpMM by warpgroups, with A from `S`.
#[derive(Debug)]
pub struct Groups<
    T,
    S,
    const L: usize,
    const CHUNKS: u32,
    const TEAMS: u32,
    const WARPS: u32,
    const STAGES: u32,
    const BLOCKS: u32,
>(PhantomData<(T, S)>);

impl<
    T: HalfValue,
    S: Source<T>,
    const L: usize,
    const CHUNKS: u32,
    const TEAMS: u32,
    const WARPS: u32,
    const STAGES: u32,
    const BLOCKS: u32,
> Kernel for Groups<T, S, L, CHUNKS, TEAMS, WARPS, STAGES, BLOCKS>
{
    type Args = TileArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(TEAMS > 1, "each team has the time of the others' steps");
        assert!(
            L < 64 || CHUNKS == 2,
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
            scheme: match S::PART {
                0 => Scheme::Packed { chunks: CHUNKS, ahead: S::AHEAD, blocks: BLOCKS },
                part => Scheme::Groups { chunks: CHUNKS, part, blocks: BLOCKS },
            },
        }
    };
    const THREADS: u32 = (CONSUMERS + TEAMS * WARPS) * WARP;
    const SHARED_BYTES: u32 = Self::RING_BYTES + Parts::<L, BLOCKS>::BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 1 };
    const LETS_NEXT_BEGIN: bool = true;
    const LOOKS_AHEAD: bool = true;
    const CLUSTER: u32 = BLOCKS;
    const MIN_SM: u32 = 90;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TileArgs<T>) {
        let batch = gpu.block_idx_z();
        let args = args.of_product(batch);
        // By way of a shuffle the compiler sees that a warp has one trade.
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        let steps = args.cols.div_ceil(CHUNKS * CHUNK);
        let parts = Parts::<L, BLOCKS>::new(gpu.block_idx_x() % BLOCKS, steps);
        let row = gpu.block_idx_x() / BLOCKS * ROWS;
        let column = gpu.block_idx_y() * Self::BN;
        let mut sums = [0.0; L];
        // SAFETY: the arguments describe the matrices. Stages are shared as the ring says, and the others' sums lie behind them;
        // each warp of the block that has all sums stores its own part of C, which lies in it where row and column do.
        unsafe {
            let is_consumer = warp < CONSUMERS;
            parts.begin(gpu);
            if is_consumer {
                gpu.wait_for_previous();
                Self::consume(gpu, &parts, &mut sums);
            } else {
                Self::produce(gpu, &args, &parts, warp - CONSUMERS, row, column);
            }
            if !parts.join(gpu, Self::RING_BYTES, warp, &mut sums) {
                return;
            }
            if gpu.sync_threads_or(is_consumer && !are_finite(&sums)) {
                again(gpu, &args, batch, [row, column], [ROWS, Self::BN]);
            } else if is_consumer {
                Self::store(gpu, &args, batch, [row + warp * 16, column], &sums);
            }
        }
    }
}

impl<
    T: HalfValue,
    S: Source<T>,
    const L: usize,
    const CHUNKS: u32,
    const TEAMS: u32,
    const WARPS: u32,
    const STAGES: u32,
    const BLOCKS: u32,
> Groups<T, S, L, CHUNKS, TEAMS, WARPS, STAGES, BLOCKS>
{
    const BN: u32 = 2 * L as u32;
    /// Bytes of A and of B in a stage. All stages' A lie together, and then their B: so A begins at a multiple of its bytes.
    const A_BYTES: u32 = CHUNKS * CHUNK_BYTES;
    const B_BYTES: u32 = Columns::<T, L, CHUNKS, WARPS>::BYTES;
    /// Whether the products of a stage start while those of the one before may still run. Then that one is given back only when
    /// this one is full: producers must be fast.
    const OVERLAPS: bool = S::STAYS && L < 32;
    const RING_BYTES: u32 = STAGES * (Self::A_BYTES + Self::B_BYTES);

    /// Where A and B of a stage begin.
    #[inline(always)]
    const fn places(stage: u32) -> [u32; 2] {
        [stage * Self::A_BYTES, STAGES * Self::A_BYTES + stage * Self::B_BYTES]
    }

    #[inline(always)]
    fn ring(parts: &Parts<L, BLOCKS>) -> Ring<STAGES> {
        Ring::new(parts.steps, (CONSUMERS + WARPS) * WARP).for_tensor_cores()
    }

    /// Fills the team's stages, one after the other. Of A is loaded ahead what the next one needs.
    ///
    /// # Safety
    /// The arguments describe live memory; all of the producer warp's team is here.
    #[inline(always)]
    unsafe fn produce<G: Gpu>(
        gpu: G,
        args: &TileArgs<T>,
        parts: &Parts<L, BLOCKS>,
        warp: u32,
        row: u32,
        column: u32,
    ) {
        let (team, warp) = (warp / WARPS, warp % WARPS);
        let thread = warp * WARP + gpu.lane_id();
        let columns = Columns::<T, L, CHUNKS, WARPS>::new(args, thread, column);
        let mut walk = Walk::<TEAMS>::new(parts, row / ROWS, team);
        let mut ring = Self::ring(parts).of_team::<TEAMS>(team);
        // SAFETY: values and rows of B are read where there are some; a stage is filled while it is empty.
        unsafe {
            let mut source = S::new(gpu, args, [team, warp], row);
            source.look_up(gpu, walk.step());
            let clear = |source: &S| {
                for stage in ring.stages() {
                    source.clear(gpu, Self::places(stage)[0], None);
                }
            };
            let mut loaded;
            if S::STAYS {
                // What never changes may be loaded before the launch before has ended.
                loaded = source.next(gpu);
                clear(&source);
                gpu.wait_for_previous();
            } else {
                clear(&source);
                gpu.wait_for_previous();
                loaded = source.next(gpu);
            }
            let mut before = None;
            // A loop that asks at its end was measured to be up to a tenth faster.
            let Some(mut step) = walk.step() else { return };
            loop {
                walk = walk.next();
                source.look_up(gpu, walk.step());
                ring.wait_empty(gpu);
                let [a, b] = Self::places(ring.stage);
                columns.fill(gpu, b, step);
                if !ring.is_first() {
                    source.clear(gpu, a, before.as_ref());
                }
                source.fill(gpu, a, &loaded);
                ring.started(gpu);
                match walk.step() {
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
    unsafe fn consume<G: Gpu>(gpu: G, parts: &Parts<L, BLOCKS>, sums: &mut [f32; L]) {
        let mut ring = Self::ring(parts);
        if ring.is_done() {
            return;
        }
        ring.wait_full(gpu);
        // SAFETY: a stage is read while it is full, and given back when its products are over.
        unsafe {
            if !Self::OVERLAPS {
                loop {
                    Self::multiply(gpu, ring.stage, sums);
                    gpu.warpgroup_wait::<0, L>(sums);
                    ring.leave(gpu);
                    if ring.is_done() {
                        return;
                    }
                    ring.wait_full(gpu);
                }
            }
            Self::multiply(gpu, ring.stage, sums);
            loop {
                let stage = ring.stage;
                ring.next(gpu);
                if ring.is_done() {
                    return gpu.warpgroup_wait::<0, L>(sums);
                }
                Self::multiply(gpu, ring.stage, sums);
                gpu.warpgroup_wait::<1, L>(sums);
                ring.release(gpu, stage);
            }
        }
    }

    /// Starts the products of a stage.
    ///
    /// # Safety
    /// The stage is full; the whole consumer warpgroup is here.
    #[inline(always)]
    unsafe fn multiply<G: Gpu>(gpu: G, stage: u32, sums: &mut [f32; L]) {
        let [a, b] = Self::places(stage);
        gpu.warpgroup_arrive();
        for step in 0..CHUNKS * STEPS {
            let a = a + step / STEPS * CHUNK_BYTES + step % STEPS * 32;
            let b = b + step * Columns::<T, L, CHUNKS, WARPS>::STEP_BYTES;
            let [a, b] = [a, b].map(SharedPtr::from_offset);
            // SAFETY: rows of A and B lie in the stage.
            unsafe { T::warpgroup_mma::<G, L, PANEL_BYTES>(gpu, sums, a, b) };
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
        sums: &[f32; L],
    ) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        for (wide, sums) in sums.as_chunks::<16>().0.iter().enumerate() {
            let column = column + wide as u32 * 32 + 8 * t;
            for half in 0..2 {
                let pair = |eight: usize| [sums[4 * eight + 2 * half], sums[4 * eight + 2 * half + 1]];
                let [a, b, c, d] = exchange(gpu, [pair(0), pair(1), pair(2), pair(3)]);
                let row = row + g + half as u32 * 8;
                if row < args.rows && column < args.n {
                    let sums = [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]];
                    // SAFETY: as promised by the caller.
                    unsafe { args.output.store(gpu, row, column, batch, sums) };
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
