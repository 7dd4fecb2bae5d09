//! Multiplying staged nonzeros with rows of B.
use lacuna_gpu::{GlobalPtr, Gpu};

use super::QUAD;
use super::stage::{ABSENT, Quad};

/// A lane's columns of B.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    /// The lane's first column, in row 0.
    pub first: GlobalPtr<f32>,
    /// Bytes from one row to the next.
    pub stride_bytes: u32,
}

impl Columns {
    /// The lane's part of row `k`.
    #[inline(always)]
    fn row(self, k: u32) -> GlobalPtr<f32> {
        self.first.add_rows(k, self.stride_bytes)
    }
}

/// Adds the products of a quad whose four elements all belong to the row. The loads of B come first: four of them
/// are under way before the first product needs one.
///
/// # Safety
/// The quad's columns are rows of B, and the lane's part of each is live.
#[inline(always)]
pub(super) unsafe fn add_whole<G: Gpu, const V: usize>(gpu: G, quad: Quad, b: Columns, sums: &mut [f32; V]) {
    let mut rows = [[0.0; V]; QUAD as usize];
    for (row, &k) in rows.iter_mut().zip(&quad.columns) {
        // SAFETY: as promised by the caller.
        *row = unsafe { gpu.load_readonly(b.row(k)) };
    }
    for (row, &value) in rows.iter().zip(&quad.values) {
        for (sum, &x) in sums.iter_mut().zip(row) {
            *sum = gpu.fma(value, x, *sum);
        }
    }
}

/// As [`add_whole`], for a quad at either end of the row: elements that are not the row's are left out, not
/// multiplied by zero, which would let a NaN of B through.
///
/// # Safety
/// As for [`add_whole`], for the elements that belong to the row.
#[inline(always)]
pub(super) unsafe fn add_part<G: Gpu, const V: usize>(gpu: G, quad: Quad, b: Columns, sums: &mut [f32; V]) {
    for (&value, &k) in quad.values.iter().zip(&quad.columns) {
        if k != ABSENT {
            // SAFETY: as promised by the caller.
            let row: [f32; V] = unsafe { gpu.load_readonly(b.row(k)) };
            for (sum, &x) in sums.iter_mut().zip(&row) {
                *sum = gpu.fma(value, x, *sum);
            }
        }
    }
}
