//! The gradient of the weights: for each nonzero, the dot product of its row of the table with its bag's gradient.
use core::array;
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, WARP};

use super::index::TableIndex;
use super::nonzeros::Nonzeros;
use super::{Pass, Tile};
use crate::common::{RawVector, load_raw, reduce_each, unpack};
use crate::{Bounds, DeviceValue, Kernel};

/// The gradient of each nonzero's weight: the dot product of its row of the table with its bag's row of the result's gradient.
/// `V` columns a lane at a time.
///
/// A block has a bag. Its warps take turns at groups of four nonzeros, whose rows a warp goes along together.
#[derive(Debug)]
pub struct WeightGradient<T, I, const V: usize>(PhantomData<(T, I)>);

/// What [`WeightGradient`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct WeightArgs<T, I> {
    /// The bags, from the first of this launch on. Weights, places and scales are not read.
    pub nonzeros: Nonzeros<I>,
    /// A factor for each bag, from the first of this launch on; address 0 for 1.
    pub scales: GlobalPtr<f32>,
    /// The table, with rows aligned to vectors.
    pub table: GlobalPtr<T>,
    /// The result's gradient, from the first bag of this launch on, row-major, with rows aligned to vectors.
    pub gradient: GlobalPtr<T>,
    /// The gradient of each weight, to write; 0 for those of the padding index.
    pub out: GlobalMut<f32>,
    /// Bytes from one row of the table to the next.
    pub stride_bytes: u32,
    /// Bytes from one row of the result's gradient to the next.
    pub gradient_stride_bytes: u32,
    /// Columns of the table; a multiple of a vector.
    pub columns: u32,
}

/// Nonzeros that a warp works on together.
const ROWS: usize = 4;
/// Warps of a block.
const WARPS: u32 = 4;

impl<T: DeviceValue, I: TableIndex, const V: usize> Kernel for WeightGradient<T, I, V> {
    type Args = WeightArgs<T, I>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(V.is_power_of_two() && V * size_of::<T>() <= 16, "a lane loads at most 16 bytes at once");
        Tile {
            pass: Pass::Weights,
            value: T::TYPE,
            index_bits: I::BITS,
            vector: V as u32,
            lanes: WARP,
            chunks: 1,
            split: WARPS,
            rows: ROWS as u32,
            block_bags: 1,
            block_columns: u32::MAX,
        }
    };
    const THREADS: u32 = WARPS * WARP;

    /// 32 warps a multiprocessor, with up to 64 registers a thread.
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 32 / WARPS };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: WeightArgs<T, I>) {
        let bag = gpu.block_idx_x();
        let lane = gpu.lane_id();
        let gradient = args.gradient.add_rows(bag, args.gradient_stride_bytes);
        // SAFETY: there is this bag, with these nonzeros; no other warp writes their weights. All lanes go the same way.
        unsafe {
            let (start, end) = args.nonzeros.range(gpu, bag);
            let mut scale = 1.0;
            if args.scales.address() != 0 {
                [scale] = gpu.load_readonly(args.scales.add(bag as usize));
            }
            let mut at = start + gpu.thread_idx_x() / WARP * ROWS as u32;
            while at < end {
                let mut own = I::NONE;
                if lane < ROWS as u32 && at + lane < end {
                    let [index] = gpu.load_readonly(args.nonzeros.indices.add((at + lane) as usize));
                    if index != args.nonzeros.padding {
                        own = index;
                    }
                }
                let sums = args.dots::<G, V>(gpu, gradient, own);
                for (row, &sum) in sums.iter().enumerate() {
                    if lane == row as u32 && at + lane < end {
                        let value = if own == I::NONE { 0.0 } else { sum * scale };
                        gpu.store(args.out.add((at + lane) as usize), [value]);
                    }
                }
                at += ROWS as u32 * WARPS;
            }
        }
    }
}

impl<T: DeviceValue, I: TableIndex> WeightArgs<T, I> {
    /// The dot products of `gradient` with the rows that the first [`ROWS`] lanes name, for all lanes.
    ///
    /// # Safety
    /// The rows are the table's, or [`TableIndex::NONE`]; all lanes of the warp come.
    #[inline(always)]
    unsafe fn dots<G: Gpu, const V: usize>(&self, gpu: G, gradient: GlobalPtr<T>, own: I) -> [f32; ROWS] {
        let indices: [I; ROWS] = array::from_fn(|row| own.shuffle(gpu, FULL_WARP, row as u32, WARP));
        let mut sums = [0.0; ROWS];
        let mut column = gpu.lane_id() * V as u32;
        while column < self.columns {
            let mut words = [RawVector::default(); ROWS];
            // SAFETY: columns are whole vectors, and the rows are there.
            let gradient = unsafe {
                for (words, &index) in words.iter_mut().zip(&indices) {
                    if index != I::NONE {
                        let row = index.row(self.table, self.stride_bytes);
                        *words = load_raw::<G, T, V>(gpu, row.add(column as usize));
                    }
                }
                load_raw::<G, T, V>(gpu, gradient.add(column as usize))
            };
            let gradient = unpack::<G, T, V>(gpu, &gradient);
            for (sum, words) in sums.iter_mut().zip(&words) {
                let numbers = unpack::<G, T, V>(gpu, words);
                for (&element, &number) in gradient.iter().zip(&numbers) {
                    *sum = gpu.fma(element, number, *sum);
                }
            }
            column += WARP * V as u32;
        }
        reduce_each(gpu, FULL_WARP, WARP, sums, |a, b| a + b)
    }
}
