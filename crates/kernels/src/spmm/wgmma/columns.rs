//! B's rows in a stage: panels of a few columns, in swizzled vectors of 16 bytes. Where rows begin at multiples of 8 bytes only, or end there,
//! a vector comes in two copies.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr, WARP};

use super::{CopiesOfB, WarpgroupOperand};
use crate::spmm::mma::{Pipeline, Stages, TileArgs, TileValue};

/// Bytes of a copy.
const COPY: u32 = 16;

/// What a producer thread needs to copy its part of a step of B's rows, for tiles of `O`, by a group of the producers of `S`.
#[derive(Debug)]
pub struct Columns<O: WarpgroupOperand<L>, S, const L: usize> {
    /// B, at the thread's first row and its columns.
    b: GlobalPtr<O::Value>,
    /// Rows from that of `b` on; 0 for columns outside.
    rows: u32,
    /// Whether vectors come in halves, and whether the second one is there.
    is_narrow: bool,
    is_whole: bool,
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
    /// Rows that a group copies at once.
    const AT_ONCE: u32 = {
        let rows = S::WARPS * WARP * COPY / Self::ROW;
        assert!(Self::K.is_multiple_of(rows) && rows.is_power_of_two(), "threads share a step evenly");
        rows
    };
    /// Whether rows of B may begin at multiples of less than a copy.
    const MAY_BE_NARROW: bool = O::VECTOR * (size_of::<O::Value>() as u32) < COPY;

    /// The same by copies of so many words.
    ///
    /// # Safety
    /// As for [`fill`](CopiesOfB::fill); rows of B begin at multiples of a copy.
    #[inline(always)]
    unsafe fn fill_by<G: Gpu, const WORDS: usize>(&self, gpu: G, stage: u32, step: u32) {
        let mut b = self.b.add_rows(step * Self::K, self.stride_bytes);
        let rows = self.rows.saturating_sub(step * Self::K);
        for i in 0..Self::K / Self::AT_ONCE {
            let row = i * Self::AT_ONCE;
            let to = (stage + self.place + row * O::PANEL_ROW) ^ O::swizzle(row);
            let from = GlobalPtr::<u32>::from_address(b.address());
            b = b.add_rows(Self::AT_ONCE, self.stride_bytes);
            let to = SharedPtr::<u32>::from_offset(to);
            for part in 0..4 / WORDS as u32 {
                let (to, is_there) = (to.add(part * WORDS as u32), part == 0 || self.is_whole);
                // SAFETY: rows and columns inside are live; the place is this thread's in the stage.
                unsafe {
                    gpu.copy_async_or_zero::<u32, WORDS>(
                        to,
                        from.add(part as usize * WORDS),
                        row < rows && is_there,
                    );
                }
            }
        }
    }
}

impl<O: WarpgroupOperand<L>, S: Stages, const L: usize> CopiesOfB<O, S, L> for Columns<O, S, L> {
    type Args = TileArgs<O::Value>;

    #[inline(always)]
    fn tile(args: &TileArgs<O::Value>) -> TileArgs<O::Value> {
        *args
    }

    #[inline(always)]
    unsafe fn new<G: Gpu>(
        gpu: G,
        args: &TileArgs<O::Value>,
        _: u32,
        [_, warp]: [u32; 2],
        [batch, column]: [u32; 2],
    ) -> Self {
        let thread = warp * WARP + gpu.lane_id();
        let args = args.of_product(batch);
        let own = thread % (Self::ROW / COPY) * COPY;
        let row = thread / (Self::ROW / COPY);
        let (panel, within) = (own / O::PANEL_ROW, own % O::PANEL_ROW);
        let column = column + own / size_of::<O::Value>() as u32;
        let row_bytes = args.n * size_of::<O::Value>() as u32;
        Self {
            b: args.b.add_rows(row, args.b_stride_bytes).add(column as usize),
            rows: if column < args.n { args.cols.saturating_sub(row) } else { 0 },
            place: (panel * Self::K + row) * O::PANEL_ROW + (within ^ O::swizzle(row)),
            is_narrow: !((args.b.address() as u32 | args.b_stride_bytes | row_bytes).is_multiple_of(COPY)),
            is_whole: column + O::VECTOR < args.n,
            stride_bytes: args.b_stride_bytes,
            stages: PhantomData,
        }
    }

    #[inline(always)]
    unsafe fn fill<G: Gpu>(&self, gpu: G, stage: u32, step: u32, _: &Pipeline<S>) {
        // SAFETY: as promised by the caller.
        unsafe {
            if Self::MAY_BE_NARROW && self.is_narrow {
                self.fill_by::<G, 2>(gpu, stage, step);
            } else {
                self.fill_by::<G, 4>(gpu, stage, step);
            }
        }
    }
}
