//! Rows of `f32` in two parts of bfloat16 in shared memory, swizzled as wgmma reads them.
//!
//! A row has 128 bytes of a part: 64 numbers, in eight pieces of 16 bytes, piece `i` of row `r` at place `i ^ r % 8`.
use lacuna_gpu::{GlobalPtr, Gpu, Real, SharedPtr, WARP};

use super::bf16_parts;

/// Bytes of a piece, pieces of a row, and its bytes.
const PIECE: u32 = 16;
const PIECES: u32 = 8;
const ROW: u32 = PIECES * PIECE;
/// Threads of a warpgroup.
const WARPGROUP: u32 = 4 * WARP;

/// Rows of a dense matrix.
#[derive(Debug)]
pub struct Rows<T> {
    pub(crate) matrix: GlobalPtr<T>,
    /// The first of them.
    pub(crate) first: u32,
    /// Rows that the matrix has.
    pub(crate) end: u32,
    pub(crate) stride_bytes: u32,
}

impl<T: Real> Rows<T> {
    /// The address of an element of row `row` of them.
    #[inline(always)]
    pub(crate) fn at(&self, row: u32, column: u32) -> GlobalPtr<T> {
        self.matrix.add_rows(self.first + row, self.stride_bytes).add(column as usize)
    }
}

/// Rows that a warpgroup loads at once, and how often it does for 64 rows.
const AT_ONCE: u32 = WARPGROUP / PIECES;
pub(crate) const PASSES: usize = 4;
/// Rows of [`PASSES`].
pub(crate) const SPLIT_ROWS: u32 = PASSES as u32 * AT_ONCE;

/// What a thread of a warpgroup has of 64 columns of 16·`PASSES` rows: four columns of the first half of a row and four of the second, of a row a pass.
#[derive(Clone, Copy, Debug)]
pub struct SplitRows<const PASSES: usize>([[[f32; 4]; 2]; PASSES]);

impl<const PASSES: usize> SplitRows<PASSES> {
    /// The four columns of halves of rows that this thread has, and its row of those that are loaded at once.
    #[inline(always)]
    fn own<G: Gpu>(gpu: G) -> [u32; 2] {
        let thread = gpu.thread_idx_x() % WARPGROUP;
        let (four, eight) = (thread % PIECES, thread / PIECES);
        // Rows r and r + 4 are written together: their pieces lie on different banks.
        [four, eight / 8 * 8 + eight % 2 * 4 + eight % 8 / 2]
    }

    /// Loads 64 columns, from `column` on, of `rows` from row `first` on. Zeros stand for what is not there: rows have `columns`, a multiple of
    /// four, and are aligned to 16 bytes.
    ///
    /// # Safety
    /// The rows are live.
    #[inline(always)]
    pub(crate) unsafe fn load<G: Gpu>(
        gpu: G,
        rows: &Rows<f32>,
        first: u32,
        [column, columns]: [u32; 2],
    ) -> Self {
        let [four, own] = Self::own(gpu);
        let halves = [column + 4 * four, column + 32 + 4 * four];
        let mut x = [[[0.0; 4]; 2]; PASSES];
        for (pass, x) in x.iter_mut().enumerate() {
            let row = first + pass as u32 * AT_ONCE + own;
            for half in 0..2 {
                if halves[half] < columns && rows.first + row < rows.end {
                    // SAFETY: as promised by the caller; rows are whole vectors.
                    x[half] = unsafe { gpu.load_readonly(rows.at(row, halves[half])) };
                }
            }
        }
        Self(x)
    }

    /// Puts them at `to`, part by part: the second so many bytes further.
    ///
    /// # Safety
    /// Nobody uses the place. The whole warpgroup is here.
    #[inline(always)]
    pub(crate) unsafe fn store<G: Gpu>(&self, gpu: G, to: u32, to_rest: u32) {
        let [four, own] = Self::own(gpu);
        for (pass, x) in self.0.iter().enumerate() {
            let row = pass as u32 * AT_ONCE + own;
            for (half, &[a, b, c, d]) in x.iter().enumerate() {
                let piece = 4 * half as u32 + four / 2;
                let to = to + row * ROW + (piece ^ (row % 8)) * PIECE + four % 2 * (PIECE / 2);
                let to = SharedPtr::<u32>::from_offset(to);
                let ([ab, rest_of_ab], [cd, rest_of_cd]) = (bf16_parts(gpu, a, b), bf16_parts(gpu, c, d));
                // SAFETY: as promised by the caller; the places are this thread's.
                unsafe {
                    gpu.shared_store(to, [ab, cd]);
                    gpu.shared_store(to.add(to_rest / 4), [rest_of_ab, rest_of_cd]);
                }
            }
        }
    }
}
