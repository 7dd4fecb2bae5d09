//! SDDMM by warpgroups (wgmma of sm_90a): compute as dense, keep what C has.
//!
//! ```text
//!              B  N×K  ┌──────────┐        A thread block takes tiles of D one after another. It goes along K, 64
//!                      │ 128 rows │        columns a step: the last warps fill stages of shared memory with
//!                      └──────────┘        rows of A and B, swizzled, and run ahead into the next tile.
//!   A  M×K ┌───────┐  ┌────────────┐       Each warpgroup multiplies 64 rows. Then a warp writes its 16 rows of sums
//!          │ 64    │  │ x  x   x   │       to shared memory, a subtile at a time, and takes from there what C has, by
//!          ├───────┤  ├────────────┤       [`Subtiles`]: 32 nonzeros at once, of whatever rows. So the end of a tile
//!          │ 64    │  │   x  x    x│       costs by its nonzeros. A lane that looked up each of its sums would cost by
//!          └───────┘  └────────────┘       its elements. The host lists the tiles that C has something of.
//! ```
//! Values of 16 bits are copied as they are. A number of `f32` becomes two of bfloat16, and a product three
//! ([`SplitBf16`](crate::SplitBf16)).
mod operand;

use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, Gpu, Real, SharedPtr, WARP};

use operand::Part;
pub use operand::WgmmaOperand;

use super::fallback::fallback;
use super::subtiles::{AT_ONCE, SubtileNonzeros};
use super::{Operands, Scheme, Subtiles, Tile, TileArgs};
use crate::common::Rows;
use crate::{Bounds, DeviceValue, IndexType, Kernel};

/// SDDMM by tiles of `GROUPS` warpgroups, 64 rows each, and 2·`L` columns, with operands `O`.
#[derive(Debug)]
pub struct WgmmaTiles<O, const L: usize, const GROUPS: u32>(PhantomData<O>);

/// Threads of a warpgroup, its rows, and those of its warps.
const WARPGROUP: u32 = 4 * WARP;
const GROUP_ROWS: u32 = 64;
const WARP_ROWS: u32 = 16;
/// Columns of A and B of a step.
const STEP: u32 = 64;
/// Bytes of a row of a stage, of one part.
const ROW: u32 = 128;
/// Sums of a subtile from one row to the next: eight more keep rows that are written together on different banks.
const PITCH: u32 = Subtiles::COLUMNS + 8;
/// Bytes of the sums of a warp's subtile.
const SUMS_BYTES: u32 = WARP_ROWS * PITCH * 4;

/// What a thread works on.
struct Work<T, G> {
    gpu: G,
    args: TileArgs<T>,
    /// Steps along K.
    steps: u32,
}

impl<O: WgmmaOperand, const L: usize, const GROUPS: u32> Kernel for WgmmaTiles<O, L, GROUPS> {
    type Args = TileArgs<O::Value>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(
            Self::COLUMNS == 2 * Subtiles::COLUMNS && WARP_ROWS == Subtiles::ROWS,
            "a warp has two subtiles"
        );
        assert!(Self::FULL + Self::STAGES * GROUPS <= 16, "a block has 16 barriers");
        assert!(Self::SHARED_BYTES <= 227 * 1024, "a block of sm_90 has 227 KiB");
        Tile {
            value: O::Value::TYPE,
            index: IndexType::U32,
            vector: O::VECTOR,
            block_items: Self::ROWS,
            scheme: Scheme::WgmmaTile { columns: Self::COLUMNS, arithmetic: O::ARITHMETIC },
        }
    };
    const THREADS: u32 = GROUPS * WARPGROUP + Self::STAGES * O::PRODUCERS;
    const SHARED_BYTES: u32 = Self::SUMS + Self::ROWS / WARP_ROWS * SUMS_BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 1 };
    const MIN_SM: u32 = 90;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Self::Args) {
        let args = TileArgs { operands: args.operands.rebased_for_z(gpu.block_idx_z()), ..args };
        let work = Work { gpu, args, steps: args.operands.k.div_ceil(STEP) };
        // By way of a shuffle the compiler sees that a warp has one trade.
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        // SAFETY: the arguments describe live memory; the last warps are the producers.
        unsafe {
            if warp >= 4 * GROUPS {
                Self::produce(&work, (warp - 4 * GROUPS) / (O::PRODUCERS / WARP));
            } else {
                Self::consume(&work, warp);
            }
        }
    }
}

impl<O: WgmmaOperand, const L: usize, const GROUPS: u32> WgmmaTiles<O, L, GROUPS> {
    /// Rows of a tile.
    const ROWS: u32 = GROUPS * GROUP_ROWS;
    /// Columns of a tile.
    const COLUMNS: u32 = 2 * L as u32;
    /// Stages of shared memory, as many as fit, each with threads that fill it.
    const STAGES: u32 = if O::PARTS > 1 {
        2
    } else if GROUPS > 2 {
        3
    } else {
        4
    };
    /// Bytes of a stage's rows of A, of one part; likewise of B; and of all parts of both, A first.
    const A_BYTES: u32 = Self::ROWS * ROW;
    const B_BYTES: u32 = Self::COLUMNS * ROW;
    const STAGE_BYTES: u32 = O::PARTS * (Self::A_BYTES + Self::B_BYTES);
    /// Threads at the barrier of a stage that is full, for each warpgroup; and that is empty.
    const AT_FULL: u32 = WARPGROUP + O::PRODUCERS;
    const AT_EMPTY: u32 = GROUPS * WARPGROUP + O::PRODUCERS;
    /// Where warps put sums down.
    const SUMS: u32 = Self::STAGES * Self::STAGE_BYTES;
    /// Barriers: of an empty stage, and of one that is full for a warpgroup.
    const EMPTY: u32 = 1;
    const FULL: u32 = Self::EMPTY + Self::STAGES;

    /// The first row and column of a tile; outside of D where there is no such tile.
    ///
    /// # Safety
    /// The arguments describe live memory.
    #[inline(always)]
    unsafe fn place<G: Gpu>(work: &Work<O::Value, G>, tile: u32) -> [u32; 2] {
        if tile < work.args.tile_count {
            // SAFETY: as promised by the caller.
            unsafe { work.args.tile(work.gpu, tile) }
        } else {
            [u32::MAX; 2]
        }
    }

    /// Fills a stage, for every step that is the stage's.
    ///
    /// # Safety
    /// The stage's producers are here, whole warps; the operands are live.
    #[inline(always)]
    unsafe fn produce<G: Gpu>(work: &Work<O::Value, G>, stage: u32) {
        let gpu = work.gpu;
        let Operands { a, b, items, k, a_stride_bytes, b_stride_bytes, .. } = work.args.operands;
        let (mut tile, mut step, mut is_first) = (gpu.block_idx_x(), stage, true);
        // From the steps that are over to the tile that the step belongs to.
        let advance = |tile: &mut u32, step: &mut u32| {
            while *step >= work.steps && *tile < work.args.tile_count {
                (*tile, *step) = (*tile + gpu.grid_dim_x(), *step - work.steps);
            }
        };
        advance(&mut tile, &mut step);
        // SAFETY: as promised by the caller.
        let mut at = unsafe { Self::place(work, tile) };
        while tile < work.args.tile_count {
            if !is_first {
                gpu.barrier_sync(Self::EMPTY + stage, Self::AT_EMPTY);
            }
            let [row, column] = at;
            let a = Rows { matrix: a, first: row, end: items, stride_bytes: a_stride_bytes };
            let b = Rows { matrix: b, first: column, end: work.args.cols, stride_bytes: b_stride_bytes };
            let to = stage * Self::STAGE_BYTES;
            let of_a = Part { to, bytes: Self::A_BYTES };
            let of_b = Part { to: to + O::PARTS * Self::A_BYTES, bytes: Self::B_BYTES };
            // SAFETY: as promised by the caller; the warpgroups have left the stage.
            unsafe {
                O::fill(gpu, &a, of_a, step * STEP, k);
                O::fill(gpu, &b, of_b, step * STEP, k);
            }
            gpu.copy_async_commit();
            (step, is_first) = (step + Self::STAGES, false);
            advance(&mut tile, &mut step);
            // SAFETY: as promised by the caller.
            at = unsafe { Self::place(work, tile) };
            gpu.copy_async_wait::<0>();
            gpu.fence_async_proxy();
            for group in 0..GROUPS {
                gpu.barrier_arrive(Self::FULL + stage * GROUPS + group, Self::AT_FULL);
            }
        }
    }

    /// Multiplies this warpgroup's rows of each tile, and writes what C has.
    ///
    /// # Safety
    /// The whole warpgroup is here; the arguments describe live memory.
    #[inline(always)]
    unsafe fn consume<G: Gpu>(work: &Work<O::Value, G>, warp: u32) {
        let gpu = work.gpu;
        let tiles = work.args.tile_count;
        let mut tile = gpu.block_idx_x();
        if tile >= tiles {
            return;
        }
        let stride = gpu.grid_dim_x();
        let mut left = (tiles - tile).div_ceil(stride) * work.steps;
        let mut stage = 0;
        // SAFETY: as promised by the caller; a stage is read while it is full.
        unsafe {
            // Where a tile is comes two tiles ahead, where its nonzeros stand one, and their places before it is multiplied.
            let mut here = Self::place(work, tile);
            let mut own = Self::nonzeros(work, warp, here);
            let mut at = Self::place(work, tile + stride);
            while tile < tiles {
                let places = [0, 1].map(|subtile: usize| own[subtile].places(gpu, &work.args.subtiles));
                let next = Self::nonzeros(work, warp, at);
                let later = Self::place(work, tile + 2 * stride);
                let mut sums = [0.0; L];
                for _ in 0..work.steps {
                    gpu.barrier_sync(Self::FULL + stage * GROUPS + warp / 4, Self::AT_FULL);
                    Self::multiply(gpu, stage, warp / 4, &mut sums);
                    if left > Self::STAGES {
                        gpu.barrier_arrive(Self::EMPTY + stage, Self::AT_EMPTY);
                    }
                    (left, stage) = (left - 1, if stage + 1 == Self::STAGES { 0 } else { stage + 1 });
                }
                Self::store(work, warp, (here, &own), places, &sums);
                (here, own, tile) = (at, next, tile + stride);
                at = later;
            }
        }
    }

    /// The nonzeros of the warp's subtiles of the tile at this row and column.
    ///
    /// # Safety
    /// The arguments describe live memory; the whole warp is here.
    #[inline(always)]
    unsafe fn nonzeros<G: Gpu>(
        work: &Work<O::Value, G>,
        warp: u32,
        [row, column]: [u32; 2],
    ) -> [SubtileNonzeros; 2] {
        // Where there is no tile, row and column stay outside.
        let row = row.saturating_add(warp * WARP_ROWS);
        let of = |column| {
            // SAFETY: as promised by the caller.
            unsafe { SubtileNonzeros::of(work.gpu, &work.args.subtiles, [row, column]) }
        };
        [of(column), of(column.saturating_add(Subtiles::COLUMNS))]
    }

    /// Adds the products of a step.
    ///
    /// # Safety
    /// The stage is full; the whole warpgroup is here.
    #[inline(always)]
    unsafe fn multiply<G: Gpu>(gpu: G, stage: u32, group: u32, sums: &mut [f32; L]) {
        let a = stage * Self::STAGE_BYTES + group * GROUP_ROWS * ROW;
        let b = stage * Self::STAGE_BYTES + O::PARTS * Self::A_BYTES;
        gpu.warpgroup_arrive();
        for sixteen in 0..STEP / 16 {
            let [a, b] = [a, b].map(|panel| panel + 32 * sixteen);
            // SAFETY: as promised by the caller; panels begin at multiples of 1024 bytes.
            unsafe { O::multiply(gpu, sums, (a, Self::A_BYTES), (b, Self::B_BYTES)) };
        }
        gpu.warpgroup_commit();
        gpu.warpgroup_wait::<0, L>(sums);
    }

    /// Writes those of a warp's sums that C has, by way of shared memory.
    ///
    /// # Safety
    /// D has these nonzeros, and they are this warp's alone; the whole warp is here.
    #[inline(always)]
    unsafe fn store<G: Gpu>(
        work: &Work<O::Value, G>,
        warp: u32,
        (tile, own): ([u32; 2], &[SubtileNonzeros; 2]),
        places: [[u32; AT_ONCE]; 2],
        sums: &[f32; L],
    ) {
        let (gpu, lane) = (work.gpu, work.gpu.lane_id());
        let shared = SharedPtr::<f32>::from_offset(Self::SUMS + warp * SUMS_BYTES);
        let Operands { d, scale, partial, .. } = work.args.operands;
        let is_plain = scale.address() == 0 && partial.address() == 0;
        for subtile in 0..2 {
            // All lanes have taken what was here.
            gpu.sync_warp(FULL_WARP);
            for row in 0..2 {
                for eight in 0..8 {
                    let place = (lane / 4 + 8 * row) * PITCH + 8 * eight + 2 * (lane % 4);
                    let at = 32 * subtile + 4 * eight as usize + 2 * row as usize;
                    // SAFETY: the place is this lane's alone.
                    unsafe { gpu.shared_store(shared.add(place), [sums[at], sums[at + 1]]) };
                }
            }
            gpu.sync_warp(FULL_WARP);
            let first = [tile[0] + warp * WARP_ROWS, tile[1] + subtile as u32 * Subtiles::COLUMNS];
            // SAFETY: as promised by the caller.
            unsafe {
                own[subtile].take(
                    gpu,
                    &work.args.subtiles,
                    places[subtile],
                    shared,
                    PITCH,
                    |index, place, sum| {
                        let sum = if O::PARTS > 1 && !sum.is_finite() {
                            fallback(gpu, &work.args.operands, Subtiles::element(first, place))
                        } else {
                            sum
                        };
                        // Apart, so that nothing waits for a scale that is not there.
                        if is_plain {
                            gpu.store(d.add(index as usize), [O::Value::from_f32(gpu, sum)]);
                        } else {
                            work.args.operands.store(gpu, index, 0, sum);
                        }
                    },
                );
            }
        }
    }
}
