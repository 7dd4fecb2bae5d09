//! The schedule: the order in which tiles are taken, for locality in L2 and L1.
//!
//! ```text
//!   C, its rows in tiles               taken in this order      Tiles that run together as they stand go through all of
//!  ┌─0──┬──1──┬─2──┬──3──┬─            0 4 5 9 13 …             B's rows at once, and L1 holds few of them. So the tiles
//!  ├──4─┬──5─┬──6──┬─7───┬─            1 6 10 14 …              of a span are sorted by their first column: those of a
//!  ├─8──┬──9──┬──10─┬─11─┬─            2 7 11 …                 block then read neighbouring rows of B, each of them
//!  └────┴─────┴─────┴────┴─            3 8 12 …                 several times.
//! ```
//! Each tile counts the tiles of its span that come before it; so nothing is sorted step by step, and the order is the same
//! in every run.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, SharedPtr};

use super::{Scheme, TILE, Tile};
use crate::{DeviceIndex, Kernel};

/// Makes the order, a block a span.
#[derive(Debug)]
pub struct TileSchedule<I>(PhantomData<I>);

/// What [`TileSchedule`] takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScheduleArgs<I> {
    /// The column of each nonzero.
    pub columns: GlobalPtr<I>,
    /// The number of a tile for each tile, to write.
    pub order: GlobalMut<u32>,
    /// Tiles of [`TILE`] nonzeros, of which the last may have fewer.
    pub tiles: u32,
}

/// Tiles of a span: 32,768 nonzeros. A longer one would bring a block's tiles nearer together, but of rows of A farther apart.
const SPAN: u32 = 1024;
/// Columns that a thread compares at once.
const QUAD: u32 = 4;

impl<I: DeviceIndex> Kernel for TileSchedule<I> {
    type Args = ScheduleArgs<I>;
    type Tile = Tile;

    const TILE: Tile = Tile::without_products(I::TYPE, SPAN, Scheme::Schedule);
    const THREADS: u32 = SPAN;
    const SHARED_BYTES: u32 = SPAN * size_of::<u32>() as u32;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: ScheduleArgs<I>) {
        let thread = gpu.thread_idx_x();
        let first = gpu.block_idx_x() * SPAN;
        let tile = first + thread;
        let columns = SharedPtr::<u32>::from_offset(0);
        // No column: what is not there comes after all that is.
        let mut own = u32::MAX;
        // SAFETY: a tile has a first nonzero; each thread writes its own places, and reads others' after the barrier.
        unsafe {
            if tile < args.tiles {
                let [column] = gpu.load_readonly::<I, 1>(args.columns.add((tile * TILE) as usize));
                own = column.widen();
            }
            gpu.shared_store(columns.add(thread), [own]);
            gpu.sync_threads();
            let mut before = 0;
            for quad in 0..SPAN / QUAD {
                let others: [u32; QUAD as usize] = gpu.shared_load(columns.add(quad * QUAD));
                for (i, &other) in others.iter().enumerate() {
                    let is_earlier = quad * QUAD + (i as u32) < thread;
                    before += u32::from(other < own || (other == own && is_earlier));
                }
            }
            if tile < args.tiles {
                gpu.store(args.order.add((first + before) as usize), [tile]);
            }
        }
    }
}
