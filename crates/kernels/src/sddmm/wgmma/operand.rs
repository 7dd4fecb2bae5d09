//! How rows of A and B come into a stage, and how warpgroups multiply them.
//!
//! A part of a stage has 128 bytes of each row: 64 numbers of 16 bits, in eight pieces of 16 bytes, piece `i` of row `r` at place
//! `i ^ r % 8`, as wgmma reads them.
use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr, WARP};

use super::{ROW, WARPGROUP};
use crate::common::{PASSES, Rows, SPLIT_ROWS, SplitRows, strided};
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
    /// See [`warpgroup_mma_f16_columns`](lacuna_gpu::Hopper::warpgroup_mma_f16_columns), for all parts.
    unsafe fn multiply<G: Gpu, const L: usize>(gpu: G, sums: &mut [f32; L], a: (u32, u32), b: (u32, u32));
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

    #[inline(always)]
    unsafe fn fill<G: Gpu>(gpu: G, rows: &Rows<f32>, part: Part, column: u32, k: u32) {
        strided(0, part.bytes / ROW, SPLIT_ROWS, |first| {
            // SAFETY: passed on to the caller; the producers are a warpgroup.
            unsafe {
                let loaded = SplitRows::<PASSES>::load(gpu, rows, first, [column, k]);
                loaded.store(gpu, part.to + first * ROW, part.bytes);
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
