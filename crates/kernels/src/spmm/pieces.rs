//! Rows far longer than the mean, cut into pieces: a piece is worked on as a row is, and here pieces become rows.
//!
//! ```text
//!   row table: head of row 7 │ head of row 4 │ middle of row 7 │ tail of row 4 │ tail of row 7 │ row 3 │ row 12 │ …
//!                    │               │               │                │               │
//!   partial      [slot 0]        [slot 3]        [slot 1]         [slot 4]        [slot 2]    N numbers in f32 each, and of
//!                    └───────────────┼───────────────┼────────────────┼───────────────┘       extrema their winners
//!                                    └─────── C[4] ──┼────────────────┘    a block a row and 64 columns: a lane has four, and
//! ```                                              C[7]                    16, 8 or 4 lanes are a group, as N needs them.
//! Each group joins a part of the slots, in their order, and the first joins these, in theirs. So results do not depend on
//! timing, and no warp has a row of a hundred thousand nonzeros for itself. Most rows that are cut have few pieces: blocks are
//! small, so that many run at once. Pieces that run together are of one part of their rows: they read one part of B.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, SharedPtr};

use super::extremum::{NO_WINNER, signed};
use super::{Output, Scheme, Tile};
use crate::{DeviceValue, IndexType, Kernel, RowRecord};

/// In a record of the row table, the bit of the row that says that this is a piece: what is left is its slot.
pub const PIECE: u32 = 1 << 31;

/// Where pieces of rows go, in the order of the slots: of one product, so that a launch with pieces has no batch. To know
/// its product to the end would cost kernels by rows a register that they have not.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Partial {
    /// Sums or extrema, `stride` for each slot; address 0 where rows are whole. 16-byte aligned.
    pub values: GlobalMut<f32>,
    /// Of extrema with winners these, likewise, 16-byte aligned.
    pub winners: GlobalMut<u32>,
    /// Elements from one slot to the next; a multiple of 8.
    pub stride: u32,
}

impl Partial {
    /// The slot of a record's row, where it is a piece.
    #[inline(always)]
    pub(super) fn slot(&self, row: u32) -> Option<u32> {
        (row & PIECE != 0 && self.values.address() != 0).then_some(row & !PIECE)
    }

    /// The index of an element of a slot.
    #[inline(always)]
    pub(super) fn index(&self, [slot, column]: [u32; 2]) -> usize {
        (u64::from(slot) * u64::from(self.stride) + u64::from(column)) as usize
    }
}

/// Makes rows of pieces: sums, or with `EXTREMUM` the greatest, with `WINNERS` and which nonzero won.
#[derive(Debug)]
pub struct JoinPieces<T, const EXTREMUM: bool, const WINNERS: bool>(PhantomData<T>);

/// What [`JoinPieces`] takes. The grid is rows by [`Tile::block_columns`] columns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct JoinPiecesArgs<T> {
    /// A [`RowRecord`] for each row that was cut: the row, its first slot, and the one after its last.
    pub table: GlobalPtr<u32>,
    /// The pieces.
    pub partial: Partial,
    /// C, and the epilogue.
    pub output: Output<T>,
    /// Winners of C, as in [`ExtremumArgs`](super::ExtremumArgs).
    pub winners: GlobalMut<u32>,
    /// Elements from one row of winners to the next.
    pub winners_stride: u32,
    /// Not 0 for the least product.
    pub is_least: u32,
    /// Columns of C that this launch computes.
    pub n: u32,
}

/// Threads of a block.
const THREADS: u32 = 128;
/// Columns of a lane.
const COLUMNS: usize = 4;
/// Most lanes of a group, which have all columns of a block.
const LANES: u32 = 16;
/// Slots that a lane has under way together.
const AT_ONCE: usize = 4;

impl<T: DeviceValue, const EXTREMUM: bool, const WINNERS: bool> Kernel for JoinPieces<T, EXTREMUM, WINNERS> {
    type Args = JoinPiecesArgs<T>;
    type Tile = Tile;

    const TILE: Tile = Tile {
        value: T::TYPE,
        index: IndexType::U32,
        vector: 1,
        block_rows: 1,
        block_columns: LANES * COLUMNS as u32,
        scheme: Scheme::JoinPieces,
    };
    const THREADS: u32 = THREADS;
    const SHARED_BYTES: u32 = THREADS * COLUMNS as u32 * if WINNERS { 8 } else { 4 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: JoinPiecesArgs<T>) {
        // Lanes without columns would wait for the others: of few columns there are more groups.
        let shift = if args.n > 32 { LANES.ilog2() } else { 2 + u32::from(args.n > 16) };
        let (lanes, groups) = (1 << shift, THREADS >> shift);
        let (group, lane) = (gpu.thread_idx_x() >> shift, gpu.thread_idx_x() & (lanes - 1));
        let column = (gpu.block_idx_y() * LANES + lane) * COLUMNS as u32;
        let columns = args.n.saturating_sub(column);
        let mut joined = Joined::<EXTREMUM, WINNERS>::nothing();
        // SAFETY: the table has a record for each block, the slots of which have `n` columns.
        let row = unsafe {
            let RowRecord { row, start, end } = RowRecord::load(gpu, args.table, gpu.block_idx_x() as usize);
            let each = (end - start).div_ceil(groups);
            let mut slot = start + group * each;
            let last = if slot + each < end { slot + each } else { end };
            while slot < last && columns > 0 {
                let mut parts = [Joined::<EXTREMUM, WINNERS>::nothing(); AT_ONCE];
                for (i, part) in parts.iter_mut().enumerate() {
                    if slot + (i as u32) < last {
                        part.load(gpu, &args.partial, [slot + i as u32, column], columns);
                    }
                }
                for part in &parts {
                    joined.take(gpu, part);
                }
                slot += AT_ONCE as u32;
            }
            row
        };
        let values = SharedPtr::<f32>::from_offset(0);
        let winners = SharedPtr::<u32>::from_offset(THREADS * COLUMNS as u32 * 4);
        let place = |thread: u32| thread * COLUMNS as u32;
        // SAFETY: each thread has a place of its own, which is read after the barrier.
        unsafe {
            gpu.shared_store(values.add(place(gpu.thread_idx_x())), joined.values);
            if WINNERS {
                gpu.shared_store(winners.add(place(gpu.thread_idx_x())), joined.winners);
            }
            gpu.sync_threads();
        }
        if group != 0 || columns == 0 {
            return;
        }
        // SAFETY: as above; the elements are this lane's alone.
        unsafe {
            for group in 1..groups {
                let mut part = Joined::<EXTREMUM, WINNERS>::nothing();
                part.values = gpu.shared_load(values.add(place(group * lanes + lane)));
                if WINNERS {
                    part.winners = gpu.shared_load(winners.add(place(group * lanes + lane)));
                }
                joined.take(gpu, &part);
            }
            for i in 0..COLUMNS {
                if (i as u32) < columns {
                    let column = column + i as u32;
                    if WINNERS {
                        let at = u64::from(row) * u64::from(args.winners_stride) + u64::from(column);
                        gpu.store(args.winners.add(at as usize), [joined.winners[i]]);
                    }
                    let value = joined.values[i];
                    let value = if EXTREMUM { signed(value, args.is_least) } else { value };
                    args.output.store(gpu, row, column, 0, [value]);
                }
            }
        }
    }
}

/// What pieces came to so far, in a lane's columns.
#[derive(Clone, Copy)]
struct Joined<const EXTREMUM: bool, const WINNERS: bool> {
    values: [f32; COLUMNS],
    winners: [u32; COLUMNS],
}

impl<const EXTREMUM: bool, const WINNERS: bool> Joined<EXTREMUM, WINNERS> {
    /// What changes nothing that it is joined with.
    #[inline(always)]
    fn nothing() -> Self {
        let value = if EXTREMUM { f32::NEG_INFINITY } else { -0.0 };
        Self { values: [value; COLUMNS], winners: [NO_WINNER; COLUMNS] }
    }

    /// Loads a slot's numbers from a column on, of which it has so many more: those beyond were never written.
    ///
    /// # Safety
    /// The slot has been written by a launch before; the column is a multiple of [`COLUMNS`], and `columns` no more than there are.
    #[inline(always)]
    unsafe fn load<G: Gpu>(&mut self, gpu: G, from: &Partial, [slot, column]: [u32; 2], columns: u32) {
        let at = from.index([slot, column]);
        // SAFETY: as promised by the caller; slots are aligned to eight numbers.
        unsafe {
            if columns >= COLUMNS as u32 {
                self.values = gpu.load(from.values.add(at));
                if WINNERS {
                    self.winners = gpu.load(from.winners.add(at));
                }
                return;
            }
            for i in 0..COLUMNS {
                if (i as u32) < columns {
                    [self.values[i]] = gpu.load(from.values.add(at + i));
                    if WINNERS {
                        [self.winners[i]] = gpu.load(from.winners.add(at + i));
                    }
                }
            }
        }
    }

    /// Joins what came later in the row. Where that is no greater, the winner stays, if there is one.
    #[inline(always)]
    fn take<G: Gpu>(&mut self, gpu: G, later: &Self) {
        for i in 0..COLUMNS {
            let (value, later_value) = (self.values[i], later.values[i]);
            if !EXTREMUM {
                self.values[i] = value + later_value;
                continue;
            }
            let greatest = gpu.max_nan(value, later_value);
            if WINNERS && (greatest.to_bits() != value.to_bits() || self.winners[i] == NO_WINNER) {
                self.winners[i] = later.winners[i];
            }
            self.values[i] = greatest;
        }
    }
}
