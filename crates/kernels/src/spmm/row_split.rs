//! SpMM by rows, on CUDA cores: 1-D tiling with split rows.
//!
//! ```text
//!             B  K×N                 A group of LANES·SPLIT lanes computes one row of C, LANES·V columns wide. A warp
//!            ┌────┬──────┬────┐      has one group or several. The group loads the row's nonzeros by stages:
//!            │    │▒▒▒▒▒▒│    │        1. each lane loads four of them, while the stage before is multiplied;
//!            │    │▒▒▒▒▒▒│    │        2. they go to shared memory, where all lanes of the group see them;
//!   A  M×K   └────┴──────┴────┘        3. for four nonzeros at a time, each lane loads its V columns of four rows
//!  ┌───────┐ ┌────┬──────┬────┐           of B, and adds the products to V accumulators in registers. SPLIT
//!  │ x  x x│ │    │██████│    │           subwarps split the row: subwarp t takes the vectors t, t + SPLIT, …
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

use super::form::{Form, Plain, scheme};
use super::products::Columns;
use super::serpentine::{serpentine_unit, warp_rank};
use super::stage::{self, RowNonzeros, Stage};
use super::traverse::GroupRow;
use super::{Args, QUAD, Tile, prefetch};
use crate::common::{add_all_across_lanes, store_words};
use crate::{Bounds, DeviceIndex, DeviceValue, Kernel, RowRecord};

/// In persistent kernels, warps keep in shared memory what they need once a row: registers are short.
const KEPT_BYTES: u32 = 32;

/// SpMM by rows: a group of `LANES · SPLIT` lanes computes one row of C, `LANES · V` columns wide.
///
/// - `T`, `I`: types of A's, B's and C's values, and of A's column indices. Sums are `f32`.
/// - `V`: columns of B that a lane loads at once (1, 2, 4 or 8; 16 bytes at most).
/// - `LANES`: lanes side by side along the columns (the paper's subwarp).
/// - `SPLIT`: subwarps that split the nonzeros of the row (intra-warp split-K), and add up their accumulators at the end.
/// - `WARPS`: warps of a block. They never wait for each other.
/// - `F`: what it is beside that, [`Plain`] mostly.
///
/// Constants that do not fit together are refused when the kernel is named, not when it runs:
///
/// ```
/// use lacuna_kernels::Kernel;
/// use lacuna_kernels::spmm::RowSplit;
/// assert_eq!(<RowSplit<f32, u32, 4, 8, 4, 8> as Kernel>::TILE.block_columns, 32);
/// ```
/// ```compile_fail,E0080
/// # use lacuna_kernels::Kernel;
/// # use lacuna_kernels::spmm::RowSplit;
/// let _ = <RowSplit<f32, u32, 4, 16, 4, 8> as Kernel>::TILE; // 64 lanes a row: more than a warp
/// ```
#[derive(Debug)]
pub struct RowSplit<T, I, const V: usize, const LANES: u32, const SPLIT: u32, const WARPS: u32, F = Plain>(
    PhantomData<(T, I, F)>,
);

/// In place of a row's index: no row.
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

    const TILE: Tile = {
        assert!(
            V.is_power_of_two() && V * size_of::<T>() <= 16,
            "a lane loads 1, 2, 4 or 8 columns in 16 bytes"
        );
        assert!(LANES.is_power_of_two() && SPLIT.is_power_of_two(), "lanes pair up in shuffles");
        assert!(Self::GROUP <= WARP, "a row's lanes lie in one warp");
        assert!(!F::HYBRID || Self::GROUP == WARP && SPLIT > 1, "subwarps of a warp share its long rows");
        assert!(WARPS >= 1 && Self::THREADS <= 1024, "a block has at most 1024 threads");
        assert!(Self::STAGE_BYTES.is_multiple_of(16), "vector accesses to shared memory are aligned");
        assert!(Self::SHARED_BYTES <= 48 * 1024, "shared memory without opting in");
        Tile {
            value: T::TYPE,
            index: I::TYPE,
            vector: V as u32,
            block_rows: Self::WARP_ROWS * WARPS,
            block_columns: Self::BLOCK_COLUMNS,
            scheme: scheme::<F>(LANES, SPLIT, Self::PIECES),
        }
    };
    const THREADS: u32 = WARPS * WARP;
    const SHARED_BYTES: u32 =
        Self::WARP_BYTES * WARPS + if F::PERSISTENT { prefetch::bytes(Self::THREADS) } else { 0 };
    /// Subwarps that share a row serve problems with few rows or columns, which wait for memory: three blocks an SM leave
    /// a thread 80 registers, for more loads under way. Nearly all others are told how many warps there are, too. By itself ptxas
    /// aims at fewer registers: then it spills, or has two loads of B under way where the ends of a row could have four. Eight
    /// columns a lane take 80, so there are 24 warps then.
    /// A persistent block fills a multiprocessor, with 1024 threads or with 768 that have 80 registers each.
    const BOUNDS: Bounds = if F::PERSISTENT {
        Bounds { max_threads: Self::THREADS, min_blocks: 1 }
    } else if SPLIT > 1 && Self::GROUP == WARP && LANES >= 4 {
        Bounds { max_threads: Self::THREADS, min_blocks: 24 / WARPS }
    } else if V == 1 || V == 2 && SPLIT == 1 {
        let warps = match (LANES, SPLIT) {
            (1, _) => 48,
            (..WARP, 1) => 32,
            _ => 40,
        };
        Bounds { max_threads: Self::THREADS, min_blocks: warps / WARPS }
    } else if SPLIT == 1 {
        let warps = if V == 8 && WARPS <= 24 { 24 } else { 32 };
        Bounds { max_threads: Self::THREADS, min_blocks: warps / WARPS }
    } else {
        Bounds { max_threads: 1024, min_blocks: 0 }
    };
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
            let index = gpu.block_idx_x() * Self::TILE.block_rows + group;
            let warp_has_rows = index - group % Self::WARP_ROWS < args.rows;
            if warp_has_rows {
                let c = args.output.product(gpu.block_idx_z());
                let part = OutputTile { column_tile: gpu.block_idx_y(), steps: args.output.steps(), c };
                let row = (index < args.rows).then_some(index);
                Self::compute_row(gpu, &args, group * Self::STAGE_BYTES, row, || part);
            }
        }
    }
}

/// What a row is computed for.
#[derive(Clone, Copy)]
struct OutputTile<T> {
    column_tile: u32,
    /// What is done to its accumulators: [`Output::steps`](super::Output).
    steps: u32,
    /// C of the product.
    c: GlobalMut<T>,
}

impl<T, I, const V: usize, const LANES: u32, const SPLIT: u32, const WARPS: u32, F>
    RowSplit<T, I, V, LANES, SPLIT, WARPS, F>
where
    T: DeviceValue,
    I: DeviceIndex,
    F: Form,
{
    /// Lanes that work on one row.
    const GROUP: u32 = LANES * SPLIT;
    /// Nonzeros staged at a time: a vector a lane.
    const STAGE: u32 = Self::GROUP * QUAD;
    /// Whether it takes pieces of rows. Rows of `f32` that share a warp whole, with columns staged in 16 bits, use all of their
    /// registers: where pieces go would be one too many.
    const PIECES: bool = !F::PERSISTENT
        && F::DIFFERS.is_none()
        && (SPLIT > 1 || LANES == WARP || !F::PACKED || size_of::<T>() < 4);
    /// Rows of a warp.
    const WARP_ROWS: u32 = WARP / Self::GROUP;
    /// Columns of a block.
    const BLOCK_COLUMNS: u32 = LANES * V as u32;
    /// Bytes of shared memory from one group to the next; 16 beside the stage put neighbours into different banks.
    const STAGE_BYTES: u32 = Self::stage_bytes(Self::GROUP);
    /// Bytes of shared memory of a warp. Groups of one subwarp, which take short rows, need more than one of all subwarps:
    /// each has a stage of its own.
    const WARP_BYTES: u32 = {
        let (subwarps, short) =
            (Self::STAGE_BYTES * Self::WARP_ROWS, Self::stage_bytes(LANES) * (WARP / LANES));
        let kept = if F::PERSISTENT { KEPT_BYTES } else { 0 };
        kept + if F::HYBRID { short } else { subwarps }
    };
    const fn stage_bytes(group: u32) -> u32 {
        stage::bytes::<F>(group * QUAD) + if group < WARP { 16 } else { 0 }
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
                gpu.shared_store(kept, [warp_rank(gpu), WARPS * gpu.grid_dim_y()]);
                gpu.shared_store(kept.add(2), [round, last]);
                gpu.shared_store(kept.add(4), [gpu.block_idx_x(), args.output.steps()]);
                gpu.shared_store(c, [args.output.product(gpu.block_idx_z()).address()]);
            }
            gpu.sync_warp(FULL_WARP);
            let part = || {
                let [column_tile, steps] = gpu.shared_load(kept.add(4));
                let [c] = gpu.shared_load(c);
                OutputTile { column_tile, steps, c: GlobalMut::from_address(c) }
            };
            loop {
                let [rank, warps] = gpu.shared_load(kept);
                let [round, last] = gpu.shared_load(kept.add(2));
                let unit = serpentine_unit(warps, round, rank);
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
        part: impl Fn() -> OutputTile<T>,
    ) {
        let lane = gpu.thread_idx_x() % Self::GROUP;
        // Without a row it is an empty one, which is not stored.
        let mut record = RowRecord { row: NO_ROW, start: 0, end: 0 }.to_words();
        if let Some(index) = index {
            // SAFETY: the table has a record for each of `args.rows`.
            record = unsafe { gpu.load_readonly(args.row_table.add(index as usize * RowRecord::WORDS)) };
        }
        let record = RowRecord::from_words(record);

        // Lanes past the last column load the last one again: that costs no traffic, and no test in the loop.
        let (OutputTile { column_tile, .. }, batch) = (part(), gpu.block_idx_z());
        let column = column_tile * Self::BLOCK_COLUMNS + lane % LANES * V as u32;
        let loaded = if column < args.n { column } else { args.n - V as u32 };
        let b = args.b.add((u64::from(batch) * args.b_batch) as usize);
        let row = GroupRow::<T, I, F, LANES, SPLIT> {
            nonzeros: RowNonzeros {
                values: args.values,
                columns: args.columns,
                values_skip: batch * args.values_batch,
                column_scale: if F::INDEX_PRE_SCALING { args.b_stride_bytes } else { 1 },
                sign: 0,
            },
            stage: Stage::at(stage, Self::STAGE),
            b: Columns {
                first: b.add_rows(loaded, size_of::<T>() as u32),
                stride_bytes: args.b_stride_bytes,
            },
            lane,
            subwarp: lane / LANES,
        };
        let mut accumulators = [0.0; V];
        // SAFETY: the arguments describe the matrices; the stage is this group's own.
        unsafe { row.reduce(gpu, [record.start, record.end], &mut accumulators) };

        add_all_across_lanes(gpu, FULL_WARP, [LANES, Self::GROUP], None, &mut accumulators);
        let OutputTile { column_tile, steps, c } = part();
        let column = column_tile * Self::BLOCK_COLUMNS + lane % LANES * V as u32;
        if record.row != NO_ROW && row.subwarp == 0 && column < args.n {
            // SAFETY: the lane's columns lie in C, or in the piece's slot, and no other lane has them.
            unsafe {
                match args.partial.slot(record.row) {
                    Some(slot) if Self::PIECES => {
                        let at = args.partial.index([slot, column]);
                        store_words(gpu, args.partial.values.add(at), &accumulators);
                    }
                    _ => {
                        let at = [record.row, column];
                        args.output.store_by(gpu, steps, c, at, accumulators, F::STREAMS_C);
                    }
                }
            }
        }
    }
}
