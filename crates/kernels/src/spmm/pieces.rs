//! Rows far longer than the mean, cut into pieces: a piece is worked on as a row is, and here pieces become rows.
//!
//! ```text
//!   row table: piece 0 of row 7 │ piece 1 of row 7 │ piece 2 of row 7 │ row 3 │ row 12 │ …
//!                    │                  │                  │
//!   partial      [slot 0]           [slot 1]           [slot 2]        N numbers in f32 each, and of extrema their winners
//!                    └──────────────────┼──────────────────┘
//!                                     C[7]                             a block a row and 32 columns: a lane a column; each of
//! ```                                                                  WARPS warps joins a part of the slots, in their order,
//! and the first joins these, in theirs. So results do not depend on timing, and no warp has a row of a hundred thousand
//! nonzeros for itself.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, SharedPtr, WARP};

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
    /// Of extrema with winners these, likewise.
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

/// Warps of a block.
const WARPS: u32 = 8;
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
        block_columns: WARP,
        scheme: Scheme::JoinPieces,
    };
    const THREADS: u32 = WARPS * WARP;
    const SHARED_BYTES: u32 = WARPS * WARP * if WINNERS { 8 } else { 4 };

    #[inline(always)]
    unsafe fn run<G: Gpu>(gpu: G, args: JoinPiecesArgs<T>) {
        let (warp, lane) = (gpu.thread_idx_x() / WARP, gpu.lane_id());
        let column = gpu.block_idx_y() * WARP + lane;
        let mut joined = Joined::<EXTREMUM, WINNERS>::nothing();
        // SAFETY: the table has a record for each block, the slots of which have `n` columns.
        let row = unsafe {
            let RowRecord { row, start, end } = RowRecord::load(gpu, args.table, gpu.block_idx_x() as usize);
            let each = (end - start).div_ceil(WARPS);
            let mut slot = start + warp * each;
            let last = if slot + each < end { slot + each } else { end };
            while slot < last && column < args.n {
                let mut parts = [Joined::<EXTREMUM, WINNERS>::nothing(); AT_ONCE];
                for (i, part) in parts.iter_mut().enumerate() {
                    if slot + (i as u32) < last {
                        let at = args.partial.index([slot + i as u32, column]);
                        [part.value] = gpu.load(args.partial.values.add(at));
                        if WINNERS {
                            [part.winner] = gpu.load(args.partial.winners.add(at));
                        }
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
        let winners = SharedPtr::<u32>::from_offset(WARPS * WARP * 4);
        // SAFETY: each thread has a place of its own, which is read after the barrier.
        unsafe {
            gpu.shared_store(values.add(gpu.thread_idx_x()), [joined.value]);
            if WINNERS {
                gpu.shared_store(winners.add(gpu.thread_idx_x()), [joined.winner]);
            }
            gpu.sync_threads();
        }
        if warp != 0 || column >= args.n {
            return;
        }
        // SAFETY: as above; the element is this lane's alone.
        unsafe {
            for warp in 1..WARPS {
                let mut part = Joined::<EXTREMUM, WINNERS>::nothing();
                [part.value] = gpu.shared_load(values.add(warp * WARP + lane));
                if WINNERS {
                    [part.winner] = gpu.shared_load(winners.add(warp * WARP + lane));
                }
                joined.take(gpu, &part);
            }
            let value = if EXTREMUM { signed(joined.value, args.is_least) } else { joined.value };
            if WINNERS {
                let at = u64::from(row) * u64::from(args.winners_stride) + u64::from(column);
                gpu.store(args.winners.add(at as usize), [joined.winner]);
            }
            args.output.store(gpu, row, column, 0, [value]);
        }
    }
}

/// What pieces came to so far.
#[derive(Clone, Copy)]
struct Joined<const EXTREMUM: bool, const WINNERS: bool> {
    value: f32,
    winner: u32,
}

impl<const EXTREMUM: bool, const WINNERS: bool> Joined<EXTREMUM, WINNERS> {
    /// What changes nothing that it is joined with.
    #[inline(always)]
    fn nothing() -> Self {
        Self { value: if EXTREMUM { f32::NEG_INFINITY } else { -0.0 }, winner: NO_WINNER }
    }

    /// Joins what came later in the row. Where that is no greater, the winner stays, if there is one.
    #[inline(always)]
    fn take<G: Gpu>(&mut self, gpu: G, later: &Self) {
        if !EXTREMUM {
            self.value += later.value;
            return;
        }
        let greatest = gpu.max_nan(self.value, later.value);
        if WINNERS && (greatest.to_bits() != self.value.to_bits() || self.winner == NO_WINNER) {
            self.winner = later.winner;
        }
        self.value = greatest;
    }
}
