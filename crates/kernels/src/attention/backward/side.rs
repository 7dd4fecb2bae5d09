//! Queries or keys: the two matrices that a product of one with the other takes, Q and dO, or K and V.
use lacuna_gpu::{GlobalPtr, Gpu, SharedPtr};

use super::super::wgmma::BLOCK;
use super::{BackwardOperands, PANEL, ROW};
use crate::HalfValue;
use crate::common::strided;

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

impl<T: HalfValue> Side<T> {
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

    /// Starts copying 64 rows of both into panels, one matrix after the other, by thread `thread` of `threads`. Zeros stand for rows and
    /// elements that are not there.
    ///
    /// # Safety
    /// The matrices are live; nobody touches the panels.
    #[inline(always)]
    pub(super) unsafe fn copy<G: Gpu>(
        &self,
        gpu: G,
        (first, dim): (u32, u32),
        (to, panels): (u32, u32),
        (thread, threads): (u32, u32),
    ) {
        let pieces = panels * PIECES;
        // A thread has one piece of each row that it copies.
        let (piece, row, rows) = (thread % pieces, thread / pieces, threads / pieces);
        let has_piece = piece * 8 < dim;
        let column = if has_piece { piece as usize * 8 } else { 0 };
        for matrix in 0..2 {
            let stride = self.strides[matrix];
            let own = self.matrices[matrix].add_rows(first + row, stride).address();
            let mut from = GlobalPtr::<u16>::from_address(own).add(column);
            let place = to + (matrix as u32 * panels + piece / PIECES) * PANEL;
            strided(row, BLOCK, rows, |at| {
                let is_there = has_piece && first + at < self.rows;
                let to = place + at * ROW + ((piece % PIECES) ^ (at % 8)) * PIECE;
                // SAFETY: as promised by the caller; nothing is read of rows that are not there.
                unsafe { gpu.copy_async_or_zero::<u16, 8>(SharedPtr::from_offset(to), from, is_there) };
                from = from.add_bytes(u64::from(rows) * u64::from(stride));
            });
        }
    }
}
