//! A, B and D as kernels take them; a lane's fragment of rows of A and B, and of the indices that say which.
use lacuna_gpu::{GlobalMut, GlobalPtr, Gpu, Real};

use super::Args;
use crate::DeviceIndex;

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

/// A lane's fragment of a chunk of K, of every row of a dense matrix.
#[derive(Clone, Copy)]
pub(super) struct Fragment<T, const C: usize> {
    /// The lane's first element of the chunk, in row 0.
    first: GlobalPtr<T>,
    stride_bytes: u32,
    /// Which of its vectors lie inside the row.
    inside: [bool; C],
}

impl<T: Real, const C: usize> Fragment<T, C> {
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

/// What is multiplied, and where results go. A batch stride of 0 is one operand for all products.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Operands<T> {
    /// What scales each result: the values of C; address 0 where nothing does.
    pub scale: GlobalPtr<T>,
    /// A, M×K.
    pub a: GlobalPtr<T>,
    /// B, N×K.
    pub b: GlobalPtr<T>,
    /// The values of D, in the order of the nonzeros, to write.
    pub d: GlobalMut<T>,
    /// Where K is split, what is written in place of D: a sum for each nonzero, of each block's z. Otherwise address 0.
    pub partial: GlobalMut<f32>,
    /// Elements from one scale of the batch to the next.
    pub scale_batch: u64,
    /// Elements from one A of the batch to the next.
    pub a_batch: u64,
    /// Elements from one B of the batch to the next.
    pub b_batch: u64,
    /// Elements from one D of the batch to the next.
    pub d_batch: u64,
    /// Columns of A and B.
    pub k: u32,
    /// Parts that K is split into, at least 1. The grid's z counts the splits of a product, then those of the next.
    pub splits: u32,
    /// Columns of a split, of which the last may have fewer, but not none: such that its first vector is aligned.
    pub split_k: u32,
    /// Nonzeros of C.
    pub nonzeros: u32,
    /// Bytes from one row of A to the next.
    pub a_stride_bytes: u32,
    /// Bytes from one row of B to the next.
    pub b_stride_bytes: u32,
    /// What blocks share out, [`block_items`](super::Tile::block_items) each: nonzeros of C, not 0, tiles of panels, or rows of C.
    pub items: u32,
}

impl<T: Real> Operands<T> {
    /// These for blocks of index `z` along the grid's z: A and B begin at element `first` of their product's and split's rows, and K is the
    /// split's.
    #[inline(always)]
    pub(super) fn for_z(self, z: u32, first: u32) -> Self {
        let (batch, start) = match self.splits {
            1 => (z, 0),
            splits => (z / splits, z % splits * self.split_k),
        };
        let left = self.k - start;
        let from = |batch_stride: u64| (u64::from(batch) * batch_stride) as usize + (start + first) as usize;
        Self {
            a: self.a.add(from(self.a_batch)),
            b: self.b.add(from(self.b_batch)),
            k: if self.splits > 1 && left > self.split_k { self.split_k } else { left },
            ..self
        }
    }

    /// As [`for_z`](Self::for_z), with results and scales that begin there, too: [`store`](Self::store) is then told z = 0. So a block that
    /// stores many results does not multiply by z for each.
    #[inline(always)]
    pub(super) fn rebased_for_z(self, z: u32) -> Self {
        let batch = u64::from(z);
        let mut rebased = self.for_z(z, 0);
        rebased.d = self.d.add((batch * self.d_batch) as usize);
        if self.scale.address() != 0 {
            rebased.scale = self.scale.add((batch * self.scale_batch) as usize);
        }
        if self.partial.address() != 0 {
            rebased.partial = self.partial.add(z as usize * self.nonzeros as usize);
        }
        rebased
    }

    /// A lane's shares of the rows of A and B, of the chunk of K from `k` on; A and B are from the lane's first element on.
    #[inline(always)]
    pub(super) fn fragments<const C: usize>(&self, k: u32, inside: [bool; C]) -> [Fragment<T, C>; 2] {
        let fragment = |first: GlobalPtr<T>, stride_bytes| Fragment {
            first: first.add(k as usize),
            stride_bytes,
            inside,
        };
        [fragment(self.a, self.a_stride_bytes), fragment(self.b, self.b_stride_bytes)]
    }

    /// Writes a result of a block of index `z`: where K is split, what its split came to; else the sum, scaled where there is a scale.
    ///
    /// # Safety
    /// The nonzero `at` exists, and no other lane writes it.
    #[inline(always)]
    pub(super) unsafe fn store<G: Gpu>(&self, gpu: G, at: u32, z: u32, mut sum: f32) {
        if self.partial.address() != 0 {
            let partial = self.partial.add(z as usize * self.nonzeros as usize + at as usize);
            // SAFETY: as promised by the caller.
            return unsafe { gpu.store(partial, [sum]) };
        }
        let batch = u64::from(z);
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
