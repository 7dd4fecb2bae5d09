//! A lane's share of rows of A and B, and of the indices that say which; and where results go.
use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, Real};

use super::Args;
use crate::{DeviceIndex, DeviceValue};

/// Rows and columns of `N` neighbouring nonzeros. All lanes of a group load the same ones: one access does for all, where
/// handing them on would take a shuffle for each.
#[derive(Clone, Copy)]
pub(super) struct Indices<const N: usize> {
    pub(super) rows: [u32; N],
    pub(super) columns: [u32; N],
}

impl<const N: usize> Indices<N> {
    /// Loads those from nonzero `at` on, a multiple of `N`.
    ///
    /// # Safety
    /// The nonzero exists, and the arrays are as [`Args`] says.
    #[inline(always)]
    pub(super) unsafe fn load<G: Gpu, T, I: DeviceIndex>(gpu: G, args: &Args<T, I>, at: u32) -> Self {
        // SAFETY: what follows the last nonzero, up to a multiple of `N`, is to spare.
        let (rows, narrow): ([u32; N], [I; N]) = unsafe {
            (gpu.load_readonly(args.rows.add(at as usize)), gpu.load_readonly(args.columns.add(at as usize)))
        };
        let mut columns = [0; N];
        for (column, narrow) in columns.iter_mut().zip(&narrow) {
            *column = narrow.widen();
        }
        Self { rows, columns }
    }
}

/// A lane's share of a chunk of K, of every row of a dense matrix.
#[derive(Clone, Copy)]
pub(super) struct Share<T, const C: usize> {
    /// The lane's first element of the chunk, in row 0.
    first: GlobalPtr<T>,
    stride_bytes: u32,
    /// Which of its vectors lie inside the row.
    inside: [bool; C],
}

impl<T: Real, const C: usize> Share<T, C> {
    #[inline(always)]
    pub(super) fn new(first: GlobalPtr<T>, stride_bytes: u32, inside: [bool; C]) -> Self {
        Self { first, stride_bytes, inside }
    }

    /// Loads the lane's vectors of a row, `STEP` elements apart. Those outside are zeros on both sides of a product, so that
    /// nothing of the operands meets them.
    ///
    /// # Safety
    /// The row is live, and its vectors are aligned.
    #[inline(always)]
    pub(super) unsafe fn load<G: Gpu, const V: usize>(self, gpu: G, row: u32, step: u32) -> [[T; V]; C] {
        let first = self.first.add_rows(row, self.stride_bytes);
        let mut vectors = [[T::default(); V]; C];
        for (c, (vector, &inside)) in vectors.iter_mut().zip(&self.inside).enumerate() {
            if inside {
                // SAFETY: the vector lies inside the row.
                *vector = unsafe { gpu.load_readonly(first.add(c * step as usize)) };
            }
        }
        vectors
    }
}

/// Adds the products of a lane's shares of two rows.
#[inline(always)]
pub(super) fn add_products<G: Gpu, T: Real, const V: usize, const C: usize>(
    gpu: G,
    a: &[[f32; V]; C],
    b: &[[T; V]; C],
    sum: &mut f32,
) {
    for (a, b) in a.as_flattened().iter().zip(b.as_flattened()) {
        *sum = gpu.fma(*a, b.to_f32(gpu), *sum);
    }
}

/// Where results go, and what scales them.
#[derive(Clone, Copy)]
pub(super) struct Results<T> {
    /// The values of C; address 0 where nothing scales.
    pub(super) scale: GlobalPtr<T>,
    /// The values of D.
    pub(super) d: GlobalMut<T>,
    /// Elements from one scale of the batch to the next.
    pub(super) scale_batch: u64,
    /// Elements from one D of the batch to the next.
    pub(super) d_batch: u64,
}

impl<T: DeviceValue> Results<T> {
    /// Writes a result, scaled where there is a scale.
    ///
    /// # Safety
    /// The nonzero `at` exists, and no other lane writes it.
    #[inline(always)]
    pub(super) unsafe fn store<G: Gpu>(self, gpu: G, at: u32, batch: u64, sum: f32) {
        let mut sum = sum;
        if self.scale.address() != 0 {
            let scale = self.scale.add((batch * self.scale_batch) as usize + at as usize);
            // SAFETY: each nonzero has a scale.
            let [scale] = unsafe { gpu.load_streaming::<T, 1>(scale) };
            sum *= scale.to_f32(gpu);
        }
        let d = self.d.add((batch * self.d_batch) as usize + at as usize);
        // SAFETY: as promised by the caller.
        unsafe { gpu.store(d, [T::from_f32(gpu, sum)]) };
    }
}
