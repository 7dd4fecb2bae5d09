//! Tiles of 16-bit values.
//!
//! A stage holds, for each of its WK chunks, BM rows of 64 values of A and 64 rows of BN values of B; rows are 16 bytes
//! longer than that, so that the eight rows of a matrix load lie in different banks. There are no asynchronous copies of
//! two bytes, so A passes through registers: a half-warp takes a row, each lane four columns of it. Their values are
//! neighbours in memory, at most four; the lane loads the three words that hold them, while the step before is filled.
use core::marker::PhantomData;

use lacuna_gpu::{Bf16, F16, GlobalPtr, Gpu, SharedPtr, WARP};

use super::finish::{Sums, are_finite, join};
use super::ring::Ring;
use super::shape::{Consumer, Shape};
use super::{RowMask, TileArgs, again};
use crate::spmm::{Arithmetic, Scheme, Tile};
use crate::{Bounds, DeviceValue, IndexType, Kernel};

/// Columns of A in a chunk: those of two masks.
const CHUNK: u32 = 2 * RowMask::COLUMNS;
/// Columns of B in a copy: 16 bytes.
const COPY: u32 = 8;
/// Elements from one row of A to the next, in a stage.
const A_ROW: u32 = CHUNK + 8;

/// A 16-bit value that tensor cores multiply.
pub trait HalfValue: DeviceValue {
    /// `A·B + C` by a warp: see [`Gpu::mma_f16`].
    fn mma<G: Gpu>(gpu: G, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];
}
impl HalfValue for F16 {
    #[inline(always)]
    fn mma<G: Gpu>(gpu: G, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        gpu.mma_f16(a, b, c)
    }
}
impl HalfValue for Bf16 {
    #[inline(always)]
    fn mma<G: Gpu>(gpu: G, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        gpu.mma_bf16(a, b, c)
    }
}

/// SpMM by tiles of 16-bit values of `T`. A producer warp fills `PAIRS` pairs of rows a step; the other constants are
/// those of a shape (tiles/shape.rs).
#[derive(Debug)]
pub struct HalfTiles<
    T,
    const PAIRS: usize,
    const RT: usize,
    const NT: usize,
    const WM: u32,
    const WN: u32,
    const WK: u32,
    const PRODUCERS: u32,
    const STAGES: u32,
>(PhantomData<T>);

impl<
    T: HalfValue,
    const PAIRS: usize,
    const RT: usize,
    const NT: usize,
    const WM: u32,
    const WN: u32,
    const WK: u32,
    const PRODUCERS: u32,
    const STAGES: u32,
> Kernel for HalfTiles<T, PAIRS, RT, NT, WM, WN, WK, PRODUCERS, STAGES>
{
    type Args = TileArgs<T>;
    type Tile = Tile;

    const TILE: Tile = {
        Shape::<RT, NT, WM, WN, WK, PRODUCERS, STAGES>::check(
            Self::STAGE_BYTES,
            WK * CHUNK * Self::BN / COPY,
        );
        assert!(
            Self::ROWS == 2 * PAIRS as u32 && Self::ROWS <= RowMask::ROWS,
            "a warp's records lie together"
        );
        Tile {
            value: T::TYPE,
            index: IndexType::U32,
            vector: COPY,
            block_rows: Self::BM,
            block_columns: Self::BN,
            scheme: Scheme::Tiles { slices: WK, producers: PRODUCERS, arithmetic: Arithmetic::Half },
        }
    };
    const THREADS: u32 = Shape::<RT, NT, WM, WN, WK, PRODUCERS, STAGES>::THREADS;
    const SHARED_BYTES: u32 = STAGES * Self::STAGE_BYTES;
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 1 };
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

/// What a producer lane needs to fill a stage.
struct Source<T> {
    /// The record of the lane's first row, in its mask of the next chunk to fill.
    masks: GlobalPtr<u32>,
    /// Whether the warp has rows.
    has_rows: bool,
    /// Masks of a row that are left from there on.
    masks_left: u32,
    /// The lane's first column in its mask.
    shift: u32,
    /// The words that hold the values.
    words: GlobalPtr<u32>,
    /// B, at the lane's first row of the next step to fill and its columns.
    b: GlobalPtr<T>,
    /// The lane's first row of B, in a step, and its first column.
    k: u32,
    column: u32,
    /// Rows of B that are left; 0 for columns outside.
    rows: u32,
}

/// A lane's four columns of a row: which have a value, and the index of the first of them.
#[derive(Clone, Copy, Default)]
struct Four {
    bits: u32,
    first: u32,
}

impl<
    T: HalfValue,
    const PAIRS: usize,
    const RT: usize,
    const NT: usize,
    const WM: u32,
    const WN: u32,
    const WK: u32,
    const PRODUCERS: u32,
    const STAGES: u32,
> HalfTiles<T, PAIRS, RT, NT, WM, WN, WK, PRODUCERS, STAGES>
{
    const BM: u32 = Shape::<RT, NT, WM, WN, WK, PRODUCERS, STAGES>::BM;
    const BN: u32 = Shape::<RT, NT, WM, WN, WK, PRODUCERS, STAGES>::BN;
    const CONSUMERS: u32 = Shape::<RT, NT, WM, WN, WK, PRODUCERS, STAGES>::CONSUMERS;
    const ROWS: u32 = Shape::<RT, NT, WM, WN, WK, PRODUCERS, STAGES>::ROWS;
    const A_BYTES: u32 = WK * Self::BM * A_ROW * 2;
    /// Elements from one row of B to the next, in a stage.
    const B_ROW: u32 = Self::BN + 8;
    const STAGE_BYTES: u32 = Self::A_BYTES + WK * CHUNK * Self::B_ROW * 2;
    /// Rows of B that the producers copy at once.
    const COPY_ROWS: u32 = PRODUCERS * WARP * COPY / Self::BN;

    /// Fills all stages, one after the other.
    ///
    /// # Safety
    /// The arguments describe live memory; all producer warps are here.
    #[inline(always)]
    unsafe fn produce<G: Gpu>(gpu: G, args: &TileArgs<T>, row: u32, column: u32) {
        let thread = gpu.thread_idx_x() - Self::CONSUMERS * WARP;
        let (warp, lane) = (thread / WARP, thread % WARP);
        let masks = RowMask::chunks(args.cols);
        let first = warp * Self::ROWS;
        let (own_row, own_chunk) = (row + first % Self::BM, first / Self::BM);
        let own_mask = 2 * own_chunk + lane / 8 % 2;
        let own_column = thread % (Self::BN / COPY) * COPY;
        let k = thread / (Self::BN / COPY);
        let mut source = Source {
            masks: args.masks.add(RowMask::index(own_row + lane / 16, own_mask, masks) * RowMask::WORDS),
            // Records are there for eight rows at a time.
            has_rows: own_row < args.rows,
            masks_left: masks.saturating_sub(own_mask),
            shift: lane % 8 * 4,
            words: GlobalPtr::from_address(args.values.address()),
            b: args.b.add_rows(k, args.b_stride_bytes).add((column + own_column) as usize),
            k,
            column: own_column,
            rows: if column + own_column < args.n { args.cols } else { 0 },
        };
        let place = (first + lane / 16) * A_ROW / 2 + lane % 16 * 2;
        let mut ring = Ring::<STAGES>::new(args.cols.div_ceil(CHUNK).div_ceil(WK), Self::THREADS);
        // SAFETY: records are read where there are some; a stage is filled while it is empty.
        unsafe {
            let mut fours = source.next::<G, PAIRS, WK>(gpu);
            let mut words = source.load(gpu, &fours);
            let mut later = source.next::<G, PAIRS, WK>(gpu);
            while !ring.is_done() {
                ring.wait_empty(gpu);
                Self::fill_b(gpu, args, &source, ring.stage);
                let a = SharedPtr::<u32>::from_offset(ring.stage * Self::STAGE_BYTES).add(place);
                for (i, four) in fours.iter().enumerate() {
                    gpu.shared_store(a.add(i as u32 * A_ROW), spread(*four, words[i]));
                }
                fours = later;
                words = source.load(gpu, &fours);
                later = source.next::<G, PAIRS, WK>(gpu);
                source.b = source.b.add_rows(WK * CHUNK, args.b_stride_bytes);
                source.rows = source.rows.saturating_sub(WK * CHUNK);
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
        let a = (at.k * Self::BM + at.m * RT as u32 * 8 + lane % 8) * A_ROW + lane / 8 * 8;
        let row = at.k * CHUNK + lane % 8 + lane / 16 * 8;
        let b = row * Self::B_ROW + at.n * NT as u32 * 16 + lane / 8 % 2 * 8;
        let mut ring = Ring::<STAGES>::new(args.cols.div_ceil(CHUNK).div_ceil(WK), Self::THREADS);
        if ring.is_done() {
            return;
        }
        ring.wait_full(gpu);
        loop {
            let stage = ring.stage;
            let start = stage * Self::STAGE_BYTES;
            let a = SharedPtr::<u16>::from_offset(start).add(a);
            let b = SharedPtr::<u16>::from_offset(start + Self::A_BYTES).add(b);
            // SAFETY: the stage is full.
            unsafe {
                Self::multiply(gpu, a, b, sums);
                Self::multiply(gpu, a.add(CHUNK / 2), b.add(CHUNK / 2 * Self::B_ROW), sums);
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
    unsafe fn multiply<G: Gpu>(gpu: G, a: SharedPtr<u16>, b: SharedPtr<u16>, sums: &mut Sums<RT, NT>) {
        let mut x = [[0; 4]; RT];
        // SAFETY: rows of A and B lie in the stage.
        unsafe {
            for (r, x) in x.iter_mut().enumerate() {
                *x = gpu.shared_load_matrices::<false>(a.add(r as u32 * 8 * A_ROW));
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

impl<T> Source<T> {
    /// The lane's columns of the warp's rows in the next chunk, and on to the one after.
    ///
    /// # Safety
    /// The masks are live.
    #[inline(always)]
    unsafe fn next<G: Gpu, const PAIRS: usize, const WK: u32>(&mut self, gpu: G) -> [Four; PAIRS] {
        let mut fours = [Four::default(); PAIRS];
        if self.has_rows && self.masks_left > 0 {
            for (i, four) in fours.iter_mut().enumerate() {
                // SAFETY: there is a record.
                let [mask, first] =
                    unsafe { gpu.load_readonly::<u32, 2>(self.masks.add(2 * i * RowMask::WORDS)) };
                let below = mask & ((1 << self.shift) - 1);
                *four = Four { bits: mask >> self.shift & 15, first: first + below.count_ones() };
            }
        }
        self.masks = self.masks.add(2 * WK as usize * RowMask::NEXT_CHUNK * RowMask::WORDS);
        self.masks_left = self.masks_left.saturating_sub(2 * WK);
        fours
    }

    /// The words that hold the lane's values: its first value is in the lower or the upper half of the first word.
    ///
    /// # Safety
    /// The values are live, with the padding that the arguments promise.
    #[inline(always)]
    unsafe fn load<G: Gpu, const PAIRS: usize>(&self, gpu: G, fours: &[Four; PAIRS]) -> [[u32; 3]; PAIRS] {
        let mut words = [[0; 3]; PAIRS];
        for (words, four) in words.iter_mut().zip(fours) {
            let from = self.words.add((four.first / 2) as usize);
            for (i, word) in words.iter_mut().enumerate() {
                // SAFETY: the first value's index is at most the number of values.
                [*word] = unsafe { gpu.load_readonly(from.add(i)) };
            }
        }
        words
    }
}

/// Puts values, which lie one after the other in `words`, where their columns are; zeros elsewhere.
#[inline(always)]
fn spread(four: Four, [x, y, z]: [u32; 3]) -> [u32; 2] {
    let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let odd = four.first % 2 * 16;
    let (first, second) = ((wide(x, y) >> odd) as u32, (wide(y, z) >> odd) as u32);
    let taken = (four.bits & 3).count_ones() * 16;
    let rest = (wide(first, second) >> taken) as u32;
    [spread_two(four.bits, first), spread_two(four.bits >> 2, rest)]
}

/// The same for two columns.
#[inline(always)]
fn spread_two(bits: u32, values: u32) -> u32 {
    let placed = if bits & 1 != 0 { values } else { values << 16 };
    let low = if bits & 1 != 0 { 0xffff } else { 0 };
    let high = if bits & 2 != 0 { 0xffff_0000 } else { 0 };
    placed & (low | high)
}
