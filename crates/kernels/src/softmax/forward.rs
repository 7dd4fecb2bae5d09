//! The softmax of each row: the maximum, the sum of exponentials, and the division, with the row in registers.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, WARP};

use super::fragment::Fragment;
use super::{Pass, REDUCTIONS, Tile, tile};
use crate::common::{reduce_row, row_shared_bytes};
use crate::{Bounds, DeviceValue, Kernel, RowRecord};

/// The softmax of values of `T`, `V` in 16 bytes: `LANES` lanes have a row, and `CHUNKS` of its chunks each in registers;
/// `WARPS` warps are a block.
///
/// Exponents are (x − m)·s·log₂e, with the difference taken first: its error is relative to it, however large x and m are.
#[derive(Debug)]
pub struct Forward<T, const V: usize, const LANES: u32, const WARPS: u32, const CHUNKS: usize>(
    PhantomData<T>,
);

/// What [`Forward`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ForwardArgs<T> {
    /// `rows` records of [`RowRecord`] words, one for each row of this launch.
    pub row_table: GlobalPtr<u32>,
    /// x, row by row; 16-byte aligned. Read only.
    pub x: GlobalMut<T>,
    /// y likewise; may be x.
    pub y: GlobalMut<T>,
    /// Rows in the table.
    pub rows: u32,
    /// Elements from the values of one matrix of the batch to those of the next, in both; a multiple of 8.
    pub values_batch: u32,
    /// 1, or −1 where the scale is negative.
    pub sign: f32,
    /// The scale's size, times log₂e; finite and above 0.
    pub exponent_scale: f32,
}

/// What a value outside of the row counts as: it adds nothing.
const ABSENT: f32 = f32::NEG_INFINITY;

impl<T: DeviceValue, const V: usize, const LANES: u32, const WARPS: u32, const CHUNKS: usize> Kernel
    for Forward<T, V, LANES, WARPS, CHUNKS>
{
    type Args = ForwardArgs<T>;
    type Tile = Tile;

    const TILE: Tile = tile::<T>(Pass::Forward, V, LANES, WARPS, CHUNKS);
    const THREADS: u32 = WARPS * WARP;
    const SHARED_BYTES: u32 = row_shared_bytes(LANES, REDUCTIONS);
    /// 32 warps a multiprocessor, with 64 registers a thread: what is under way hides the waits.
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 32 / WARPS };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ForwardArgs<T>) {
        let thread = gpu.thread_idx_x();
        let index = gpu.block_idx_x() * Self::TILE.block_rows + thread / LANES;
        if index >= args.rows {
            return;
        }
        // SAFETY: the table has a record for each of `args.rows`.
        let record = unsafe { RowRecord::load(gpu, args.row_table, index as usize) };
        if record.start == record.end {
            return;
        }
        let matrix = gpu.block_idx_y() as usize * args.values_batch as usize;
        let row = Row {
            fragment: Fragment::<V, LANES, CHUNKS>::of(record, thread % LANES),
            x: args.x.add(matrix),
            sign: args.sign,
            exponent_scale: args.exponent_scale,
        };
        // SAFETY: the row lies in the matrices, and no other lanes have it. All its lanes go the same way.
        unsafe {
            let y = args.y.add(matrix);
            if row.fragment.tiles <= 1 { row.in_registers(gpu, y) } else { row.in_passes(gpu, y) }
        }
    }
}

/// What a lane knows of its row.
#[derive(Clone, Copy)]
struct Row<T, const V: usize, const LANES: u32, const CHUNKS: usize> {
    fragment: Fragment<V, LANES, CHUNKS>,
    x: GlobalMut<T>,
    sign: f32,
    exponent_scale: f32,
}

impl<T: DeviceValue, const V: usize, const LANES: u32, const CHUNKS: usize> Row<T, V, LANES, CHUNKS> {
    /// The softmax of a row that fits into registers.
    ///
    /// # Safety
    /// As for [`Fragment::store`].
    #[inline(always)]
    unsafe fn in_registers<G: Gpu>(&self, gpu: G, y: GlobalMut<T>) {
        // SAFETY: as promised by the caller.
        unsafe {
            let words = self.fragment.load(gpu, self.x, 0);
            let edge = self.edge(gpu);
            let mut numbers = self.numbers(gpu, 0, &words);
            let greatest = reduce_row::<G, LANES>(gpu, 0, self.greatest(&numbers, edge), f32::max);
            let edge = self.exponential(gpu, edge, greatest);
            let sum = edge + self.exponentials(gpu, &mut numbers, greatest);
            let inverse = gpu.rcp_approx(reduce_row::<G, LANES>(gpu, 1, sum, |a, b| a + b));
            self.write(gpu, y, 0, &mut numbers, inverse);
            self.fragment.store_edge(gpu, y, edge * inverse);
        }
    }

    /// The softmax of a longer row, which is loaded three times.
    ///
    /// # Safety
    /// As for [`Fragment::store`].
    #[inline(always)]
    unsafe fn in_passes<G: Gpu>(&self, gpu: G, y: GlobalMut<T>) {
        // SAFETY: as promised by the caller.
        unsafe {
            let edge = self.edge(gpu);
            let mut greatest = edge;
            for tile in 0..self.fragment.tiles {
                greatest = self.greatest(&self.load(gpu, tile), greatest);
            }
            let greatest = reduce_row::<G, LANES>(gpu, 0, greatest, f32::max);
            let edge = self.exponential(gpu, edge, greatest);
            let mut sum = edge;
            for tile in 0..self.fragment.tiles {
                sum += self.exponentials(gpu, &mut self.load(gpu, tile), greatest);
            }
            let inverse = gpu.rcp_approx(reduce_row::<G, LANES>(gpu, 1, sum, |a, b| a + b));
            for tile in 0..self.fragment.tiles {
                let mut numbers = self.load(gpu, tile);
                self.exponentials(gpu, &mut numbers, greatest);
                self.write(gpu, y, tile, &mut numbers, inverse);
            }
            self.fragment.store_edge(gpu, y, edge * inverse);
        }
    }

    /// The value at the row's ends, with the scale's sign.
    ///
    /// # Safety
    /// As for [`Fragment::load`].
    #[inline(always)]
    unsafe fn edge<G: Gpu>(&self, gpu: G) -> f32 {
        // SAFETY: as promised by the caller.
        unsafe { self.fragment.load_edge(gpu, self.x, ABSENT * self.sign) * self.sign }
    }

    /// The values of a tile, with the scale's sign.
    ///
    /// # Safety
    /// As for [`Fragment::load`].
    #[inline(always)]
    unsafe fn load<G: Gpu>(&self, gpu: G, tile: u32) -> [[f32; V]; CHUNKS] {
        // SAFETY: as promised by the caller.
        let words = unsafe { self.fragment.load(gpu, self.x, tile) };
        self.numbers(gpu, tile, &words)
    }

    #[inline(always)]
    fn numbers<G: Gpu>(&self, gpu: G, tile: u32, words: &[[u32; 4]; CHUNKS]) -> [[f32; V]; CHUNKS] {
        let mut numbers = self.fragment.numbers::<G, T>(gpu, tile, words, ABSENT * self.sign);
        for number in numbers.as_flattened_mut() {
            *number *= self.sign;
        }
        numbers
    }

    /// The greatest of all these. NaN does not count here: it shows in the sum.
    #[inline(always)]
    fn greatest(&self, numbers: &[[f32; V]; CHUNKS], mut greatest: f32) -> f32 {
        for &number in numbers.as_flattened() {
            greatest = greatest.max(number);
        }
        greatest
    }

    #[inline(always)]
    fn exponential<G: Gpu>(&self, gpu: G, number: f32, greatest: f32) -> f32 {
        gpu.exp2_approx((number - greatest) * self.exponent_scale)
    }

    /// Puts exponentials in the numbers' place, and gives their sum.
    #[inline(always)]
    fn exponentials<G: Gpu>(&self, gpu: G, numbers: &mut [[f32; V]; CHUNKS], greatest: f32) -> f32 {
        let mut sum = 0.0;
        for number in numbers.as_flattened_mut() {
            *number = self.exponential(gpu, *number, greatest);
            sum += *number;
        }
        sum
    }

    /// Writes a tile of exponentials, times `inverse`.
    ///
    /// # Safety
    /// As for [`Fragment::store`].
    #[inline(always)]
    unsafe fn write<G: Gpu>(
        &self,
        gpu: G,
        y: GlobalMut<T>,
        tile: u32,
        exponentials: &mut [[f32; V]; CHUNKS],
        inverse: f32,
    ) {
        for exponential in exponentials.as_flattened_mut() {
            *exponential *= inverse;
        }
        // SAFETY: as promised by the caller.
        unsafe { self.fragment.store(gpu, y, tile, exponentials) };
    }
}
