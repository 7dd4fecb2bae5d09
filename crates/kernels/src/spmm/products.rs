//! Multiplying staged nonzeros with rows of B.
use lacuna_gpu::{GlobalPtr, Gpu, Real};

use super::QUAD;
use super::form::Form;
use super::stage::{Quad, Stage};

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

/// Whole quads in one turn of the inner loop.
const UNROLL: u32 = 2;

/// Multiplies the quads of one of `SPLIT` subwarps, of a stage that holds the elements `early..staged` of the row.
///
/// Residue handling (paper, section V-D.2): only the first and the last quad may be partial, so only they test
/// their elements. The others go through an unrolled loop, and what the unrolling leaves through a short one.
///
/// # Safety
/// The stage is filled, and B is live.
#[inline(always)]
pub(super) unsafe fn add_stage<G: Gpu, T: Real, F: Form, const V: usize, const SPLIT: u32>(
    gpu: G,
    stage: Stage<F>,
    b: Columns<T>,
    subwarp: u32,
    [early, staged]: [u32; 2],
    accumulators: &mut [f32; V],
) {
    let whole = staged / QUAD;
    let mut quad = subwarp;
    if !F::RESIDUE_HANDLING {
        while quad * QUAD < staged {
            // SAFETY: the quad is staged, and holds an element of the row.
            unsafe { add_part::<_, _, F, V>(gpu, stage.get(gpu, quad), b, accumulators) };
            quad += SPLIT;
        }
        return;
    }
    // SAFETY: quads below `staged / QUAD`, rounded up, are staged; those from 0 (1 if `early`) to `whole` hold
    // elements of the row alone.
    unsafe {
        if early > 0 && subwarp == 0 {
            add_part::<_, _, F, V>(gpu, stage.get(gpu, 0), b, accumulators);
            quad += SPLIT;
        }
        while quad + (UNROLL - 1) * SPLIT < whole {
            for i in 0..UNROLL {
                add_whole::<_, _, F, V>(gpu, stage.get(gpu, quad + i * SPLIT), b, accumulators);
            }
            quad += UNROLL * SPLIT;
        }
        while quad < whole {
            add_whole::<_, _, F, V>(gpu, stage.get(gpu, quad), b, accumulators);
            quad += SPLIT;
        }
        if quad * QUAD < staged {
            add_part::<_, _, F, V>(gpu, stage.get(gpu, quad), b, accumulators);
        }
    }
}

/// Adds the products of a quad whose four elements all belong to the row. The loads of B come first: four of them
/// are under way before the first product needs one.
///
/// # Safety
/// The quad's columns are rows of B, and the lane's part of each is live.
#[inline(always)]
unsafe fn add_whole<G: Gpu, T: Real, F: Form, const V: usize>(
    gpu: G,
    quad: Quad,
    b: Columns<T>,
    accumulators: &mut [f32; V],
) {
    let mut rows = [[T::default(); V]; QUAD as usize];
    for (row, &k) in rows.iter_mut().zip(&quad.columns) {
        // SAFETY: as promised by the caller.
        *row = unsafe { gpu.load_readonly(b.row::<F>(k)) };
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
unsafe fn add_part<G: Gpu, T: Real, F: Form, const V: usize>(
    gpu: G,
    quad: Quad,
    b: Columns<T>,
    accumulators: &mut [f32; V],
) {
    for (&value, &k) in quad.values.iter().zip(&quad.columns) {
        if k != F::ABSENT {
            // SAFETY: as promised by the caller.
            let row: [T; V] = unsafe { gpu.load_readonly(b.row::<F>(k)) };
            add(gpu, value, &row, accumulators);
        }
    }
}
