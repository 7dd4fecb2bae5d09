//! Rows of A and B in shared memory.
//!
//! A row has 128 bytes of K, in eight vectors of 16. Of odd rows the two halves are exchanged: the lanes that read together
//! read four vectors of an even row and four of the next, and so lie in different banks.
use lacuna_gpu::{GlobalPtr, Gpu, Scalar, SharedPtr, WARP};

use super::TileOperand;

/// Bytes of a vector.
const VECTOR: u32 = 16;
/// Pieces of a row.
const VECTORS: u32 = Stage::ROW / VECTOR;

/// Rows of a dense matrix that a block works on.
pub(super) struct Source<T> {
    pub(super) rows: GlobalPtr<T>,
    /// The block's first row.
    pub(super) first: u32,
    /// Rows that the matrix has.
    pub(super) end: u32,
    pub(super) stride_bytes: u32,
}

/// Some rows of a stage.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    offset: u32,
}

impl Stage {
    /// Bytes of a row.
    pub(super) const ROW: u32 = 128;

    #[inline(always)]
    pub(super) fn at(offset: u32) -> Self {
        Self { offset }
    }

    /// The rows from `row`, a multiple of 8, on.
    #[inline(always)]
    pub(super) fn after(self, row: u32) -> Self {
        Self { offset: self.offset + row * Self::ROW }
    }

    /// Starts copying step `step` of `rows` rows, by a block of `WM`×`WN` warps. Rows and columns outside become zeros.
    ///
    /// # Safety
    /// Nobody uses these rows of the stage; the source's are live.
    #[inline(always)]
    pub(super) unsafe fn fill<G: Gpu, O: TileOperand, const WM: u32, const WN: u32>(
        self,
        gpu: G,
        source: &Source<O::Value>,
        rows: u32,
        k: u32,
        step: u32,
    ) {
        let own = gpu.thread_idx_x() % VECTORS;
        let column = step * O::STEP + own * O::VECTOR;
        let first = gpu.thread_idx_x() / VECTORS;
        let at_once = WM * WN * WARP / VECTORS;
        for i in 0..rows.div_ceil(at_once) {
            let row = first + i * at_once;
            if row < rows {
                let valid = source.first + row < source.end && column < k;
                let from = source.rows.add_rows(source.first + row, source.stride_bytes).add(column as usize);
                let to = self.offset + row * Self::ROW + (own ^ (row % 2 * (VECTORS / 2))) * VECTOR;
                // SAFETY: a vector inside is live; its place is this thread's alone.
                unsafe { O::copy(gpu, SharedPtr::from_offset(to), from, valid) };
            }
        }
    }

    /// A lane's vector of row `row + lane / 4`, `half` of the step: vector `lane % 4` of that.
    ///
    /// # Safety
    /// The rows are filled.
    #[inline(always)]
    pub(super) unsafe fn load<G: Gpu, W: Scalar>(self, gpu: G, row: u32, half: u32) -> [W; 4] {
        let (g, t) = (gpu.lane_id() / 4, gpu.lane_id() % 4);
        let vector = (half * (VECTORS / 2) + t) ^ (g % 2 * (VECTORS / 2));
        let from = SharedPtr::from_offset(self.offset + (row + g) * Self::ROW + vector * VECTOR);
        // SAFETY: the row lies in the stage.
        unsafe { gpu.shared_load(from) }
    }
}
