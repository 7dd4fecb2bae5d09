//! Attention of one query a warp.
//!
//! ```text
//!    32 keys of a query                K                       A warp owns a query, whose row of Q it has in registers.
//!   ┌─┬─┬─┬─┬─┬─┬─┬─┬─…          ┌───────────┐                 Its keys come 32 at a time:
//!   │0│1│2│3│0│1│2│3│            │▒▒▒▒▒▒▒▒▒▒▒│ group 0           1. groups of LANES lanes load a row of K each, LANES
//!   └─┴─┴─┴─┴─┴─┴─┴─┴─…          │           │                      rounds, and multiply it with Q;
//!    which group takes it        │▒▒▒▒▒▒▒▒▒▒▒│ group 1           2. a transposing butterfly leaves each lane one score;
//!   ┌───────────┐                │▒▒▒▒▒▒▒▒▒▒▒│ group 2           3. these become weights, 2^(score − max), and what was
//!   │     Q     │ each group     └───────────┘                      summed so far is rescaled where the maximum grows;
//!   └───────────┘                      V                         4. groups load rows of V, and add them, weighted.
//! ```
//! At last the groups add up by shuffles, and divide by the sum of weights. Rows come by falling length.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, WARP};

use super::lanes::{ABSENT, Fragment};
use super::row::{Head, Keys};
use super::{Args, Scheme, Tile};
use crate::{Bounds, DeviceIndex, DeviceValue, Kernel, RowRecord};

/// Attention by rows.
///
/// - `T`, `I`: types of the values, and of the mask's column indices. Sums are `f32`.
/// - `V`: elements that a lane loads at once (16 bytes at most).
/// - `LANES`: lanes that share a row of K or V.
/// - `CHUNKS`: vectors of a row that a lane has: rows are of `V · LANES · CHUNKS` elements at most.
/// - `U`: keys of a group whose loads are under way together.
/// - `MODIFIES`: whether scores may be within a soft cap, and lessened by distance.
#[derive(Debug)]
pub struct Rows<
    T,
    I,
    const V: usize,
    const LANES: usize,
    const CHUNKS: usize,
    const U: usize,
    const MODIFIES: bool,
>(PhantomData<(T, I)>);

/// Warps of a block. They never wait for each other.
const WARPS: u32 = 4;

impl<
    T: DeviceValue,
    I: DeviceIndex,
    const V: usize,
    const LANES: usize,
    const CHUNKS: usize,
    const U: usize,
    const MODIFIES: bool,
> Kernel for Rows<T, I, V, LANES, CHUNKS, U, MODIFIES>
{
    type Args = Args<T, I>;
    type Tile = Tile;

    const TILE: Tile = {
        assert!(V.is_power_of_two() && V * size_of::<T>() <= 16, "a lane loads 16 bytes at most");
        assert!(LANES.is_power_of_two() && LANES <= WARP as usize, "lanes pair up in shuffles");
        assert!(U <= LANES && LANES.is_multiple_of(U), "rounds come in whole batches");
        Tile {
            value: T::TYPE,
            vector: V as u32,
            lanes: LANES as u32,
            dimension: (V * LANES * CHUNKS) as u32,
            block_rows: WARPS,
            scheme: if MODIFIES {
                Scheme::ModifiedRow { index: I::TYPE }
            } else {
                Scheme::Row { index: I::TYPE }
            },
        }
    };
    const THREADS: u32 = WARPS * WARP;
    /// A lane has an offset and a sum for each of those that share a row, and its part of some rows: the more there are, the
    /// more registers.
    const BOUNDS: Bounds = {
        let min_blocks = match LANES {
            _ if V == 1 => 4,
            32 => 4,
            16 => 2,
            _ if V * CHUNKS >= 16 => 2,
            _ if V * CHUNKS >= 8 => 4,
            _ => 5,
        };
        Bounds { max_threads: WARPS * WARP, min_blocks }
    };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Args<T, I>) {
        let index = gpu.block_idx_x() * WARPS + gpu.thread_idx_x() / WARP;
        if index >= args.operands.shape.rows {
            return;
        }
        // SAFETY: the table has a record for each query, each for one row.
        unsafe {
            let RowRecord { row, start, end } = RowRecord::load(gpu, args.row_table, index as usize);
            let head = Head::of::<G, MODIFIES>(gpu, &args.operands, gpu.block_idx_y());
            let keys = RowKeys { columns: args.columns, end };
            // Few keys are not worth loads of keys that are not there; single elements, and rows that a whole warp shares, are
            // not worth the registers.
            let fast = V > 1
                && LANES < WARP as usize
                && end - start >= WARP
                && head.is_whole((V * LANES * CHUNKS) as u32);
            let place = [start, end];
            if !(fast
                && Fragment::<V, LANES, CHUNKS>::attend_whole::<_, _, U, MODIFIES>(
                    gpu, &head, row, keys, place,
                ))
            {
                Fragment::<V, LANES, CHUNKS>::attend::<_, _, U, MODIFIES>(gpu, &head, row, keys, place);
            }
        }
    }
}

/// The columns of a row of the mask, which ends at `end`.
#[derive(Clone, Copy)]
struct RowKeys<I> {
    columns: GlobalPtr<I>,
    end: u32,
}

impl<I: DeviceIndex> Keys for RowKeys<I> {
    #[inline(always)]
    unsafe fn column<G: Gpu>(self, gpu: G, index: u32) -> u32 {
        if index >= self.end {
            return ABSENT;
        }
        // SAFETY: the place is one of the mask's.
        let [column] = unsafe { gpu.load_readonly::<I, 1>(self.columns.add(index as usize)) };
        column.widen()
    }
}
