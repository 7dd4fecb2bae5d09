//! Multiplying staged nonzeros with rows of B.
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

/// Adds the products of a value with a lane's part of a row of B.
#[inline(always)]
fn add<G: Gpu, T: Real, const V: usize>(gpu: G, value: f32, row: &[T; V], accumulators: &mut [f32; V]) {
    for (sum, x) in accumulators.iter_mut().zip(row) {
        *sum = gpu.fma(value, x.to_f32(gpu), *sum);
    }
}

/// Adds the products of a vector whose four elements all belong to the row. The loads of B come first: four of them
/// are under way before the first product needs one.
///
/// # Safety
/// The vector's columns are rows of B, and the lane's part of each is live.
#[inline(always)]
pub(super) unsafe fn add_whole<G: Gpu, T: Real, F: Form, const V: usize>(
    gpu: G,
    vector: NonzeroVector,
    b: Columns<T>,
    accumulators: &mut [f32; V],
) {
    let mut rows = [[T::default(); V]; QUAD as usize];
    for (row, &k) in rows.iter_mut().zip(&vector.columns) {
        // SAFETY: as promised by the caller.
        *row = unsafe { gpu.load_readonly(b.row::<F>(k)) };
    }
    for (row, &value) in rows.iter().zip(&vector.values) {
        add(gpu, value, row, accumulators);
    }
}

/// As [`add_whole`], for a vector at either end of the row: elements that are not the row's are left out, not
/// multiplied by zero, which would let a NaN of B through.
///
/// # Safety
/// As for [`add_whole`], for the elements that belong to the row.
#[inline(always)]
pub(super) unsafe fn add_part<G: Gpu, T: Real, F: Form, const V: usize>(
    gpu: G,
    vector: NonzeroVector,
    b: Columns<T>,
    accumulators: &mut [f32; V],
) {
    for (&value, &k) in vector.values.iter().zip(&vector.columns) {
        if k != F::ABSENT {
            // SAFETY: as promised by the caller.
            let row: [T; V] = unsafe { gpu.load_readonly(b.row::<F>(k)) };
            add(gpu, value, &row, accumulators);
        }
    }
}
