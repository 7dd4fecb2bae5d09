//! Queries or keys: the two matrices that a product of one with the other takes, Q and dO, or K and V.
use lacuna_gpu::{FULL_WARP, GlobalPtr, Gpu, SharedPtr, WARP};

use super::super::wgmma::WgmmaValue;
use super::{BackwardOperands, PANEL, ROW};
use crate::common::{Rows, strided};

/// Bytes of eight elements.
const PIECE: u32 = 16;
/// Pieces of a row of a panel.
const PIECES: u32 = ROW / PIECE;

/// The two matrices of a head.
#[derive(Clone, Copy)]
pub(super) struct Side<T> {
    pub(super) matrices: [GlobalPtr<T>; 2],
    /// Bytes from row to row.
    pub(super) strides: [u32; 2],
    pub(super) rows: u32,
}

impl<T: WgmmaValue> Side<T> {
    /// Q and dO.
    #[inline(always)]
    pub(super) fn queries(operands: &BackwardOperands<T>, head: u32) -> Self {
        let of_o = u64::from(head) * operands.shape.o_batch_stride;
        Self {
            matrices: [
                operands.q.add((u64::from(head) * operands.shape.q_batch_stride) as usize),
                operands.d_o.add(of_o as usize),
            ],
            strides: [operands.shape.q_stride_bytes, operands.shape.o_stride_bytes],
            rows: operands.shape.rows,
        }
    }

    /// K and V.
    #[inline(always)]
    pub(super) fn keys(operands: &BackwardOperands<T>, head: u32) -> Self {
        let offset = (u64::from(head) * operands.shape.kv_batch_stride) as usize;
        Self {
            matrices: [operands.k.add(offset), operands.v.add(offset)],
            strides: [operands.shape.kv_stride_bytes; 2],
            rows: operands.shape.cols,
        }
    }

    /// Rows of a matrix, from `first` on.
    #[inline(always)]
    pub(super) fn rows(&self, matrix: usize, first: u32) -> Rows<T> {
        Rows { matrix: self.matrices[matrix], first, end: self.rows, stride_bytes: self.strides[matrix] }
    }

    /// Starts copying so many rows of a matrix of 16 bits, from `first` on, into panels, by thread `thread` of `threads`. Zeros stand for rows and elements that are
    /// not there.
    ///
    /// # Safety
    /// The matrices are live; nobody touches the panels.
    #[inline(always)]
    pub(super) unsafe fn copy<G: Gpu>(
        &self,
        gpu: G,
        matrix: usize,
        (first, count, dim): (u32, u32, u32),
        (to, panels): (u32, u32),
        (thread, threads): (u32, u32),
    ) {
        let pieces = panels * PIECES;
        // A thread has one piece of each row that it copies.
        let (piece, row, rows) = (thread % pieces, thread / pieces, threads / pieces);
        let has_piece = piece * 8 < dim;
        let column = if has_piece { piece as usize * 8 } else { 0 };
        let stride = self.strides[matrix];
        let own = self.matrices[matrix].add_rows(first + row, stride).address();
        let mut from = GlobalPtr::<u16>::from_address(own).add(column);
        let place = to + piece / PIECES * PANEL;
        // Where a warp copies a row at a time, the compiler would keep an address for each of 64: it is not to see how many they are.
        let end = if rows == 1 { gpu.warp_shuffle_idx(FULL_WARP, count, 0, WARP) } else { count };
        strided(row, end, rows, |at| {
            let is_there = has_piece && first + at < self.rows;
            let to = place + at * ROW + ((piece % PIECES) ^ (at % 8)) * PIECE;
            // SAFETY: as promised by the caller; nothing is read of rows that are not there.
            unsafe { gpu.copy_async_or_zero::<u16, 8>(SharedPtr::from_offset(to), from, is_there) };
            from = from.add_bytes(u64::from(rows) * u64::from(stride));
        });
    }
}
