//! Tiles of 16-bit values.
//!
//! A stage holds BM rows of A ([`rows`](super::rows)), each WK chunks of 64 values, and 64·WK rows of BN values of B. Those
//! of A are swizzled, and those of B 16 bytes longer than that, so that the eight rows of a matrix load lie in different
//! banks.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr, WARP};

use super::finish::{Sums, join};
use super::ring::Ring;
use super::rows::{Filling, Rows, TILE_ROW, TileValue};
use super::shape::{Consumer, Shape};
use super::{TileArgs, again};
use crate::common::are_finite;
use crate::spmm::{Scheme, Tile};
use crate::{Arithmetic, Bounds, HalfValue, IndexType, Kernel, RowMask};

/// Columns of A in a chunk.
const CHUNK: u32 = 2 * RowMask::COLUMNS;
/// Columns of B in a copy: 16 bytes.
const COPY: u32 = 8;

/// SpMM by tiles of 16-bit values of `T`. The constants are those of a shape (tiles/shape.rs).
#[derive(Debug)]
pub struct HalfTiles<
    T,
    const RT: usize,
    const NT: usize,
    const WM: u32,
    const WN: u32,
    const WK: u32,
    const TEAMS: u32,
    const PRODUCERS: u32,
    const STAGES: u32,
>(PhantomData<T>);

impl<
    T: HalfValue + TileValue,
    const RT: usize,
    const NT: usize,
    const WM: u32,
    const WN: u32,
    const WK: u32,
    const TEAMS: u32,
    const PRODUCERS: u32,
    const STAGES: u32,
> Kernel for HalfTiles<T, RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>
{
    type Args = TileArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(
            Self::STAGE_BYTES.is_multiple_of(Rows::<T, Self>::ROW),
            "rows begin at multiples of their bytes"
        );
        Shape::<RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>::check(
            Self::STAGE_BYTES,
            WK * CHUNK * Self::BN / COPY,
        );
        Tile {
            value: T::TYPE,
            index: IndexType::U32,
            vector: COPY,
            block_rows: Self::BM,
            block_columns: Self::BN,
            scheme: Scheme::Tiles { slices: WK, arithmetic: Arithmetic::Half },
        }
    };
    const THREADS: u32 = Shape::<RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>::THREADS;
    const SHARED_BYTES: u32 = STAGES * Self::STAGE_BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 1 };
    const LETS_NEXT_BEGIN: bool = true;
    const LOOKS_AHEAD: bool = true;
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TileArgs<T>) {
        let batch = gpu.block_idx_z();
        let args = args.of_product(batch);
        let warp = gpu.thread_idx_x() / WARP;
        let row = gpu.block_idx_x() * Self::BM;
        let column = gpu.block_idx_y() * Self::BN;
        let mut sums = [[[0.0; 4]; NT]; RT];
        // SAFETY: the arguments describe the matrices. Stages are shared as the ring says, and free after it; each warp
        // stores its own part of C, which lies in it where row and column do.
        unsafe {
            if warp >= Self::CONSUMERS {
                Self::produce(gpu, &args, row, column);
            } else {
                gpu.wait_for_previous();
                Self::consume(gpu, &args, Consumer::of::<WM, WN>(warp), &mut sums);
            }
            join::<G, WK>(gpu, sums.as_flattened_mut(), warp, Self::CONSUMERS);
            let stores = warp < WM * WN;
            if gpu.sync_threads_or(stores && !are_finite(sums.as_flattened().as_flattened())) {
                again::again(gpu, &args, batch, [row, column], [Self::BM, Self::BN]);
            } else if stores {
                let at = Consumer::of::<WM, WN>(warp);
                let row = row + at.m * RT as u32 * 8;
                let column = column + at.n * NT as u32 * 16;
                Self::store(gpu, &args, batch, [row, column], &sums);
            }
        }
    }
}

impl<
    T: HalfValue + TileValue,
    const RT: usize,
    const NT: usize,
    const WM: u32,
    const WN: u32,
    const WK: u32,
    const TEAMS: u32,
    const PRODUCERS: u32,
    const STAGES: u32,
> Filling for HalfTiles<T, RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>
{
    const ROWS: u32 = Self::BM;
    const TILES: u32 = WK;
    const WARPS: u32 = PRODUCERS;
    const PART: u32 = 2;
    const AHEAD: usize = 1;
    const TILE_BY_TILE: bool = false;
}

/// What a producer lane needs to copy its part of B.
struct Source<T> {
    /// B, at the lane's first row of the next step to fill and its columns.
    b: GlobalPtr<T>,
    /// The lane's first row of B, in a step, and its first column.
    k: u32,
    column: u32,
    /// Rows of B that are left; 0 for columns outside.
    rows: u32,
}

impl<
    T: HalfValue + TileValue,
    const RT: usize,
    const NT: usize,
    const WM: u32,
    const WN: u32,
    const WK: u32,
    const TEAMS: u32,
    const PRODUCERS: u32,
    const STAGES: u32,
> HalfTiles<T, RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>
{
    const BM: u32 = Shape::<RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>::BM;
    const BN: u32 = Shape::<RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>::BN;
    const CONSUMERS: u32 = Shape::<RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>::CONSUMERS;
    const A_BYTES: u32 = Rows::<T, Self>::BYTES;
    /// Elements from one row of B to the next, in a stage.
    const B_ROW: u32 = Self::BN + 8;
    const STAGE_BYTES: u32 = Self::A_BYTES + WK * CHUNK * Self::B_ROW * 2;
    /// Rows of B that the producers copy at once.
    const COPY_ROWS: u32 = PRODUCERS * WARP * COPY / Self::BN;

    #[inline(always)]
    fn ring(cols: u32) -> Ring<STAGES> {
        let threads = Shape::<RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>::AT_STAGE;
        Ring::new(cols.div_ceil(CHUNK).div_ceil(WK), threads)
    }

    /// Fills the team's stages, one after the other.
    ///
    /// # Safety
    /// The arguments describe live memory; all of the producer warp's team is here.
    #[inline(always)]
    unsafe fn produce<G: Gpu>(gpu: G, args: &TileArgs<T>, row: u32, column: u32) {
        let thread = gpu.thread_idx_x() - Self::CONSUMERS * WARP;
        let (team, thread) = (thread / (PRODUCERS * WARP), thread % (PRODUCERS * WARP));
        let own_column = thread % (Self::BN / COPY) * COPY;
        let k = thread / (Self::BN / COPY);
        let first = team * WK * CHUNK;
        let mut source = Source {
            b: args.b.add_rows(first + k, args.b_stride_bytes).add((column + own_column) as usize),
            k,
            column: own_column,
            rows: if column + own_column < args.n { args.cols.saturating_sub(first) } else { 0 },
        };
        let mut ring = Self::ring(args.cols).of_team::<TEAMS>(team);
        // SAFETY: records and values are read where there are some; a stage is filled while it is empty.
        unsafe {
            let mut rows = Rows::<T, Self>::new(gpu, args, thread / WARP, team, row);
            rows.look_up(gpu, TEAMS);
            for stage in ring.stages() {
                rows.clear(gpu, stage * Self::STAGE_BYTES);
            }
            gpu.wait_for_previous();
            let mut loaded = rows.next(gpu);
            rows.look_up(gpu, TEAMS);
            while !ring.is_done() {
                ring.wait_empty(gpu);
                Self::fill_b(gpu, args, &source, ring.stage);
                if !ring.is_first() {
                    rows.clear(gpu, ring.stage * Self::STAGE_BYTES);
                }
                rows.fill(gpu, ring.stage * Self::STAGE_BYTES, &loaded);
                loaded = rows.next(gpu);
                rows.look_up(gpu, TEAMS);
                source.b = source.b.add_rows(TEAMS * WK * CHUNK, args.b_stride_bytes);
                source.rows = source.rows.saturating_sub(TEAMS * WK * CHUNK);
                ring.started(gpu);
            }
            ring.drain(gpu);
        }
    }

    /// Starts copying the thread's part of B.
    ///
    /// # Safety
    /// The stage is empty.
    #[inline(always)]
    unsafe fn fill_b<G: Gpu>(gpu: G, args: &TileArgs<T>, source: &Source<T>, stage: u32) {
        let b = SharedPtr::<T>::from_offset(stage * Self::STAGE_BYTES + Self::A_BYTES);
        for i in 0..WK * CHUNK / Self::COPY_ROWS {
            let k = source.k + i * Self::COPY_ROWS;
            let from = source.b.add_rows(i * Self::COPY_ROWS, args.b_stride_bytes);
            let to = b.add(k * Self::B_ROW + source.column);
            // SAFETY: rows and columns inside are live; the place is this thread's in the stage.
            unsafe { gpu.copy_async_or_zero::<T, { COPY as usize }>(to, from, k < source.rows) };
        }
    }

    /// Multiplies all stages, one after the other.
    ///
    /// # Safety
    /// All consumer warps are here.
    #[inline(always)]
    unsafe fn consume<G: Gpu>(gpu: G, args: &TileArgs<T>, at: Consumer, sums: &mut Sums<RT, NT>) {
        let lane = gpu.lane_id();
        let first = at.m * RT as u32 * 8 + lane % 8;
        let a = first * WK * TILE_ROW + at.k * TILE_ROW + ((lane / 8 * 16) ^ T::swizzle(lane % 8));
        let row = at.k * CHUNK + lane % 8 + lane / 16 * 8;
        let b = row * Self::B_ROW + at.n * NT as u32 * 16 + lane / 8 % 2 * 8;
        let mut ring = Self::ring(args.cols);
        if ring.is_done() {
            return;
        }
        ring.wait_full(gpu);
        loop {
            let stage = ring.stage;
            let start = stage * Self::STAGE_BYTES;
            let a = start + a;
            let b = SharedPtr::<u16>::from_offset(start + Self::A_BYTES).add(b);
            // SAFETY: the stage is full.
            unsafe {
                Self::multiply(gpu, a, b, sums);
                Self::multiply(gpu, a ^ (TILE_ROW / 2), b.add(CHUNK / 2 * Self::B_ROW), sums);
            }
            ring.next(gpu);
            ring.release(gpu, stage);
            if ring.is_done() {
                return;
            }
        }
    }

    /// Adds the products of 32 columns of A.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "sums are indexed by rows first")]
    unsafe fn multiply<G: Gpu>(gpu: G, a: u32, b: SharedPtr<u16>, sums: &mut Sums<RT, NT>) {
        let mut x = [[0; 4]; RT];
        // SAFETY: rows of A and B lie in the stage.
        unsafe {
            for (r, x) in x.iter_mut().enumerate() {
                let from = SharedPtr::from_offset(a + r as u32 * 8 * WK * TILE_ROW);
                *x = gpu.shared_load_matrices::<false>(from);
            }
            for half in 0..2 {
                for n in 0..NT {
                    let from = b.add(half as u32 * 16 * Self::B_ROW + n as u32 * 16);
                    let w = gpu.shared_load_matrices::<true>(from);
                    for r in 0..RT {
                        sums[r][n] = T::mma(gpu, w, [x[r][2 * half], x[r][2 * half + 1]], sums[r][n]);
                    }
                }
            }
        }
    }

    /// Writes a warp's part of C: a lane has, of each 8 rows, two, and of each 16 columns two, eight apart.
    ///
    /// # Safety
    /// The part is this warp's alone; what lies in C of it is live.
    #[inline(always)]
    unsafe fn store<G: Gpu>(
        gpu: G,
        args: &TileArgs<T>,
        batch: u32,
        [row, column]: [u32; 2],
        sums: &Sums<RT, NT>,
    ) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        for (r, sums) in sums.iter().enumerate() {
            for (n, sum) in sums.iter().enumerate() {
                for (i, sum) in sum.iter().enumerate() {
                    let row = row + r as u32 * 8 + 2 * t + i as u32 % 2;
                    let column = column + n as u32 * 16 + i as u32 / 2 * 8 + g;
                    if row < args.rows && column < args.n {
                        // SAFETY: as promised by the caller.
                        unsafe { args.output.store(gpu, row, column, batch, [*sum]) };
                    }
                }
            }
        }
    }
}
