//! SDDMM by column panels: the nonzeros of C are cut by panels of columns, whose rows of B stay in L1.
//!
//! ```text
//!   C, its columns in panels          A group of LANES lanes owns a tile: the nonzeros of one row in one panel, or a part
//!  ┌─────────┬─────────┬────────      of them.
//!  │ x  x  x │ x     x │  x   x       1. A's row, all of K, is loaded once, and stays in registers.
//!  │ ─────── │         │              2. Each lane loads the column of one of LANES nonzeros, a load ahead of its use,
//!  │ x x   x │   x x   │ x x             and hands it to the others by a shuffle.
//!  │  a tile │         │              3. The rows of B of N nonzeros are loaded together; each lane adds its products.
//!  └─────────┴─────────┴────────      4. The lanes exchange and add the parts of these sums (common/reduce.rs), and write LANES
//!                                        neighbours of D at once.
//! ```
//! Tiles come panel after panel, so that the rows of B that blocks read at one time are those of a panel, which L1 holds;
//! and within a panel by falling length, so that the groups of a warp end together.
use core::array;
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, WARP};

use super::operands::add_products;
use super::{Operands, Scheme, Tile};
use crate::common::{subwarp_mask, transpose_sums, widened};
use crate::{Bounds, DeviceIndex, DeviceValue, Kernel, RowRecord};

/// SDDMM by column panels, for K, or splits of it, of at most `LANES · V · C`. The constants are those of [`NonzeroSplit`](super::NonzeroSplit).
#[derive(Debug)]
pub struct ColumnPanels<
    T,
    I,
    const V: usize,
    const C: usize,
    const N: usize,
    const LANES: usize,
    const WARPS: u32,
>(PhantomData<(T, I)>);

/// What the entry points of [`ColumnPanels`] take. The grid's x is the tiles, its z the splits and the batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ColumnPanelArgs<T, I> {
    /// [`RowRecord`]s of tiles, 16-byte aligned: the row of C, and where its nonzeros in the panel begin and end. None is empty.
    pub table: GlobalPtr<u32>,
    /// The column of each nonzero.
    pub columns: GlobalPtr<I>,
    /// What is multiplied, and where results go.
    pub operands: Operands<T>,
}

impl<T, I, const V: usize, const C: usize, const N: usize, const LANES: usize, const WARPS: u32> Kernel
    for ColumnPanels<T, I, V, C, N, LANES, WARPS>
where
    T: DeviceValue,
    I: DeviceIndex,
{
    type Args = ColumnPanelArgs<T, I>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(V.is_power_of_two() && V * size_of::<T>() <= 16, "a lane loads at most 16 bytes");
        assert!(N == 2 || N == 4, "2 or 4 sums are added up together");
        assert!(LANES.is_power_of_two() && LANES >= N && LANES <= WARP as usize, "lanes of one warp");
        assert!(WARPS >= 1 && Self::THREADS <= 1024, "a block has at most 1024 threads");
        Tile {
            value: T::TYPE,
            index: I::TYPE,
            vector: V as u32,
            block_items: WARPS * WARP / Self::GROUP,
            scheme: Scheme::ColumnPanel { lanes: Self::GROUP, vectors: C as u32, at_once: N as u32 },
        }
    };
    const THREADS: u32 = WARPS * WARP;
    /// 32 warps of an SM leave a thread 64 registers.
    const BOUNDS: Bounds = Bounds { max_threads: Self::THREADS, min_blocks: 32 / WARPS };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ColumnPanelArgs<T, I>) {
        let (group, lane) = (gpu.thread_idx_x() / Self::GROUP, gpu.thread_idx_x() % Self::GROUP);
        let tile = gpu.block_idx_x() * (WARPS * WARP / Self::GROUP) + group;
        if tile >= args.operands.items {
            return;
        }
        // SAFETY: the table has a record for each tile.
        let tile = unsafe { RowRecord::load(gpu, args.table, tile as usize) };
        let z = gpu.block_idx_z();
        let mask = subwarp_mask(group % (WARP / Self::GROUP) * Self::GROUP, Self::GROUP);
        let operands = args.operands.for_z(z, lane * V as u32);
        // SAFETY: as the caller promises of the operands; vectors that are not inside are not touched.
        unsafe {
            if operands.k == Self::CHUNK {
                Self::pass(gpu, args.columns, &operands, tile, [lane, mask], z, [true; C]);
            } else {
                let inside = array::from_fn(|c| lane * V as u32 + c as u32 * Self::STEP < operands.k);
                Self::pass(gpu, args.columns, &operands, tile, [lane, mask], z, inside);
            }
        }
    }
}

impl<T, I, const V: usize, const C: usize, const N: usize, const LANES: usize, const WARPS: u32>
    ColumnPanels<T, I, V, C, N, LANES, WARPS>
where
    T: DeviceValue,
    I: DeviceIndex,
{
    const GROUP: u32 = LANES as u32;
    /// Elements from one vector of a lane to its next.
    const STEP: u32 = Self::GROUP * V as u32;
    /// The longest K.
    const CHUNK: u32 = Self::STEP * C as u32;

    /// Computes the tile, by the lanes of `mask`, where this lane's vectors `inside` are parts of rows.
    ///
    /// # Safety
    /// `operands` has A and B from the lane's first element on; the tile is one of C's.
    #[inline(always)]
    unsafe fn pass<G: Gpu>(
        gpu: G,
        columns: GlobalPtr<I>,
        operands: &Operands<T>,
        tile: RowRecord,
        [lane, mask]: [u32; 2],
        z: u32,
        inside: [bool; C],
    ) {
        let [a, b] = operands.fragments(0, inside);
        // SAFETY: as promised by the caller.
        let a: [[T; V]; C] = unsafe { a.load(gpu, tile.row, Self::STEP) };
        let a = widened(gpu, &a);
        let column = |at: u32| {
            let at = at + lane;
            let at = if at < tile.end { at } else { tile.end - 1 };
            // SAFETY: the tile's nonzeros have columns.
            let [column] = unsafe { gpu.load_readonly::<I, 1>(columns.add(at as usize)) };
            column.widen()
        };
        let mut ahead = column(tile.start);
        let mut at = tile.start;
        while at < tile.end {
            let own = ahead;
            ahead = column(at + Self::GROUP);
            let mut result = 0.0;
            let mut first = 0;
            while first < Self::GROUP && at + first < tile.end {
                let mut of_b = [[[T::default(); V]; C]; N];
                for (i, fragment) in of_b.iter_mut().enumerate() {
                    let column = gpu.warp_shuffle_idx(mask, own, first + i as u32, Self::GROUP);
                    // SAFETY: as promised by the caller; what comes after the tile repeats its last column.
                    *fragment = unsafe { b.load(gpu, column, Self::STEP) };
                }
                let mut sums = [0.0; N];
                for (sum, fragment) in sums.iter_mut().zip(&of_b) {
                    add_products(gpu, &a, fragment, sum);
                }
                let sum = transpose_sums(gpu, mask, lane, Self::GROUP, sums);
                if lane / N as u32 == first / N as u32 {
                    result = sum;
                }
                first += N as u32;
            }
            if at + lane < tile.end {
                // SAFETY: the nonzero is this lane's alone.
                unsafe { operands.store(gpu, at + lane, z, result) };
            }
            at += Self::GROUP;
        }
    }
}
