//! B's rows in a stage: panels of a few columns, in swizzled vectors of 16 bytes.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr, WARP};

use super::WarpgroupOperand;
use crate::spmm::mma::{Stages, TileArgs, TileValue};

/// Bytes of a copy.
const COPY: u32 = 16;

/// What a producer thread needs to copy its part of a step of B's rows, for tiles of `O`, by a group of the producers of `S`.
pub(super) struct Columns<O: WarpgroupOperand<L>, S, const L: usize> {
    /// B, at the thread's first row and its columns.
    b: GlobalPtr<O::Value>,
    /// Rows from that of `b` on; 0 for columns outside.
    rows: u32,
    /// Where its first copy goes in a stage, in bytes.
    place: u32,
    stride_bytes: u32,
    stages: PhantomData<S>,
}

impl<O: WarpgroupOperand<L>, S: Stages, const L: usize> Columns<O, S, L> {
    /// Rows of a step.
    const K: u32 = S::CHUNKS * O::Value::COLUMNS;
    /// Bytes of a row, in all panels.
    const ROW: u32 = O::COLUMNS * size_of::<O::Value>() as u32;
    /// Rows that the threads copy at once.
    const AT_ONCE: u32 = {
        let rows = S::WARPS * WARP * COPY / Self::ROW;
        assert!(Self::K.is_multiple_of(rows) && rows.is_power_of_two(), "threads share a step evenly");
        rows
    };
    /// Bytes of a step.
    pub(super) const BYTES: u32 = Self::K * Self::ROW;

    /// For thread `thread` of those that copy a step, of the columns from `column` on.
    #[inline(always)]
    pub(super) fn new(args: &TileArgs<O::Value>, thread: u32, column: u32) -> Self {
        let own = thread % (Self::ROW / COPY) * COPY;
        let row = thread / (Self::ROW / COPY);
        let (panel, within) = (own / O::PANEL_ROW, own % O::PANEL_ROW);
        let column = column + own / size_of::<O::Value>() as u32;
        Self {
            b: args.b.add_rows(row, args.b_stride_bytes).add(column as usize),
            rows: if column < args.n { args.cols.saturating_sub(row) } else { 0 },
            place: (panel * Self::K + row) * O::PANEL_ROW + (within ^ O::swizzle(row)),
            stride_bytes: args.b_stride_bytes,
            stages: PhantomData,
        }
    }

    /// Starts copying the thread's part of step `step` to `stage`.
    ///
    /// # Safety
    /// B is live, and the stage empty.
    #[inline(always)]
    pub(super) unsafe fn fill<G: Gpu>(&self, gpu: G, stage: u32, step: u32) {
        let mut b = self.b.add_rows(step * Self::K, self.stride_bytes);
        let rows = self.rows.saturating_sub(step * Self::K);
        for i in 0..Self::K / Self::AT_ONCE {
            let row = i * Self::AT_ONCE;
            let to = (stage + self.place + row * O::PANEL_ROW) ^ O::swizzle(row);
            let from = GlobalPtr::<u32>::from_address(b.address());
            b = b.add_rows(Self::AT_ONCE, self.stride_bytes);
            let to = SharedPtr::<u32>::from_offset(to);
            // SAFETY: rows and columns inside are live; the place is this thread's in the stage.
            unsafe { gpu.copy_async_or_zero::<u32, { COPY as usize / 4 }>(to, from, row < rows) };
        }
    }
}
