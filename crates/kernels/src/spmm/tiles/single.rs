//! Tiles of `f32`.
//!
//! A stage holds BM rows of A ([`rows`](super::rows)), each WK chunks of 32 values, and 32·WK rows of BN values of B. Both
//! are swizzled: the 16-byte piece that a lane reads first is another from row to row of A, and after each four rows of B,
//! so that the lanes of an access lie in different banks. A consumer takes K in the order in which its registers come: of 16 columns, lane `t` of four has the columns
//! 4t to 4t+3. mma sums over K, so any order will do if A and B agree.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr, WARP};

use super::finish::{Sums, join};
use super::ring::Ring;
use super::rows::{Filling, Rows};
use super::shape::{Consumer, Shape};
use super::{TileArgs, again};
use crate::common::{Products, are_finite, pack, pack_lo};
use crate::spmm::{Scheme, Tile};
use crate::{Bounds, IndexType, Kernel, RowMask, ValueType};

/// Columns of A in a chunk.
const CHUNK: u32 = RowMask::COLUMNS;
/// Columns of B in a copy: 16 bytes.
const COPY: u32 = 4;

/// SpMM by tiles of `f32`, with products `P`. The other constants are those of a shape (tiles/shape.rs).
#[derive(Debug)]
pub struct SingleTiles<
    P,
    const RT: usize,
    const NT: usize,
    const WM: u32,
    const WN: u32,
    const WK: u32,
    const TEAMS: u32,
    const PRODUCERS: u32,
    const STAGES: u32,
>(PhantomData<P>);

impl<
    P: Products,
    const RT: usize,
    const NT: usize,
    const WM: u32,
    const WN: u32,
    const WK: u32,
    const TEAMS: u32,
    const PRODUCERS: u32,
    const STAGES: u32,
> Kernel for SingleTiles<P, RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>
{
    type Args = TileArgs<f32>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(
            Self::STAGE_BYTES.is_multiple_of(Rows::<f32, Self>::ROW),
            "rows begin at multiples of their bytes"
        );
        Shape::<RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>::check(
            Self::STAGE_BYTES,
            WK * CHUNK * Self::BN / COPY,
        );
        Tile {
            value: ValueType::F32,
            index: IndexType::U32,
            vector: COPY,
            block_rows: Self::BM,
            block_columns: Self::BN,
            scheme: Scheme::Tiles { slices: WK, arithmetic: P::ARITHMETIC },
        }
    };
    const THREADS: u32 = Shape::<RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>::THREADS;
    const SHARED_BYTES: u32 = STAGES * Self::STAGE_BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 1 };
    const LETS_NEXT_BEGIN: bool = true;
    const LOOKS_AHEAD: bool = true;
    const MIN_SM: u32 = 80;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: TileArgs<f32>) {
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
    P: Products,
    const RT: usize,
    const NT: usize,
    const WM: u32,
    const WN: u32,
    const WK: u32,
    const TEAMS: u32,
    const PRODUCERS: u32,
    const STAGES: u32,
> Filling for SingleTiles<P, RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>
{
    const ROWS: u32 = Self::BM;
    const TILES: u32 = WK;
    const WARPS: u32 = PRODUCERS;
    const PART: u32 = 2;
    // A team by itself has no other's time for what comes late, and with wide tiles registers for more.
    const AHEAD: usize = if TEAMS == 1 && Self::BN >= 64 { 2 } else { 1 };
    const TILE_BY_TILE: bool = false;
}

/// What a producer lane needs to copy its part of B.
struct Source {
    /// B, at the lane's first row of the next step to fill and its columns.
    b: GlobalPtr<f32>,
    /// The lane's first row of B, in a step, and its first column.
    k: u32,
    column: u32,
    /// Rows of B that are left; 0 for columns outside.
    rows: u32,
}

impl<
    P: Products,
    const RT: usize,
    const NT: usize,
    const WM: u32,
    const WN: u32,
    const WK: u32,
    const TEAMS: u32,
    const PRODUCERS: u32,
    const STAGES: u32,
> SingleTiles<P, RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>
{
    const BM: u32 = Shape::<RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>::BM;
    const BN: u32 = Shape::<RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>::BN;
    const CONSUMERS: u32 = Shape::<RT, NT, WM, WN, WK, TEAMS, PRODUCERS, STAGES>::CONSUMERS;
    const A_BYTES: u32 = Rows::<f32, Self>::BYTES;
    const STAGE_BYTES: u32 = Self::A_BYTES + WK * CHUNK * Self::BN * 4;
    /// Whether the first clearing of each stage comes before all else. The later ones are then in a branch, and where a lane has
    /// two pieces under way there, ptxas lets them land first: tiles of 64×128 then took a quarter more.
    const CLEARS_EARLY: bool = <Self as Filling>::AHEAD == 1;
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
    unsafe fn produce<G: Gpu>(gpu: G, args: &TileArgs<f32>, row: u32, column: u32) {
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
            let mut rows = Rows::<f32, Self>::new(gpu, args, thread / WARP, team, row);
            rows.look_up(gpu, TEAMS);
            if Self::CLEARS_EARLY {
                for stage in ring.stages() {
                    rows.clear(gpu, stage * Self::STAGE_BYTES);
                }
            }
            gpu.wait_for_previous();
            let mut loaded = rows.next(gpu);
            rows.look_up(gpu, TEAMS);
            while !ring.is_done() {
                ring.wait_empty(gpu);
                Self::fill_b(gpu, args, &source, ring.stage);
                if !Self::CLEARS_EARLY || !ring.is_first() {
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
    unsafe fn fill_b<G: Gpu>(gpu: G, args: &TileArgs<f32>, source: &Source, stage: u32) {
        let b = SharedPtr::<f32>::from_offset(stage * Self::STAGE_BYTES + Self::A_BYTES);
        for i in 0..WK * CHUNK / Self::COPY_ROWS {
            let k = source.k + i * Self::COPY_ROWS;
            let from = source.b.add_rows(i * Self::COPY_ROWS, args.b_stride_bytes);
            let to = b.add(k * Self::BN + (source.column ^ (k / 4 % 4 * 8)));
            // SAFETY: rows and columns inside are live; the place is this thread's in the stage.
            unsafe { gpu.copy_async_or_zero::<f32, { COPY as usize }>(to, from, k < source.rows) };
        }
    }

    /// Multiplies all stages, one after the other. What a step needs first is loaded before the last products of the step
    /// before.
    ///
    /// # Safety
    /// All consumer warps are here.
    #[inline(always)]
    unsafe fn consume<G: Gpu>(gpu: G, args: &TileArgs<f32>, at: Consumer, sums: &mut Sums<RT, NT>) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        let a = (at.m * RT as u32 * 8 + g) * WK * CHUNK + at.k * CHUNK;
        let b = (at.k * CHUNK + 4 * t) * Self::BN;
        let column = at.n * NT as u32 * 16 + 2 * g;
        let lane = Lane {
            a: [a + ((4 * t) ^ (g % 2 * 16)), a + ((4 * t + 16) ^ (g % 2 * 16))],
            b: [b + (column ^ (t * 8)), b + ((column + 16) ^ (t * 8))],
        };
        let mut ring = Self::ring(args.cols);
        if ring.is_done() {
            return;
        }
        ring.wait_full(gpu);
        // SAFETY: a stage is read while it is full.
        unsafe {
            let mut x = Self::load_a(gpu, &lane, ring.stage, 0);
            let mut w = Self::load_b(gpu, &lane, ring.stage, 0);
            loop {
                let stage = ring.stage;
                let w1 = Self::load_b(gpu, &lane, stage, 1);
                Self::multiply(gpu, &x, &w, 0, sums);
                let x1 = Self::load_a(gpu, &lane, stage, 1);
                let w2 = Self::load_b(gpu, &lane, stage, 2);
                Self::multiply(gpu, &x, &w1, 1, sums);
                Self::correct(gpu, &x, [&w, &w1], sums);
                let w3 = Self::load_b(gpu, &lane, stage, 3);
                Self::multiply(gpu, &x1, &w2, 0, sums);
                Self::multiply(gpu, &x1, &w3, 1, sums);
                ring.next(gpu);
                x = Self::load_a(gpu, &lane, ring.stage, 0);
                w = Self::load_b(gpu, &lane, ring.stage, 0);
                ring.release(gpu, stage);
                Self::correct(gpu, &x1, [&w2, &w3], sums);
                if ring.is_done() {
                    return;
                }
            }
        }
    }

    /// A lane's part of 16 columns of A, `half` of a chunk: of each row, the columns 4t to 4t+3.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    unsafe fn load_a<G: Gpu>(gpu: G, lane: &Lane, stage: u32, half: usize) -> [[f32; 4]; RT] {
        let a = SharedPtr::<f32>::from_offset(stage * Self::STAGE_BYTES).add(lane.a[half]);
        let mut x = [[0.0; 4]; RT];
        for (r, x) in x.iter_mut().enumerate() {
            // SAFETY: the rows lie in the stage.
            *x = unsafe { gpu.shared_load(a.add(r as u32 * 8 * WK * CHUNK)) };
        }
        x
    }

    /// A lane's part of 8 rows of B, `quarter` of a chunk: two neighbouring rows, and of each 16 columns two neighbours.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    unsafe fn load_b<G: Gpu>(gpu: G, lane: &Lane, stage: u32, quarter: u32) -> [[f32; 4]; NT] {
        let b = SharedPtr::<f32>::from_offset(stage * Self::STAGE_BYTES + Self::A_BYTES)
            .add((quarter / 2 * 16 + quarter % 2 * 2) * Self::BN);
        let mut w = [[0.0; 4]; NT];
        for (n, w) in w.iter_mut().enumerate() {
            let from = b.add(lane.b[n % 2] + n as u32 / 2 * 32);
            // SAFETY: the rows lie in the stage.
            unsafe {
                let [u0, u1] = gpu.shared_load(from);
                let [v0, v1] = gpu.shared_load(from.add(Self::BN));
                *w = [u0, u1, v0, v1];
            }
        }
        w
    }

    /// Adds the products in TF32 of 8 columns of A, `half` of those in `x`.
    #[inline(always)]
    fn multiply<G: Gpu>(
        gpu: G,
        x: &[[f32; 4]; RT],
        w: &[[f32; 4]; NT],
        half: usize,
        sums: &mut Sums<RT, NT>,
    ) {
        for n in 0..NT {
            for r in 0..RT {
                sums[r][n] = gpu.mma_tf32(w[n], [x[r][2 * half], x[r][2 * half + 1]], sums[r][n]);
            }
        }
    }

    /// Adds what the products in TF32 of 16 columns left out.
    #[inline(always)]
    fn correct<G: Gpu>(gpu: G, x: &[[f32; 4]; RT], w: [&[[f32; 4]; NT]; 2], sums: &mut Sums<RT, NT>) {
        if !P::SPLIT {
            return;
        }
        let mut whole = [[0; 2]; RT];
        let mut left = [[0; 2]; RT];
        for (r, x) in x.iter().enumerate() {
            whole[r] = [pack(gpu, x[0], x[1]), pack(gpu, x[2], x[3])];
            left[r] = [pack_lo(gpu, x[0], x[1]), pack_lo(gpu, x[2], x[3])];
        }
        for n in 0..NT {
            let (p, q) = (&w[0][n], &w[1][n]);
            let lo = [
                pack_lo(gpu, p[0], p[2]),
                pack_lo(gpu, p[1], p[3]),
                pack_lo(gpu, q[0], q[2]),
                pack_lo(gpu, q[1], q[3]),
            ];
            for r in 0..RT {
                sums[r][n] = gpu.mma_bf16(lo, whole[r], sums[r][n]);
            }
            let hi =
                [pack(gpu, p[0], p[2]), pack(gpu, p[1], p[3]), pack(gpu, q[0], q[2]), pack(gpu, q[1], q[3])];
            for r in 0..RT {
                sums[r][n] = gpu.mma_bf16(hi, left[r], sums[r][n]);
            }
        }
    }

    /// Writes a warp's part of C: a lane has, of each 8 rows, two, and of each 16 columns two neighbours.
    ///
    /// # Safety
    /// The part is this warp's alone; what lies in C of it is live.
    #[inline(always)]
    unsafe fn store<G: Gpu>(
        gpu: G,
        args: &TileArgs<f32>,
        batch: u32,
        [row, column]: [u32; 2],
        sums: &Sums<RT, NT>,
    ) {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        for (r, sums) in sums.iter().enumerate() {
            for odd in 0..2 {
                let row = row + r as u32 * 8 + 2 * t + odd as u32;
                for (n, sum) in sums.iter().enumerate() {
                    let column = column + n as u32 * 16 + 2 * g;
                    if row < args.rows && column < args.n {
                        // SAFETY: as promised by the caller.
                        unsafe { args.output.store(gpu, row, column, batch, [sum[odd], sum[odd + 2]]) };
                    }
                }
            }
        }
    }
}

/// A consumer lane's places in a stage, in elements: in its first row of A, for either half of a chunk; in its first row of
/// B, for even and odd 16 columns.
struct Lane {
    a: [u32; 2],
    b: [u32; 2],
}
