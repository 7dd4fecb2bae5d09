//! The lookup: sums or means of the table's rows that a bag names. Subwarps split a bag; mod.rs draws how.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, WARP};

use super::epilogue::shared_bytes;
use super::index::TableIndex;
use super::nonzeros::Nonzeros;
use super::{Pass, Tile};
use crate::common::{RawVector, load_raw, subwarp_mask, unpack};
use crate::{Bounds, DeviceValue, Kernel};

/// Sums or means of the rows that bags name, of a table of `T`, with indices of type `I`: `LANES` lanes of a subwarp, `V` columns
/// a vector, `CHUNKS` vectors a lane; `SPLIT` subwarps share a bag, `WARPS` warps are a block, and `ROWS` rows of the table are
/// under way together.
#[derive(Debug)]
pub struct Lookup<
    T,
    I,
    const V: usize,
    const LANES: u32,
    const CHUNKS: usize,
    const SPLIT: u32,
    const WARPS: u32,
    const ROWS: usize,
>(PhantomData<(T, I)>);

/// What [`Lookup`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LookupArgs<T, I> {
    /// The bags, from the first of this launch on.
    pub nonzeros: Nonzeros<I>,
    /// The table, with rows aligned to vectors.
    pub table: GlobalPtr<T>,
    /// The result, from the first bag of this launch on. Row-major it is aligned to vectors.
    pub out: GlobalMut<T>,
    /// Elements from one row of the result to the next: from bag to bag, or where it is transposed from column to column.
    pub out_stride: u64,
    /// Bytes from one row of the table to the next.
    pub stride_bytes: u32,
    /// Bags of this launch.
    pub bags: u32,
    /// Columns of the table; a multiple of a vector.
    pub columns: u32,
    /// Parts into which a block's columns cut them (not 0).
    pub parts: u32,
    /// Whether sums are divided by the number of nonzeros, those of the padding index not counted: 0 or 1.
    pub mean: u32,
    /// Whether the result is transposed, a row of it a column of the table: 0 or 1.
    pub transposed: u32,
}

impl<
    T: DeviceValue,
    I: TableIndex,
    const V: usize,
    const LANES: u32,
    const CHUNKS: usize,
    const SPLIT: u32,
    const WARPS: u32,
    const ROWS: usize,
> Kernel for Lookup<T, I, V, LANES, CHUNKS, SPLIT, WARPS, ROWS>
{
    type Args = LookupArgs<T, I>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(V.is_power_of_two() && V * size_of::<T>() <= 16, "a lane loads at most 16 bytes at once");
        assert!(LANES.is_power_of_two() && LANES <= WARP, "a subwarp is in one warp");
        assert!(
            ROWS.is_power_of_two() && ROWS as u32 <= LANES,
            "indices of a turn are in the subwarp's lanes"
        );
        assert!(CHUNKS >= 1, "a lane has a vector");
        assert!(WARPS >= 1 && Self::THREADS <= 1024, "a block has at most 1024 threads");
        assert!(
            SPLIT.is_power_of_two() && Self::THREADS.is_multiple_of(LANES * SPLIT),
            "bags fit into a block"
        );
        Tile {
            pass: Pass::Lookup,
            value: T::TYPE,
            index_bits: I::BITS,
            vector: V as u32,
            lanes: LANES,
            chunks: CHUNKS as u32,
            split: SPLIT,
            rows: ROWS as u32,
            block_bags: Self::THREADS / (LANES * SPLIT),
            block_columns: LANES * (V * CHUNKS) as u32,
        }
    };
    const THREADS: u32 = WARPS * WARP;
    const SHARED_BYTES: u32 = shared_bytes(Self::TILE, Self::THREADS);
    /// 24 warps a multiprocessor, with up to 85 registers a thread, of which rows that are under way take 32. Few bags that
    /// are shared should all be at work at once: there 32 warps, with 64 registers, where they do.
    const BOUNDS: Bounds = Bounds {
        max_threads: Self::THREADS,
        min_blocks: if SPLIT > 1 && V < 8 && I::BITS == 32 { 32 } else { 24 } / WARPS,
    };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: LookupArgs<T, I>) {
        let block = gpu.block_idx_x();
        let subwarp = gpu.thread_idx_x() / LANES;
        let first_bag = block / args.parts * Self::TILE.block_bags;
        let first_column = block % args.parts * Self::TILE.block_columns;
        let bag = first_bag + subwarp / SPLIT;
        let (mut start, mut end) = (0, 0);
        if bag < args.bags {
            // SAFETY: there is this bag.
            (start, end) = unsafe { args.nonzeros.range(gpu, bag) };
        }
        // Neighbouring nonzeros for each subwarp, as many as for the others.
        let each = (end - start).div_ceil(SPLIT);
        start = least(start + subwarp % SPLIT * each, end);
        end = least(start + each, end);
        let column = first_column + gpu.thread_idx_x() % LANES * V as u32;
        // SAFETY: the nonzeros are the subwarp's, and all its lanes have the same.
        unsafe {
            let (count, sums) = Self::sum(gpu, &args, column, [start, end]);
            Self::write(gpu, &args, [first_bag, first_column], count, sums);
        }
    }
}

#[inline(always)]
fn least(a: u32, b: u32) -> u32 {
    if a < b { a } else { b }
}

impl<
    T: DeviceValue,
    I: TableIndex,
    const V: usize,
    const LANES: u32,
    const CHUNKS: usize,
    const SPLIT: u32,
    const WARPS: u32,
    const ROWS: usize,
> Lookup<T, I, V, LANES, CHUNKS, SPLIT, WARPS, ROWS>
{
    /// How many of the nonzeros `at..end` count, and the lane's part of the sum of their rows, from column `column` on.
    ///
    /// # Safety
    /// There are these nonzeros, of rows of the table; all lanes of the subwarp come with the same.
    #[inline(always)]
    unsafe fn sum<G: Gpu>(
        gpu: G,
        args: &LookupArgs<T, I>,
        column: u32,
        [mut at, end]: [u32; 2],
    ) -> (u32, [[f32; V]; CHUNKS]) {
        let mask = subwarp_mask(gpu.lane_id() / LANES * LANES, LANES);
        let lane = gpu.lane_id() % LANES;
        let mut sums = [[0.0; V]; CHUNKS];
        let mut count = 0;
        // SAFETY: as promised by the caller; shuffles meet because all lanes of the subwarp go the same way.
        unsafe {
            let mut next = args.nonzeros.load(gpu, at + lane, end);
            while at < end {
                let own = next;
                next = args.nonzeros.load(gpu, at + LANES + lane, end);
                count += gpu.warp_ballot(mask, own.index != I::NONE).count_ones();
                let here = least(end - at, LANES);
                let mut turn = 0;
                while turn < here {
                    let mut words = [[RawVector::default(); CHUNKS]; ROWS];
                    for (row, words) in words.iter_mut().enumerate() {
                        let index = own.index.shuffle(gpu, mask, turn + row as u32, LANES);
                        Self::load(gpu, args, column, index, words);
                    }
                    // Weights are handed round when rows come, so that they take no registers until then.
                    for (row, words) in words.iter().enumerate() {
                        let weight = gpu.warp_shuffle_idx(mask, own.weight, turn + row as u32, LANES);
                        Self::add(gpu, words, weight, &mut sums);
                    }
                    turn += ROWS as u32;
                }
                at += LANES;
            }
        }
        (count, sums)
    }

    /// Loads the lane's part of a row; zeros where it has none, and where there is no row.
    ///
    /// # Safety
    /// The index is of a row of the table, or [`TableIndex::NONE`].
    #[inline(always)]
    unsafe fn load<G: Gpu>(
        gpu: G,
        args: &LookupArgs<T, I>,
        column: u32,
        index: I,
        words: &mut [RawVector; CHUNKS],
    ) {
        let row = index.row(args.table, args.stride_bytes).add(column as usize);
        for (chunk, words) in words.iter_mut().enumerate() {
            let offset = chunk * LANES as usize * V;
            if index != I::NONE && column + (offset as u32) < args.columns {
                // SAFETY: the row is there and has this vector, since columns are whole vectors.
                *words = unsafe { load_raw::<G, T, V>(gpu, row.add(offset)) };
            }
        }
    }

    /// Adds the lane's part of a row.
    #[inline(always)]
    fn add<G: Gpu>(gpu: G, words: &[RawVector; CHUNKS], weight: f32, sums: &mut [[f32; V]; CHUNKS]) {
        for (sums, words) in sums.iter_mut().zip(words) {
            let numbers = unpack::<G, T, V>(gpu, words);
            for (sum, &number) in sums.iter_mut().zip(&numbers) {
                *sum = gpu.fma(weight, number, *sum);
            }
        }
    }
}
