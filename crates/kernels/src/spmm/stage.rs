//! Bringing a row's nonzeros to where all its lanes can read them.
//!
//! *Reverse-offset memory alignment* (paper, section V-B.2): a row starts at any index, but a vector load needs an
//! aligned one. So a row's first load starts up to three elements early, in the row before; what was read too
//! much, there and after the end, is marked absent and never multiplied.
//!
//! A stage holds `f32` whatever the matrix holds: a nonzero is converted once, and all lanes of the group multiply with it.
//! Columns have 16 bits there, or 32 ([`Form::STAGE`]): a load of 16 bytes of shared memory takes two passes even where all
//! lanes read the same, and one of eight bytes takes one.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, Real, SharedPtr};

use super::QUAD;
use super::form::Form;
use crate::DeviceIndex;

const N: usize = QUAD as usize;

/// Bytes of a stage of `capacity` nonzeros.
pub(super) const fn bytes<F: Form>(capacity: u32) -> u32 {
    capacity * (4 + F::STAGE.bytes())
}

/// Where the nonzeros of rows are.
#[derive(Clone, Copy)]
pub(super) struct RowNonzeros<T, I> {
    pub values: GlobalPtr<T>,
    pub columns: GlobalPtr<I>,
    /// Elements from `values` to the values of this matrix of the batch. A number of 32 bits, and not another pointer:
    /// registers are short in the loop.
    pub values_skip: u32,
    /// What columns are multiplied by when they are fetched: 1, or with index pre-scaling the bytes of a row of B.
    pub column_scale: u32,
    /// What the bits of values are changed by: 0, or the sign alone.
    pub sign: u32,
}

/// Four neighbouring nonzeros, as the matrix holds them. What is not the row's is told apart only when they are staged: to
/// ask earlier would wait for their load.
#[derive(Clone, Copy)]
pub(super) struct Fetched<T, I> {
    pub values: [T; N],
    columns: [I; N],
}

/// Four neighbouring nonzeros, to be multiplied.
#[derive(Clone, Copy)]
pub(super) struct NonzeroVector {
    pub values: [f32; N],
    pub columns: [u32; N],
}

/// Index of the first element that is loaded of a row: its start, moved back to a whole vector.
#[inline(always)]
pub(super) fn aligned_start(start: u32) -> u32 {
    start & !(QUAD - 1)
}

impl<T: Real, I: DeviceIndex> RowNonzeros<T, I> {
    /// Loads the vector from index `at`, a multiple of [`QUAD`], if the row has any of it.
    ///
    /// # Safety
    /// The row's arrays are live, aligned to a vector, and padded to whole vectors.
    #[inline(always)]
    pub(super) unsafe fn fetch<G: Gpu>(self, gpu: G, at: u32, has: bool) -> Fetched<T, I> {
        let mut vector = Fetched { values: [T::default(); N], columns: [I::default(); N] };
        if has {
            // SAFETY: the vector at `at` begins before the row's end, so it lies in the arrays or their padding.
            unsafe {
                vector.values = gpu.load_streaming(self.values.add((at + self.values_skip) as usize));
                vector.columns = gpu.load_streaming(self.columns.add(at as usize));
            }
        }
        vector
    }

    /// Loads the value and the column of nonzero `at`, if the row has it; an absent column else.
    ///
    /// # Safety
    /// The row's arrays are live.
    #[inline(always)]
    pub(super) unsafe fn fetch_one<G: Gpu, F: Form>(self, gpu: G, at: u32, has: bool) -> (f32, u32) {
        if !has {
            return (0.0, F::ABSENT);
        }
        // SAFETY: as promised by the caller.
        let ([value], [column]) = unsafe {
            (
                gpu.load_streaming(self.values.add((at + self.values_skip) as usize)),
                gpu.load_streaming(self.columns.add(at as usize)),
            )
        };
        (f32::from_bits(value.to_f32(gpu).to_bits() ^ self.sign), column.widen())
    }

    /// The columns of a vector in place `at` of a stage, marked absent but for those in places `from` to `to`.
    #[inline(always)]
    pub(super) fn marked<F: Form>(self, vector: &Fetched<T, I>, at: u32, [from, to]: [u32; 2]) -> [u32; N] {
        let mut marked = [F::ABSENT; N];
        for (i, (marked, column)) in marked.iter_mut().zip(&vector.columns).enumerate() {
            let index = at + i as u32;
            if index >= from && index < to {
                *marked = column.widen().wrapping_mul(self.column_scale);
            }
        }
        marked
    }
}

/// Where a group of lanes keeps the nonzeros it is working on.
#[derive(Clone, Copy)]
pub(super) struct Stage<F> {
    values: SharedPtr<f32>,
    /// RawVector of one column, or of two.
    columns: SharedPtr<u32>,
    form: PhantomData<F>,
}

impl<F: Form> Stage<F> {
    /// The stage of `capacity` nonzeros at `offset` bytes of the block's shared memory.
    #[inline(always)]
    pub(super) fn at(offset: u32, capacity: u32) -> Self {
        Self {
            values: SharedPtr::from_offset(offset),
            columns: SharedPtr::from_offset(offset + capacity * 4),
            form: PhantomData,
        }
    }

    /// Puts a vector in place `index`, with the signs of its values changed by `sign`.
    ///
    /// # Safety
    /// The stage has this place, and no other lane reads or writes it until the next barrier.
    #[inline(always)]
    pub(super) unsafe fn put<G: Gpu, T: Real>(
        self,
        gpu: G,
        index: u32,
        fetched: &[T; N],
        sign: u32,
        columns: [u32; N],
    ) {
        let mut values = [0.0; N];
        for (value, fetched) in values.iter_mut().zip(fetched) {
            *value = f32::from_bits(fetched.to_f32(gpu).to_bits() ^ sign);
        }
        // SAFETY: as promised by the caller.
        unsafe {
            gpu.shared_store(self.values.add(index * QUAD), values);
            if F::PACKED {
                // Not an array of `u16`: LLVM takes such apart and puts it together again.
                let [a, b, c, d] = columns;
                gpu.shared_store(self.columns.add(index * (QUAD / 2)), [a | b << 16, c | d << 16]);
            } else {
                gpu.shared_store(self.columns.add(index * QUAD), columns);
            }
        }
    }

    /// Gets the vector in place `index`.
    ///
    /// # Safety
    /// It has been put, and a barrier passed since.
    #[inline(always)]
    pub(super) unsafe fn get<G: Gpu>(self, gpu: G, index: u32) -> NonzeroVector {
        // SAFETY: as promised by the caller.
        unsafe {
            let values = gpu.shared_load(self.values.add(index * QUAD));
            let columns = if F::PACKED {
                let [ab, cd]: [u32; N / 2] = gpu.shared_load(self.columns.add(index * (QUAD / 2)));
                [ab & 0xffff, ab >> 16, cd & 0xffff, cd >> 16]
            } else {
                gpu.shared_load(self.columns.add(index * QUAD))
            };
            NonzeroVector { values, columns }
        }
    }
}
