//! Multiplying staged nonzeros with rows of B, and what is made of the products: their sum, or their greatest.
use lacuna_gpu::{GlobalPtr, Gpu, Real};

use super::QUAD;
use super::form::Form;
use super::stage::NonzeroVector;

/// A lane's columns of B.
#[derive(Clone, Copy)]
pub(super) struct Columns<T> {
    /// The lane's first column, in row 0.
    pub first: GlobalPtr<T>,
    /// Bytes from one row to the next.
    pub stride_bytes: u32,
}

impl<T: Real> Columns<T> {
    /// The lane's part of row `k`, or with index pre-scaling of the row that begins `k` bytes after row 0.
    #[inline(always)]
    fn row<F: Form>(self, k: u32) -> GlobalPtr<T> {
        if F::INDEX_PRE_SCALING {
            self.first.add_bytes(u64::from(k))
        } else {
            self.first.add_rows(k, self.stride_bytes)
        }
    }
}

/// What a lane makes of the products of a row, in `V` columns.
pub(super) trait Reduction<const V: usize> {
    /// Takes in the products of a value, nonzero `index` of the matrix, with a lane's part of a row of B.
    fn take<G: Gpu, T: Real>(&mut self, gpu: G, value: f32, index: u32, row: &[T; V]);
}

/// The sum.
impl<const V: usize> Reduction<V> for [f32; V] {
    #[inline(always)]
    fn take<G: Gpu, T: Real>(&mut self, gpu: G, value: f32, _index: u32, row: &[T; V]) {
        for (sum, x) in self.iter_mut().zip(row) {
            *sum = gpu.fma(value, x.to_f32(gpu), *sum);
        }
    }
}

/// Takes in the products of a vector whose four elements all belong to the row; the first is nonzero `index`. The loads of B
/// come first: four of them are under way before the first product needs one.
///
/// # Safety
/// The vector's columns are rows of B, and the lane's part of each is live.
#[inline(always)]
pub(super) unsafe fn take_whole<G: Gpu, T: Real, F: Form, R: Reduction<V>, const V: usize>(
    gpu: G,
    vector: NonzeroVector,
    index: u32,
    b: Columns<T>,
    reduced: &mut R,
) {
    let mut rows = [[T::default(); V]; QUAD as usize];
    for (row, &k) in rows.iter_mut().zip(&vector.columns) {
        // SAFETY: as promised by the caller.
        *row = unsafe { gpu.load_readonly(b.row::<F>(k)) };
    }
    for (i, (row, &value)) in rows.iter().zip(&vector.values).enumerate() {
        reduced.take(gpu, value, index.wrapping_add(i as u32), row);
    }
}

/// As [`take_whole`], for a vector at either end of the row: elements that are not the row's are left out, not
/// multiplied by zero, which would let a NaN of B through.
///
/// # Safety
/// As for [`take_whole`], for the elements that belong to the row.
#[inline(always)]
pub(super) unsafe fn take_part<G: Gpu, T: Real, F: Form, R: Reduction<V>, const V: usize>(
    gpu: G,
    vector: NonzeroVector,
    index: u32,
    b: Columns<T>,
    reduced: &mut R,
) {
    for (i, (&value, &k)) in vector.values.iter().zip(&vector.columns).enumerate() {
        if k != F::ABSENT {
            // SAFETY: as promised by the caller.
            let row: [T; V] = unsafe { gpu.load_readonly(b.row::<F>(k)) };
            reduced.take(gpu, value, index.wrapping_add(i as u32), &row);
        }
    }
}
