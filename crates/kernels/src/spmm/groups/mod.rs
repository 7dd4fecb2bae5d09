//! SpMM by warpgroups: tiles on the tensor cores of sm_90a, whose products read B from shared memory and run on their own.
//!
//! ```text
//!   K ──►  window                     A stage of shared memory
//!        ┌────────┐                  ┌──────────────────────────┐
//!        │ k × BN │  B  ──────────►  │ B as wgmma reads it      │ ──► read by the tensor cores themselves
//!        └────────┘                  ├──────────────────────────┤
//!  ┌─────────┐ values and places     │ . 5 . . . 7 . . 2 . . .  │     a consumer warp loads its 16 rows of A
//!  │ BM × k  │ ──────────────────►   │ . . . 1 . . . . . . 4 .  │ ──► into registers, as wgmma takes them
//!  └─────────┘ zeros, then scattered └──────────────────────────┘
//! ```
//!
//! A block owns BM = 64·WM rows and BN columns of C, and walks along K, a step of WK windows at a time; a window is 64
//! columns of A, or 32. Producer warps fill stages: they clear the rows of A's window and put the values where their
//! columns are, a lane for each nonzero ([`Rows`]); and they bring B's rows of the window ([`Columns`]). Consumer
//! warpgroups start the products of one stage while those of the stage before still run.
//!
//! What a nonzero costs is a load of its value and of its place in the window (a byte), and a store; columns without one
//! cost only the clearing. The ring of stages, the sums of slices of K, and what happens to sums that are not finite are
//! those of [`tiles`](super::tiles).
mod columns;
mod rows;
mod value;

use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, Gpu, WARP};

use self::columns::Columns;
use self::rows::Rows;
pub use self::value::GroupValue;
use super::tiles::{Ring, TileArgs, again, are_finite, join};
use super::{Scheme, Tile};
use crate::{Bounds, IndexType, Kernel};

/// Rows of A and C that a warpgroup multiplies.
const GROUP_ROWS: u32 = 64;
/// Bytes of a row of A's tile in a stage: as many columns as are multiplied together.
const TILE_ROW: u32 = 128;

/// SpMM by warpgroups for values of `T`.
///
/// - `WM`: consumer warpgroups along the rows. `L`: half of BN. `WK`: consumer warpgroups along K.
/// - `TILES`: tiles of A in a window, of 128 bytes a row. `STAGES`: stages.
/// - `TEAMS`: teams of producers, which take stages in turn; so each has time for what it waits for. `WARPS`: warps of a team.
/// - `LANES`: lanes that share a row, each 16 bytes of its values in a window. What more it has comes late.
#[derive(Debug)]
pub struct GroupTiles<
    T,
    const WM: u32,
    const L: usize,
    const WK: u32,
    const TILES: u32,
    const TEAMS: u32,
    const WARPS: u32,
    const STAGES: u32,
    const LANES: u32,
>(PhantomData<T>);

impl<
    T: GroupValue,
    const WM: u32,
    const L: usize,
    const WK: u32,
    const TILES: u32,
    const TEAMS: u32,
    const WARPS: u32,
    const STAGES: u32,
    const LANES: u32,
> Kernel for GroupTiles<T, WM, L, WK, TILES, TEAMS, WARPS, STAGES, LANES>
{
    type Args = TileArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(
            STAGES >= TEAMS && STAGES >= 3 && STAGES <= 7,
            "a consumer holds two stages; there are 15 barriers"
        );
        assert!(Self::THREADS <= 1024, "a block has at most 1024 threads");
        assert!(Self::SHARED_BYTES <= 227 * 1024, "a block of sm_90 has 227 KiB");
        assert!(Self::CONSUMERS * WARP * L as u32 * 4 <= Self::SHARED_BYTES, "the sums fit into the stages");
        Tile {
            value: T::TYPE,
            index: IndexType::U32,
            vector: 16 / size_of::<T>() as u32,
            block_rows: Self::BM,
            block_columns: Self::BN,
            scheme: Scheme::Groups { slices: WK, producers: TEAMS * WARPS, arithmetic: T::ARITHMETIC },
        }
    };
    const THREADS: u32 = (Self::CONSUMERS + TEAMS * WARPS) * WARP;
    const SHARED_BYTES: u32 = STAGES * Self::STAGE_BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 1 };
    const MIN_SM: u32 = 90;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TileArgs<T>) {
        let batch = gpu.block_idx_z();
        let args = args.of_product(batch);
        // By way of a shuffle the compiler sees that a warp has one trade.
        let warp = gpu.warp_shuffle_idx(FULL_WARP, gpu.thread_idx_x() / WARP, 0, WARP);
        let row = gpu.block_idx_x() * Self::BM;
        let column = gpu.block_idx_y() * Self::BN;
        let mut sums = [0.0; L];
        // SAFETY: the arguments describe the matrices. Stages are shared as the ring says, and free after it; each warp
        // stores its own part of C, which lies in it where row and column do.
        unsafe {
            if warp >= Self::CONSUMERS {
                Self::produce(gpu, &args, warp - Self::CONSUMERS, row, column);
            } else {
                Self::consume(gpu, &args, warp, &mut sums);
            }
            join::<G, WK>(gpu, sums.as_chunks_mut().0, warp, Self::CONSUMERS);
            let stores = warp < 4 * WM;
            if gpu.sync_threads_or(stores && !are_finite(&sums)) {
                again(gpu, &args, batch, [row, column], [Self::BM, Self::BN]);
            } else if stores {
                Self::store(gpu, &args, batch, [row + warp * 16, column], &sums);
            }
        }
    }
}

impl<
    T: GroupValue,
    const WM: u32,
    const L: usize,
    const WK: u32,
    const TILES: u32,
    const TEAMS: u32,
    const WARPS: u32,
    const STAGES: u32,
    const LANES: u32,
> GroupTiles<T, WM, L, WK, TILES, TEAMS, WARPS, STAGES, LANES>
{
    const BM: u32 = WM * GROUP_ROWS;
    const BN: u32 = 2 * L as u32;
    /// Consumer warps.
    const CONSUMERS: u32 = 4 * WM * WK;
    /// Columns of A in a window.
    const WINDOW: u32 = Self::A_ROW / size_of::<T>() as u32;
    /// Bytes of a row of a window: its tiles lie side by side.
    const A_ROW: u32 = TILES * TILE_ROW;
    /// Bytes of B's part of a tile's columns.
    const B_TILE: u32 = T::PLANES * Self::BN * TILE_ROW;
    /// Bytes of B in a stage; A's rows follow.
    const B_BYTES: u32 = WK * TILES * Self::B_TILE;
    const STAGE_BYTES: u32 = Self::B_BYTES + WK * Self::BM * Self::A_ROW;

    #[inline(always)]
    fn ring(cols: u32, team: u32, teams: u32) -> Ring<STAGES> {
        let steps = cols.div_ceil(Self::WINDOW).div_ceil(WK);
        Ring::new(steps, (Self::CONSUMERS + WARPS) * WARP).for_tensor_cores(team, teams)
    }

    /// Fills the team's stages, one after the other; what a stage needs is loaded before the wait for it.
    ///
    /// # Safety
    /// The arguments describe live memory; all of the producer warp's team is here.
    #[inline(always)]
    unsafe fn produce<G: Gpu>(gpu: G, args: &TileArgs<T>, warp: u32, row: u32, column: u32) {
        let (team, thread) = (warp / WARPS, warp % WARPS * WARP + gpu.lane_id());
        let mut rows = Rows::<T, WM, WK, TILES, WARPS, LANES>::new(args, team, thread, row);
        let mut columns = Columns::<T, L, WK, TILES, WARPS>::new(args, team, thread, column);
        let mut ring = Self::ring(args.cols, team, TEAMS);
        // SAFETY: values and rows of B are read where there are some; a stage is filled while it is empty.
        unsafe {
            rows.next_records(gpu, TEAMS);
            while !ring.is_done() {
                let of_a = rows.next(gpu);
                let of_b = columns.next(gpu);
                rows.next_records(gpu, TEAMS);
                ring.wait_empty(gpu);
                let stage = ring.stage * Self::STAGE_BYTES;
                columns.fill(gpu, stage, &of_b);
                rows.fill(gpu, stage + Self::B_BYTES, &of_a);
                columns.advance(TEAMS);
                ring.started(gpu);
            }
        }
    }

    /// Multiplies all stages, one after the other. While some products run, A is loaded for the next, into other registers:
    /// so the loop takes two stages at a time.
    ///
    /// # Safety
    /// All of the consumer warpgroup is here.
    #[inline(always)]
    unsafe fn consume<G: Gpu>(gpu: G, args: &TileArgs<T>, warp: u32, sums: &mut [f32; L]) {
        let group = warp / 4;
        let (m, k) = if WK == 1 { (group, 0) } else { (group % WM, group / WM) };
        let row = k * Self::BM + m * GROUP_ROWS + warp % 4 * 16;
        let place = Place { a: Self::B_BYTES + row * Self::A_ROW, b: k * TILES * Self::B_TILE };
        let mut ring = Self::ring(args.cols, 0, 1);
        if ring.is_done() {
            return;
        }
        ring.wait_full(gpu);
        // SAFETY: a stage is read while it is full, and given back when its products are over.
        unsafe {
            Self::start(gpu, &place, ring.stage, 0, sums);
            loop {
                for _ in 0..2 {
                    for part in 1..TILES * T::PARTS {
                        Self::start(gpu, &place, ring.stage, part, sums);
                        gpu.warpgroup_wait::<1, L>(sums);
                    }
                    let stage = ring.stage;
                    ring.next(gpu);
                    if ring.is_done() {
                        return gpu.warpgroup_wait::<0, L>(sums);
                    }
                    Self::start(gpu, &place, ring.stage, 0, sums);
                    gpu.warpgroup_wait::<1, L>(sums);
                    ring.release(gpu, stage);
                }
            }
        }
    }

    /// Starts the products of a part of a tile; the parts of a window's tiles are numbered through.
    ///
    /// # Safety
    /// The stage is full; the whole consumer warpgroup is here.
    #[inline(always)]
    unsafe fn start<G: Gpu>(gpu: G, place: &Place, stage: u32, part: u32, sums: &mut [f32; L]) {
        let (tile, part) = (part / T::PARTS, part % T::PARTS);
        let stage = stage * Self::STAGE_BYTES;
        // SAFETY: as promised by the caller.
        unsafe {
            let a = T::fragments(gpu, stage + place.a + tile * TILE_ROW, Self::A_ROW, part);
            gpu.warpgroup_arrive();
            T::multiply(gpu, &a, stage + place.b + tile * Self::B_TILE, part, sums);
        }
        gpu.warpgroup_commit();
    }

    /// Writes a warp's part of C: a lane has, of 16 rows, two, eight apart, and of each 8 columns two neighbours.
    ///
    /// # Safety
    /// The part is this warp's alone; what lies in C of it is live.
    #[inline(always)]
    unsafe fn store<G: Gpu>(
        gpu: G,
        args: &TileArgs<T>,
        batch: u32,
        [row, column]: [u32; 2],
        sums: &[f32; L],
    ) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        for (j, sum) in sums.as_chunks::<4>().0.iter().enumerate() {
            let column = column + j as u32 * 8 + 2 * t;
            for half in 0..2 {
                let row = row + g + half as u32 * 8;
                if row < args.rows && column < args.n {
                    // SAFETY: as promised by the caller.
                    unsafe {
                        args.output.store(gpu, row, column, batch, [sum[2 * half], sum[2 * half + 1]]);
                    }
                }
            }
        }
    }
}

/// Where a consumer warp's rows of A begin in a stage, and its warpgroup's part of B, in bytes.
struct Place {
    a: u32,
    b: u32,
}
