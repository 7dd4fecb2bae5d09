//! Bᵀ of a dense B: for operands that lie the other way.
//!
//! ```text
//!   from  rows × cols        A block takes tiles of 32 × 32. A warp reads a row of one, 32 neighbours, into shared
//!  ┌───┬───┬───┬───┐         memory, and writes a column of it, 32 neighbours again. Rows there are one element
//!  │   │▒▒▒│   │   │         longer than the tile's, so that a column lies in 32 different banks.
//!  └───┴───┴───┴───┘
//! ```
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, Scalar, SharedPtr};

use super::{Scheme, Tile};
use crate::{IndexType, Kernel, ValueType};

/// `to[c · rows + r] = from[r, c]`. `W` is a word as wide as a value: values are moved, and nothing is computed.
#[derive(Debug)]
pub struct DenseTranspose<W>(PhantomData<W>);

/// What [`DenseTranspose`] takes. The grid's x is the tiles, row by row, its z the batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DenseArgs<W> {
    /// `rows` × `cols`, row-major.
    pub from: GlobalPtr<W>,
    /// `cols` × `rows`, row-major and without gaps, to write.
    pub to: GlobalMut<W>,
    /// Elements from one matrix of the batch to the next in `from`. In `to` they follow each other.
    pub from_batch: u64,
    /// Bytes from one row of `from` to the next.
    pub stride_bytes: u32,
    /// Rows of `from`, not 0.
    pub rows: u32,
    /// Columns of `from`, not 0.
    pub cols: u32,
}

impl<W> DenseArgs<W> {
    /// Tiles of a matrix.
    pub const fn tiles(rows: u32, cols: u32) -> u64 {
        rows.div_ceil(SIDE) as u64 * cols.div_ceil(SIDE) as u64
    }
}

/// Rows and columns of a tile.
const SIDE: u32 = 32;
/// Warps of a block, and rows that they move at once.
const WARPS: u32 = 8;
/// Elements from one row of a tile to the next in shared memory.
const PITCH: u32 = SIDE + 1;

impl<W: Scalar> Kernel for DenseTranspose<W> {
    type Args = DenseArgs<W>;
    type Tile = Tile;

    const TILE: Tile = Tile {
        value: if size_of::<W>() == 4 { ValueType::F32 } else { ValueType::F16 },
        ..Tile::without_products(IndexType::U32, 1, Scheme::Transpose)
    };
    const THREADS: u32 = WARPS * SIDE;
    const SHARED_BYTES: u32 = SIDE * PITCH * size_of::<W>() as u32;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: DenseArgs<W>) {
        let (warp, lane) = (gpu.thread_idx_x() / SIDE, gpu.thread_idx_x() % SIDE);
        let across = args.cols.div_ceil(SIDE);
        let (row, column) = (gpu.block_idx_x() / across * SIDE, gpu.block_idx_x() % across * SIDE);
        let batch = u64::from(gpu.block_idx_z());
        let from = args.from.add((batch * args.from_batch) as usize);
        let to = args.to.add((batch * u64::from(args.rows) * u64::from(args.cols)) as usize);
        let tile = SharedPtr::<W>::from_offset(0);
        // SAFETY: rows and columns are tested; a place of the tile is written by one thread, and read after the barrier.
        unsafe {
            for i in 0..SIDE / WARPS {
                let y = i * WARPS + warp;
                if row + y < args.rows && column + lane < args.cols {
                    let source = from.add_rows(row + y, args.stride_bytes).add((column + lane) as usize);
                    let value: [W; 1] = gpu.load_streaming(source);
                    gpu.shared_store(tile.add(y * PITCH + lane), value);
                }
            }
            gpu.sync_threads();
            for i in 0..SIDE / WARPS {
                let x = i * WARPS + warp;
                if column + x < args.cols && row + lane < args.rows {
                    let value: [W; 1] = gpu.shared_load(tile.add(lane * PITCH + x));
                    let place = u64::from(column + x) * u64::from(args.rows) + u64::from(row + lane);
                    gpu.store(to.add(place as usize), value);
                }
            }
        }
    }
}
