//! SpMM by rows, on CUDA cores: 1-D tiling with split rows.
//!
//! ```text
//!             B  K×N                 A group of LANES·SPLIT lanes computes one row of C, LANES·V columns wide. A warp
//!            ┌────┬──────┬────┐      has one group or several. The group loads the row's nonzeros by stages:
//!            │    │▒▒▒▒▒▒│    │        1. each lane loads four of them, while the stage before is multiplied;
//!            │    │▒▒▒▒▒▒│    │        2. they go to shared memory, where all lanes of the group see them;
//!   A  M×K   └────┴──────┴────┘        3. for four nonzeros at a time, each lane loads its V columns of four rows
//!  ┌───────┐ ┌────┬──────┬────┐           of B, and adds the products to V accumulators in registers. SPLIT
//!  │ x  x x│ │    │██████│    │           subwarps split the row: subwarp t takes the quads t, t + SPLIT, …
//!  └───────┘ └────┴──────┴────┘      The subwarps then add up their accumulators by shuffles, always in the same
//!                C  M×N              order. Rows come by falling length (row swizzle), so that a thread block's
//!             ◄─ LANES·V ─►          rows are about as long.
//! ```
//!
//! A thread block takes one row for each of its groups. A persistent block ([`Persistent`](super::Persistent)) takes row after
//! row: the warps that share a tile of columns take the rows in rounds, serpentine, there and back. A hybrid block
//! ([`Hybrid`](super::Hybrid)) splits the long rows among all subwarps of a warp, and gives each short row to one subwarp.
use core::marker::PhantomData;

use lacuna_gpu::{FULL_WARP, GlobalMut, Gpu, SharedPtr, WARP};

use super::config::KEPT_BYTES;
use super::form::{Form, Formed};
use super::products::{Columns, add_part, add_whole};
use super::stage::{RowNonzeros, Stage, aligned_start};
use super::{Args, QUAD, RowSplit, Tile, prefetch};
use crate::common::add_each_apart;
use crate::{Bounds, DeviceIndex, DeviceValue, Kernel, RowRecord};

/// Whole quads in one turn of the inner loop.
const UNROLL: u32 = 2;

/// More than any row's number.
const NO_ROW: u32 = u32::MAX;

impl<T, I, const V: usize, const LANES: u32, const SPLIT: u32, const WARPS: u32, F> Kernel
    for RowSplit<T, I, V, LANES, SPLIT, WARPS, F>
where
    T: DeviceValue,
    I: DeviceIndex,
    F: Form,
{
    type Args = Args<T, I>;
    type Tile = Tile;

    const TILE: Tile = Self::NUMBERS;
    const THREADS: u32 = Self::BLOCK_THREADS;
    const SHARED_BYTES: u32 = Self::BLOCK_BYTES;
    const BOUNDS: Bounds = Self::REGISTER_BOUNDS;
    /// With more than 32 registers a thread, as all have, such a block is alone.
    const LAUNCHES_DEPENDENTS: bool = WARPS == 32;

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: Args<T, I>) {
        // SAFETY: as promised by the caller; each group has rows of its own.
        unsafe {
            if F::PERSISTENT {
                prefetch::prefetch_l1::<G, T, I, Self>(gpu, &args);
                let long = if F::HYBRID { args.long_rows } else { args.rows };
                let round = Self::pass(gpu, &args, 0, [0, long]);
                if F::HYBRID {
                    // A subwarp is now a group by itself, with a stage of its own where the warp's was.
                    gpu.sync_warp(FULL_WARP);
                    RowSplit::<T, I, V, LANES, 1, WARPS, F>::pass(gpu, &args, round, [long, args.rows]);
                }
                return;
            }
            let group = gpu.thread_idx_x() / Self::GROUP;
            let index = gpu.block_idx_x() * Self::BLOCK_ROWS + group;
            let warp_has_rows = index - group % Self::WARP_ROWS < args.rows;
            if warp_has_rows {
                let c = args.output.product(gpu.block_idx_z());
                let part = Part { column_tile: gpu.block_idx_y(), steps: args.output.steps(), c };
                let row = (index < args.rows).then_some(index);
                Self::compute_row(gpu, &args, group * Self::STAGE_BYTES, row, || part);
            }
        }
    }
}

/// What a row is computed for.
#[derive(Clone, Copy)]
struct Part<T> {
    column_tile: u32,
    /// What is done to its accumulators: [`Output::steps`](super::Output).
    steps: u32,
    /// C of the product.
    c: GlobalMut<T>,
}

/// The place of this warp, of a block that stays, among those that share a tile of columns.
#[inline(always)]
fn place<G: Gpu>(gpu: G) -> u32 {
    gpu.thread_idx_x() / WARP * gpu.grid_dim_y() + gpu.block_idx_y()
}

/// The unit of the warp in this place in a round: of the units that `warps` over a tile of columns share, each takes one a
/// round. Every other round goes the other way round, so that no warp has the longest of all rounds.
#[inline(always)]
fn unit(warps: u32, round: u32, place: u32) -> u32 {
    round * warps + if round.is_multiple_of(2) { place } else { warps - 1 - place }
}

/// What a lane knows of the row that its group works on.
struct GroupRow<T, I, F> {
    nonzeros: RowNonzeros<T, I, F>,
    stage: Stage<F>,
    b: Columns<T, F>,
    /// The lane, in its group.
    lane: u32,
    /// The subwarp, in its group.
    subwarp: u32,
}

impl<T, I, const V: usize, const LANES: u32, const SPLIT: u32, const WARPS: u32, F>
    RowSplit<T, I, V, LANES, SPLIT, WARPS, F>
where
    T: DeviceValue,
    I: DeviceIndex,
    F: Form,
{
    /// Whether any group of the warp has something left. Groups of a warp go on together, also those that have not: where
    /// they part, ptxas cannot keep in uniform registers what all lanes share, and barriers of some lanes take several
    /// instructions.
    #[inline(always)]
    fn any<G: Gpu>(gpu: G, left: bool) -> bool {
        if Self::WARP_ROWS == 1 { left } else { gpu.warp_any(FULL_WARP, left) }
    }

    /// Computes rows `first` and on of the table, up to `end`, as they are dealt out from this round on; gives the round after.
    /// Each row before them was a unit; of these a unit has one for each group of a warp.
    ///
    /// # Safety
    /// The arguments describe live memory; the table has the rows, and each is dealt to one warp.
    #[inline(always)]
    unsafe fn pass<G: Gpu>(gpu: G, args: &Args<T, I>, round: u32, [first, end]: [u32; 2]) -> u32 {
        let kept = gpu.thread_idx_x() / WARP * Self::WARP_BYTES;
        let stages = kept + KEPT_BYTES;
        let (kept, c) = (SharedPtr::<u32>::from_offset(kept), SharedPtr::<u64>::from_offset(kept + 24));
        let last = first + (end - first).div_ceil(Self::WARP_ROWS);
        // SAFETY: what a warp keeps is its own; barriers part reads from writes.
        unsafe {
            if gpu.lane_id() == 0 {
                gpu.shared_store(kept, [place(gpu), WARPS * gpu.grid_dim_y()]);
                gpu.shared_store(kept.add(2), [round, last]);
                gpu.shared_store(kept.add(4), [gpu.block_idx_x(), args.output.steps()]);
                gpu.shared_store(c, [args.output.product(gpu.block_idx_z()).address()]);
            }
            gpu.sync_warp(FULL_WARP);
            let part = || {
                let [column_tile, steps] = gpu.shared_load(kept.add(4));
                let [c] = gpu.shared_load(c);
                Part { column_tile, steps, c: GlobalMut::from_address(c) }
            };
            loop {
                let [place, warps] = gpu.shared_load(kept);
                let [round, last] = gpu.shared_load(kept.add(2));
                let unit = unit(warps, round, place);
                if unit >= last {
                    return round;
                }
                let group = gpu.lane_id() / Self::GROUP;
                let index = first + (unit - first) * Self::WARP_ROWS + group;
                let row = (index < end).then_some(index);
                Self::compute_row(gpu, args, stages + group * Self::STAGE_BYTES, row, part);
                let [round] = gpu.shared_load(kept.add(2));
                gpu.sync_warp(FULL_WARP);
                if gpu.lane_id() == 0 {
                    gpu.shared_store(kept.add(2), [round + 1]);
                }
                gpu.sync_warp(FULL_WARP);
            }
        }
    }

    /// Computes row `index` of the table over a tile of columns, with the group's stage at `stage`; without a row the group goes
    /// along with the others of its warp.
    ///
    /// # Safety
    /// The arguments describe live memory; the table has the row, and no other group has it and this tile. All groups of the
    /// warp are here.
    #[inline(always)]
    unsafe fn compute_row<G: Gpu>(
        gpu: G,
        args: &Args<T, I>,
        stage: u32,
        index: Option<u32>,
        part: impl Fn() -> Part<T>,
    ) {
        let lane = gpu.thread_idx_x() % Self::GROUP;
        // Without a row it is an empty one, which C has not.
        let mut record = RowRecord { row: NO_ROW, start: 0, end: 0 };
        if let Some(index) = index {
            // SAFETY: the table has a record for each of `args.rows`.
            record = unsafe { RowRecord::load(gpu, args.row_table, index) };
        }

        // Lanes past the last column load the last one again: that costs no traffic, and no test in the loop.
        let (Part { column_tile, .. }, batch) = (part(), gpu.block_idx_z());
        let column = column_tile * Self::BLOCK_COLUMNS + lane % LANES * V as u32;
        let loaded = if column < args.n { column } else { args.n - V as u32 };
        let b = args.b.add((u64::from(batch) * args.b_batch) as usize);
        let row = GroupRow {
            nonzeros: RowNonzeros {
                values: args.values,
                columns: args.columns,
                values_skip: batch * args.values_batch,
                column_scale: if F::INDEX_PRE_SCALING { args.b_stride_bytes } else { 1 },
                form: PhantomData,
            },
            stage: Stage::at(stage, Self::STAGE),
            b: Columns {
                first: b.add_rows(loaded, size_of::<T>() as u32),
                stride_bytes: args.b_stride_bytes,
                form: PhantomData::<F>,
            },
            lane,
            subwarp: lane / LANES,
        };
        let mut accumulators = [0.0; V];
        // SAFETY: the arguments describe the matrices; the stage is this group's own.
        unsafe { Self::accumulate_row(gpu, &row, [record.start, record.end], &mut accumulators) };

        add_each_apart(gpu, FULL_WARP, [LANES, Self::GROUP], None, &mut accumulators);
        let Part { column_tile, steps, c } = part();
        let column = column_tile * Self::BLOCK_COLUMNS + lane % LANES * V as u32;
        if record.row != NO_ROW && row.subwarp == 0 && column < args.n {
            // SAFETY: the lane's columns lie in C, and no other lane has them.
            unsafe { args.output.store_by(gpu, steps, c, [record.row, column], accumulators) };
        }
    }

    /// Adds up a subwarp's share of a row, which has the nonzeros from `start` to `end`.
    ///
    /// # Safety
    /// The nonzeros and B are live; the stage belongs to this group of lanes.
    #[inline(always)]
    unsafe fn accumulate_row<G: Gpu>(
        gpu: G,
        row: &GroupRow<T, I, F>,
        [start, end]: [u32; 2],
        accumulators: &mut [f32; V],
    ) {
        let mut base = aligned_start(start);
        let mut early = start - base;
        let own = row.lane * QUAD;
        // SAFETY: a stage is put between two barriers of the warp, and read after the second.
        unsafe {
            let mut fetched = row.nonzeros.fetch(gpu, base + own, base + own < end);
            while Self::any(gpu, base < end) {
                let is_left = Self::WARP_ROWS == 1 || base < end;
                let left = if is_left { end - base } else { 0 };
                let columns = row.nonzeros.marked(&fetched, own, [early, left]);
                row.stage.put(gpu, row.lane, &fetched.values, columns);
                gpu.sync_warp(FULL_WARP);
                let next = base + Self::STAGE;
                fetched = row.nonzeros.fetch(gpu, next + own, next + own < end);
                let staged = if left < Self::STAGE { left } else { Self::STAGE };
                Self::multiply(gpu, row, early, staged, accumulators);
                gpu.sync_warp(FULL_WARP);
                // A group whose row has ended stays there: the longest row of its warp could take it past 2³².
                if is_left {
                    base = next;
                }
                early = 0;
            }
        }
    }

    /// Multiplies a subwarp's quads of a stage that holds the elements `early..staged` of the row.
    ///
    /// Residue handling (paper, section V-D.2): only the first and the last quad may be partial, so only they test
    /// their elements. The others go through an unrolled loop, and what the unrolling leaves through a short one.
    ///
    /// # Safety
    /// The stage is filled, and B is live.
    #[inline(always)]
    unsafe fn multiply<G: Gpu>(
        gpu: G,
        row: &GroupRow<T, I, F>,
        early: u32,
        staged: u32,
        accumulators: &mut [f32; V],
    ) {
        let GroupRow { stage, b, .. } = *row;
        let whole = staged / QUAD;
        let mut quad = row.subwarp;
        if !F::RESIDUE_HANDLING {
            while quad * QUAD < staged {
                // SAFETY: the quad is staged, and holds an element of the row.
                unsafe { add_part(gpu, stage.get(gpu, quad), b, accumulators) };
                quad += SPLIT;
            }
            return;
        }
        // SAFETY: quads below `staged / QUAD`, rounded up, are staged; those from 0 (1 if `early`) to `whole` hold
        // elements of the row alone.
        unsafe {
            if early > 0 && row.subwarp == 0 {
                add_part(gpu, stage.get(gpu, 0), b, accumulators);
                quad += SPLIT;
            }
            while quad + (UNROLL - 1) * SPLIT < whole {
                for i in 0..UNROLL {
                    add_whole(gpu, stage.get(gpu, quad + i * SPLIT), b, accumulators);
                }
                quad += UNROLL * SPLIT;
            }
            while quad < whole {
                add_whole(gpu, stage.get(gpu, quad), b, accumulators);
                quad += SPLIT;
            }
            if quad * QUAD < staged {
                add_part(gpu, stage.get(gpu, quad), b, accumulators);
            }
        }
    }
}
