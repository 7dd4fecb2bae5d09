//! B's rows in a stage, as the tensor cores read them: panels of 128 bytes a row, or 64, in swizzled vectors.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr, WARP};

use super::CHUNK;
use crate::HalfValue;
use crate::spmm::mma::{Stages, TileArgs};

/// Columns of B in a copy: 16 bytes.
pub(super) const COPY: u32 = 8;

/// What a producer thread needs to copy its part of a step of B's rows, 2·L columns wide, by a group of the producers of `S`.
pub(super) struct Columns<T, S, const L: usize> {
    /// B, at the thread's first row and its columns.
    b: GlobalPtr<T>,
    /// Rows from that of `b` on; 0 for columns outside.
    rows: u32,
    /// Where its first copy goes in a stage, in bytes.
    place: u32,
    stride_bytes: u32,
    stages: PhantomData<S>,
}

impl<T: HalfValue, S: Stages, const L: usize> Columns<T, S, L> {
    /// Rows of a step.
    const K: u32 = S::CHUNKS * CHUNK;
    const COLUMNS: u32 = 2 * L as u32;
    /// Rows that the threads copy at once.
    const AT_ONCE: u32 = {
        let rows = S::WARPS * WARP * COPY / Self::COLUMNS;
        assert!(Self::K.is_multiple_of(rows) && rows.is_power_of_two(), "threads share a step evenly");
        rows
    };
    /// Columns of a panel.
    const PANEL_COLUMNS: u32 = if L < 32 { 32 } else { 64 };
    /// Bytes of 16 rows of a panel: what a product takes.
    pub(super) const STEP_BYTES: u32 = 16 * 2 * Self::PANEL_COLUMNS;
    /// Bytes of a step.
    pub(super) const BYTES: u32 = Self::K * Self::COLUMNS * 2;

    /// For thread `thread` of those that copy a step, of the columns from `column` on.
    #[inline(always)]
    pub(super) fn new(args: &TileArgs<T>, thread: u32, column: u32) -> Self {
        let own = thread % (Self::COLUMNS / COPY) * COPY;
        let row = thread / (Self::COLUMNS / COPY);
        let (panel, vector) = (own / Self::PANEL_COLUMNS, own % Self::PANEL_COLUMNS / COPY);
        Self {
            b: args.b.add_rows(row, args.b_stride_bytes).add((column + own) as usize),
            rows: if column + own < args.n { args.cols.saturating_sub(row) } else { 0 },
            place: (panel * Self::K + row) * 2 * Self::PANEL_COLUMNS + ((vector * 16) ^ Self::swizzle(row)),
            stride_bytes: args.b_stride_bytes,
            stages: PhantomData,
        }
    }

    /// Where in its row, in bytes, the first 16 bytes of a row of a panel lie.
    #[inline(always)]
    const fn swizzle(row: u32) -> u32 {
        if Self::PANEL_COLUMNS == 64 { row % 8 * 16 } else { row / 2 % 4 * 16 }
    }

    /// Starts copying the thread's part of step `step` to `stage`.
    ///
    /// # Safety
    /// B is live, and the stage empty.
    #[inline(always)]
    pub(super) unsafe fn fill<G: Gpu>(&self, gpu: G, stage: u32, step: u32) {
        let b = self.b.add_rows(step * Self::K, self.stride_bytes);
        let rows = self.rows.saturating_sub(step * Self::K);
        for i in 0..Self::K / Self::AT_ONCE {
            let row = i * Self::AT_ONCE;
            let from = b.add_rows(row, self.stride_bytes);
            let to = (stage + self.place + row * 2 * Self::PANEL_COLUMNS) ^ Self::swizzle(row);
            let to = SharedPtr::<T>::from_offset(to);
            // SAFETY: rows and columns inside are live; the place is this thread's in the stage.
            unsafe { gpu.copy_async_or_zero::<T, { COPY as usize }>(to, from, row < rows) };
        }
    }
}
