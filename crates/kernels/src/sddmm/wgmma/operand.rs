//! How rows of A and B come into a stage, and how warpgroups multiply them.
//!
//! A part of a stage has 128 bytes of each row: 64 numbers of 16 bits, in eight pieces of 16 bytes, piece `i` of row `r` at place
//! `i ^ r % 8`, as wgmma reads them.
use lacuna_gpu::{GlobalPtr, Gpu, Real, SharedPtr, WARP};

use super::{ROW, WARPGROUP};
use crate::common::{bf16_parts, strided};
use crate::{Half, HalfValue, Operand, Single, SplitBf16};

/// Bytes of a piece, and pieces of a row.
const PIECE: u32 = 16;
const PIECES: u32 = ROW / PIECE;

/// Operands of [`WgmmaTiles`](super::WgmmaTiles), and how warpgroups multiply them.
pub trait WgmmaOperand: Operand {
    /// Numbers of 16 bits that a value becomes.
    const PARTS: u32;
    /// Threads that fill a stage.
    const PRODUCERS: u32;

    /// Puts 64 columns, from `column` on, of the rows of `part` into a stage, by its producers. Zeros stand for what is not there.
    /// Copies may be under way.
    ///
    /// # Safety
    /// The rows are live, of `k` elements; nobody uses the place.
    unsafe fn fill<G: Gpu>(gpu: G, rows: &Rows<Self::Value>, part: Part, column: u32, k: u32);

    /// Starts adding products of 16 columns to `sums`, by a warpgroup. A and B are the addresses of their first parts, and how
    /// many bytes further the second ones are.
    ///
    /// # Safety
    /// See [`Gpu::warpgroup_mma_f16_columns`], for all parts.
    unsafe fn multiply<G: Gpu, const L: usize>(gpu: G, sums: &mut [f32; L], a: (u32, u32), b: (u32, u32));
}

/// Rows of a dense matrix that a block works on.
#[derive(Debug)]
pub struct Rows<T> {
    pub(super) matrix: GlobalPtr<T>,
    /// The tile's first row.
    pub(super) first: u32,
    /// Rows that the matrix has.
    pub(super) end: u32,
    pub(super) stride_bytes: u32,
}

impl<T: Real> Rows<T> {
    /// The address of an element of the tile's row `row`.
    #[inline(always)]
    fn at(&self, row: u32, column: u32) -> GlobalPtr<T> {
        self.matrix.add_rows(self.first + row, self.stride_bytes).add(column as usize)
    }
}

/// Where the first part of some rows begins in shared memory, and its bytes: the next part follows.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub(super) to: u32,
    pub(super) bytes: u32,
}

impl<T: HalfValue> WgmmaOperand for Half<T> {
    const PARTS: u32 = 1;
    const PRODUCERS: u32 = WARP;

    /// Eight lanes copy a row: in shared memory, too, it is one line, so that no sector is read twice.
    #[inline(always)]
    unsafe fn fill<G: Gpu>(gpu: G, rows: &Rows<T>, part: Part, column: u32, k: u32) {
        const AT_ONCE: u32 = WARP / PIECES;
        let (piece, first) = (gpu.lane_id() % PIECES, gpu.lane_id() / PIECES);
        let column = column + piece * 8;
        let is_inside = column < k;
        let from = rows.at(first, if is_inside { column } else { 0 });
        let mut from = GlobalPtr::<u16>::from_address(from.address());
        strided(first, part.bytes / ROW, AT_ONCE, |row| {
            let is_there = is_inside && rows.first + row < rows.end;
            let to = part.to + row * ROW + (piece ^ (row % 8)) * PIECE;
            // SAFETY: as promised by the caller; what is not there is not read.
            unsafe { gpu.copy_async_or_zero::<u16, 8>(SharedPtr::from_offset(to), from, is_there) };
            from = from.add_bytes(u64::from(AT_ONCE) * u64::from(rows.stride_bytes));
        });
    }

    #[inline(always)]
    unsafe fn multiply<G: Gpu, const L: usize>(
        gpu: G,
        sums: &mut [f32; L],
        (a, _): (u32, u32),
        (b, _): (u32, u32),
    ) {
        // SAFETY: passed on to the caller.
        unsafe { T::warpgroup_mma_columns(gpu, sums, SharedPtr::from_offset(a), SharedPtr::from_offset(b)) };
    }
}

impl WgmmaOperand for Single<SplitBf16> {
    const PARTS: u32 = 2;
    const PRODUCERS: u32 = WARPGROUP;

    /// A thread has four columns of the first half of a row and four of the second, of four rows at a time.
    #[inline(always)]
    unsafe fn fill<G: Gpu>(gpu: G, rows: &Rows<f32>, part: Part, column: u32, k: u32) {
        const AT_ONCE: u32 = WARPGROUP / PIECES;
        const PASSES: usize = 4;
        let thread = gpu.thread_idx_x() % WARPGROUP;
        let (four, eight) = (thread % PIECES, thread / PIECES);
        // Rows r and r + 4 are written together: their pieces lie on different banks.
        let own = eight / 8 * 8 + eight % 2 * 4 + eight % 8 / 2;
        let columns = [column + 4 * four, column + 32 + 4 * four];
        strided(0, part.bytes / ROW, PASSES as u32 * AT_ONCE, |first| {
            let row_of = |pass: usize| first + pass as u32 * AT_ONCE + own;
            let mut x = [[[0.0; 4]; 2]; PASSES];
            for (pass, x) in x.iter_mut().enumerate() {
                for half in 0..2 {
                    if columns[half] < k && rows.first + row_of(pass) < rows.end {
                        // SAFETY: as promised by the caller; rows are whole vectors.
                        x[half] = unsafe { gpu.load_readonly(rows.at(row_of(pass), columns[half])) };
                    }
                }
            }
            for (pass, x) in x.iter().enumerate() {
                let row = row_of(pass);
                for (half, &[a, b, c, d]) in x.iter().enumerate() {
                    let piece = 4 * half as u32 + four / 2;
                    let to = part.to + row * ROW + (piece ^ (row % 8)) * PIECE + four % 2 * (PIECE / 2);
                    let to = SharedPtr::<u32>::from_offset(to);
                    let ([ab, rest_of_ab], [cd, rest_of_cd]) = (bf16_parts(gpu, a, b), bf16_parts(gpu, c, d));
                    // SAFETY: as promised by the caller; the places are this thread's.
                    unsafe {
                        gpu.shared_store(to, [ab, cd]);
                        gpu.shared_store(to.add(part.bytes / 4), [rest_of_ab, rest_of_cd]);
                    }
                }
            }
        });
    }

    #[inline(always)]
    unsafe fn multiply<G: Gpu, const L: usize>(
        gpu: G,
        sums: &mut [f32; L],
        (a, to_rest_of_a): (u32, u32),
        (b, to_rest_of_b): (u32, u32),
    ) {
        let mut add = |a, b| {
            let [a, b] = [a, b].map(SharedPtr::from_offset);
            // SAFETY: passed on to the caller.
            unsafe { gpu.warpgroup_mma_bf16_columns(sums, a, b) };
        };
        // The least first.
        add(a + to_rest_of_a, b);
        add(a, b + to_rest_of_b);
        add(a, b);
    }
}
