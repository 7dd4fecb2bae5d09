//! Bringing a row's nonzeros to where all its lanes can read them.
//!
//! *Reverse-offset memory alignment* (paper, section V-B.2): a row starts at any index, but a vector load needs an
//! aligned one. So a row's first load starts up to three elements early, in the row before; what was read too
//! much, there and after the end, is marked [`ABSENT`] and never multiplied.
//!
//! A stage holds `f32` and `u32` whatever the matrix holds: a nonzero is converted once, and all lanes of the group
//! multiply with it.
use lacuna_gpu::{GlobalPtr, Gpu, Real, SharedPtr};

use super::QUAD;
use crate::DeviceIndex;

/// The column of a staged element that does not belong to the row. No matrix has it: columns,
/// and the byte offsets that they may be, are below 2³² − 1.
pub(super) const ABSENT: u32 = u32::MAX;

const N: usize = QUAD as usize;

/// The nonzeros of one row.
#[derive(Clone, Copy)]
pub(super) struct RowNonzeros<T, I> {
    pub values: GlobalPtr<T>,
    pub columns: GlobalPtr<I>,
    pub start: u32,
    pub end: u32,
    /// Elements from `values` to the values of this matrix of the batch. A number of 32 bits, and not another pointer:
    /// registers are short in the loop.
    pub values_skip: u32,
    /// What columns are multiplied by when they are fetched: 1, or with index pre-scaling the bytes of a row of B.
    pub column_scale: u32,
}

/// Four neighbouring nonzeros, as the matrix holds their values.
#[derive(Clone, Copy)]
pub(super) struct Fetched<T> {
    values: [T; N],
    columns: [u32; N],
}

/// Four neighbouring nonzeros, to be multiplied.
#[derive(Clone, Copy)]
pub(super) struct Quad {
    pub values: [f32; N],
    pub columns: [u32; N],
}

impl<T: Real, I: DeviceIndex> RowNonzeros<T, I> {
    /// Index of the first element that is loaded: the row's start, moved back to a whole quad.
    #[inline(always)]
    pub(super) fn aligned_start(self) -> u32 {
        self.start & !(QUAD - 1)
    }

    /// Loads the quad from index `at`, a multiple of [`QUAD`].
    ///
    /// # Safety
    /// The row's arrays are live, aligned to a quad, and padded to whole quads.
    #[inline(always)]
    pub(super) unsafe fn fetch<G: Gpu>(self, gpu: G, at: u32) -> Fetched<T> {
        let mut quad = Fetched { values: [T::default(); N], columns: [ABSENT; N] };
        if at < self.end {
            // SAFETY: the quad at `at` begins before `end`, so it lies in the arrays or their padding.
            let columns: [I; N] = unsafe {
                quad.values = gpu.load_streaming(self.values.add((at + self.values_skip) as usize));
                gpu.load_streaming(self.columns.add(at as usize))
            };
            for (i, (marked, column)) in quad.columns.iter_mut().zip(&columns).enumerate() {
                let index = at + i as u32;
                *marked = if index < self.start || index >= self.end {
                    ABSENT
                } else {
                    column.widen().wrapping_mul(self.column_scale)
                };
            }
        }
        quad
    }
}

/// Where a group of lanes keeps the nonzeros it is working on.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    values: SharedPtr<f32>,
    columns: SharedPtr<u32>,
}

impl Stage {
    /// The stage of `capacity` nonzeros at `offset` bytes of the block's shared memory.
    #[inline(always)]
    pub(super) fn at(offset: u32, capacity: u32) -> Self {
        Self {
            values: SharedPtr::from_offset(offset),
            columns: SharedPtr::from_offset(offset + capacity * 4),
        }
    }

    /// Puts the quad in place `index`.
    ///
    /// # Safety
    /// The stage has this place, and no other lane reads or writes it until the next barrier.
    #[inline(always)]
    pub(super) unsafe fn put<G: Gpu, T: Real>(self, gpu: G, index: u32, quad: Fetched<T>) {
        let mut values = [0.0; N];
        for (value, fetched) in values.iter_mut().zip(&quad.values) {
            *value = fetched.to_f32(gpu);
        }
        // SAFETY: as promised by the caller.
        unsafe {
            gpu.shared_store(self.values.add(index * QUAD), values);
            gpu.shared_store(self.columns.add(index * QUAD), quad.columns);
        }
    }

    /// Gets the quad in place `index`.
    ///
    /// # Safety
    /// It has been put, and a barrier passed since.
    #[inline(always)]
    pub(super) unsafe fn get<G: Gpu>(self, gpu: G, index: u32) -> Quad {
        // SAFETY: as promised by the caller.
        unsafe {
            Quad {
                values: gpu.shared_load(self.values.add(index * QUAD)),
                columns: gpu.shared_load(self.columns.add(index * QUAD)),
            }
        }
    }
}
