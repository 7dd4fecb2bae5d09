//! Multiplying staged nonzeros with rows of B.
use core::marker::PhantomData;

use lacuna_gpu::{GlobalPtr, Gpu, Real};

use super::QUAD;
use super::form::{Form, Formed};
use super::stage::Quad;

/// A lane's columns of B.
#[derive(Clone, Copy)]
pub(super) struct Columns<T, F> {
    /// The lane's first column, in row 0.
    pub first: GlobalPtr<T>,
    /// Bytes from one row to the next.
    pub stride_bytes: u32,
    pub form: PhantomData<F>,
}

impl<T: Real, F: Form> Columns<T, F> {
    /// The lane's part of row `k`, or with index pre-scaling of the row that begins `k` bytes after row 0.
    #[inline(always)]
    fn row(self, k: u32) -> GlobalPtr<T> {
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

/// Adds the products of a quad whose four elements all belong to the row. The loads of B come first: four of them
/// are under way before the first product needs one.
///
/// # Safety
/// The quad's columns are rows of B, and the lane's part of each is live.
#[inline(always)]
pub(super) unsafe fn add_whole<G: Gpu, T: Real, F: Form, const V: usize>(
    gpu: G,
    quad: Quad,
    b: Columns<T, F>,
    accumulators: &mut [f32; V],
) {
    let mut rows = [[T::default(); V]; QUAD as usize];
    for (row, &k) in rows.iter_mut().zip(&quad.columns) {
        // SAFETY: as promised by the caller.
        *row = unsafe { gpu.load_readonly(b.row(k)) };
    }
    for (row, &value) in rows.iter().zip(&quad.values) {
        add(gpu, value, row, accumulators);
    }
}

/// As [`add_whole`], for a quad at either end of the row: elements that are not the row's are left out, not
/// multiplied by zero, which would let a NaN of B through.
///
/// # Safety
/// As for [`add_whole`], for the elements that belong to the row.
#[inline(always)]
pub(super) unsafe fn add_part<G: Gpu, T: Real, F: Form, const V: usize>(
    gpu: G,
    quad: Quad,
    b: Columns<T, F>,
    accumulators: &mut [f32; V],
) {
    for (&value, &k) in quad.values.iter().zip(&quad.columns) {
        if k != F::ABSENT {
            // SAFETY: as promised by the caller.
            let row: [T; V] = unsafe { gpu.load_readonly(b.row(k)) };
            add(gpu, value, &row, accumulators);
        }
    }
}
