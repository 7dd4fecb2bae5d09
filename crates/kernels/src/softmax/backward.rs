//! The gradient of the softmax, from its result and that one's gradient, with the row in registers.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, WARP};

use super::fragment::Fragment;
use super::{Pass, REDUCTIONS, Tile, tile};
use crate::common::{reduce_row, row_shared_bytes};
use crate::{Bounds, DeviceValue, Kernel, RowRecord};

/// The gradient dx of the softmax's input, from its result y and that one's gradient dy: dxᵢ = s·yᵢ·(dyᵢ − Σⱼ yⱼ·dyⱼ), over a
/// row. The constants are those of [`Forward`](super::Forward); registers hold as much of y as of dy. Rows that do not fit are
/// read twice.
#[derive(Debug)]
pub struct Backward<T, const V: usize, const LANES: u32, const WARPS: u32, const CHUNKS: usize>(
    PhantomData<T>,
);

/// What [`Backward`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BackwardArgs<T> {
    /// `rows` records of [`RowRecord`] words, one for each row of this launch.
    pub row_table: GlobalPtr<u32>,
    /// y, row by row; 16-byte aligned. Read only.
    pub y: GlobalMut<T>,
    /// dy likewise. Read only.
    pub dy: GlobalMut<T>,
    /// dx likewise; may be y or dy.
    pub dx: GlobalMut<T>,
    /// Rows in the table.
    pub rows: u32,
    /// Elements from the values of one matrix of the batch to those of the next, in all; a multiple of 8.
    pub values_batch: u32,
    /// s.
    pub scale: f32,
}

impl<T: DeviceValue, const V: usize, const LANES: u32, const WARPS: u32, const CHUNKS: usize> Kernel
    for Backward<T, V, LANES, WARPS, CHUNKS>
{
    type Args = BackwardArgs<T>;
    type Tile = Tile;

    const TILE: Tile = tile::<T>(Pass::Backward, V, LANES, WARPS, CHUNKS);
    const THREADS: u32 = WARPS * WARP;
    const SHARED_BYTES: u32 = row_shared_bytes(LANES, REDUCTIONS);
    /// 16 warps a multiprocessor, with up to 128 registers a thread: each has twice as much under way as the softmax's.
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 16 / WARPS };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: BackwardArgs<T>) {
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
            y: args.y.add(matrix),
            dy: args.dy.add(matrix),
            scale: args.scale,
        };
        // SAFETY: the row lies in the matrices, and no other lanes have it. All its lanes go the same way.
        unsafe {
            let dx = args.dx.add(matrix);
            if row.fragment.tiles <= 1 { row.in_registers(gpu, dx) } else { row.in_passes(gpu, dx) }
        }
    }
}

/// What a lane knows of its row.
#[derive(Clone, Copy)]
struct Row<T, const V: usize, const LANES: u32, const CHUNKS: usize> {
    fragment: Fragment<V, LANES, CHUNKS>,
    y: GlobalMut<T>,
    dy: GlobalMut<T>,
    scale: f32,
}

/// What a lane has of a tile of y and of dy.
struct Pair<const V: usize, const CHUNKS: usize> {
    y: [[f32; V]; CHUNKS],
    dy: [[f32; V]; CHUNKS],
}

impl<T: DeviceValue, const V: usize, const LANES: u32, const CHUNKS: usize> Row<T, V, LANES, CHUNKS> {
    /// The gradient of a row that fits into registers.
    ///
    /// # Safety
    /// As for [`Fragment::store`].
    #[inline(always)]
    unsafe fn in_registers<G: Gpu>(&self, gpu: G, dx: GlobalMut<T>) {
        // SAFETY: as promised by the caller.
        unsafe {
            let (y, dy) = (self.fragment.load(gpu, self.y, 0), self.fragment.load(gpu, self.dy, 0));
            let edge = self.edge(gpu);
            let mut pair = self.pair(gpu, 0, &y, &dy);
            let sum = self.dot(gpu, &pair, edge.0 * edge.1);
            let sum = reduce_row::<G, LANES>(gpu, 0, sum, |a, b| a + b);
            self.write(gpu, dx, 0, &mut pair, sum);
            self.fragment.store_edge(gpu, dx, self.gradient(edge.0, edge.1, sum));
        }
    }

    /// The gradient of a longer row, which is loaded twice.
    ///
    /// # Safety
    /// As for [`Fragment::store`].
    #[inline(always)]
    unsafe fn in_passes<G: Gpu>(&self, gpu: G, dx: GlobalMut<T>) {
        // SAFETY: as promised by the caller.
        unsafe {
            let edge = self.edge(gpu);
            let mut sum = edge.0 * edge.1;
            for tile in 0..self.fragment.tiles {
                sum = self.dot(gpu, &self.load(gpu, tile), sum);
            }
            let sum = reduce_row::<G, LANES>(gpu, 0, sum, |a, b| a + b);
            for tile in 0..self.fragment.tiles {
                self.write(gpu, dx, tile, &mut self.load(gpu, tile), sum);
            }
            self.fragment.store_edge(gpu, dx, self.gradient(edge.0, edge.1, sum));
        }
    }

    /// y and dy at the row's ends.
    ///
    /// # Safety
    /// As for [`Fragment::load`].
    #[inline(always)]
    unsafe fn edge<G: Gpu>(&self, gpu: G) -> (f32, f32) {
        // SAFETY: as promised by the caller.
        unsafe { (self.fragment.load_edge(gpu, self.y, 0.0), self.fragment.load_edge(gpu, self.dy, 0.0)) }
    }

    /// # Safety
    /// As for [`Fragment::load`].
    #[inline(always)]
    unsafe fn load<G: Gpu>(&self, gpu: G, tile: u32) -> Pair<V, CHUNKS> {
        // SAFETY: as promised by the caller.
        let (y, dy) =
            unsafe { (self.fragment.load(gpu, self.y, tile), self.fragment.load(gpu, self.dy, tile)) };
        self.pair(gpu, tile, &y, &dy)
    }

    #[inline(always)]
    fn pair<G: Gpu>(
        &self,
        gpu: G,
        tile: u32,
        y: &[[u32; 4]; CHUNKS],
        dy: &[[u32; 4]; CHUNKS],
    ) -> Pair<V, CHUNKS> {
        Pair {
            y: self.fragment.numbers::<G, T>(gpu, tile, y, 0.0),
            dy: self.fragment.numbers::<G, T>(gpu, tile, dy, 0.0),
        }
    }

    /// Adds the products of y and dy to `sum`. What is absent adds 0·0.
    #[inline(always)]
    fn dot<G: Gpu>(&self, gpu: G, pair: &Pair<V, CHUNKS>, mut sum: f32) -> f32 {
        for (&y, &dy) in pair.y.as_flattened().iter().zip(pair.dy.as_flattened()) {
            sum = gpu.fma(y, dy, sum);
        }
        sum
    }

    #[inline(always)]
    fn gradient(&self, y: f32, dy: f32, sum: f32) -> f32 {
        self.scale * y * (dy - sum)
    }

    /// Writes a tile of gradients.
    ///
    /// # Safety
    /// As for [`Fragment::store`].
    #[inline(always)]
    unsafe fn write<G: Gpu>(
        &self,
        gpu: G,
        dx: GlobalMut<T>,
        tile: u32,
        pair: &mut Pair<V, CHUNKS>,
        sum: f32,
    ) {
        for (y, &dy) in pair.y.as_flattened_mut().iter_mut().zip(pair.dy.as_flattened()) {
            *y = self.gradient(*y, dy, sum);
        }
        // SAFETY: as promised by the caller.
        unsafe { self.fragment.store(gpu, dx, tile, &pair.y) };
    }
}
