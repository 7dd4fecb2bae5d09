//! A lane's fragment of a row of Q, K, V or O, and dot products over fragments.
use core::convert::identity;

use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, Real, WARP};

use crate::common::round_into;

/// In place of a column: there is no key.
pub(super) const ABSENT: u32 = u32::MAX;

/// A lane's fragment of a row of `dim` elements that `LANES` lanes share: vectors of `V`, `LANES · V` elements apart.
#[derive(Clone, Copy)]
pub(super) struct Fragment<const V: usize, const LANES: usize, const CHUNKS: usize> {
    /// Its first element.
    first: u32,
    /// Its vectors, at most `CHUNKS`.
    vectors: u32,
}

impl<const V: usize, const LANES: usize, const CHUNKS: usize> Fragment<V, LANES, CHUNKS> {
    /// The fragment of this lane of a group.
    #[inline(always)]
    pub(super) fn of(lane: u32, dim: u32) -> Self {
        let (first, step) = (lane * V as u32, (LANES * V) as u32);
        let vectors = if first < dim { (dim - first).div_ceil(step) } else { 0 };
        Self { first, vectors }
    }

    /// Loads the fragment of row `row` of a matrix, whose rows are `stride` bytes apart; zeros where the lane has none, and of the
    /// row [`ABSENT`].
    ///
    /// # Safety
    /// The row lies in the matrix, which is live, and `V` divides the dimension, and the address and the stride in elements.
    #[inline(always)]
    pub(super) unsafe fn load<G: Gpu, T: Real>(
        self,
        gpu: G,
        matrix: GlobalPtr<T>,
        stride: u32,
        row: u32,
    ) -> [[T; V]; CHUNKS] {
        let own = matrix.add_rows(row, stride).add(self.first as usize);
        let vectors = if row == ABSENT { 0 } else { self.vectors };
        let mut part = [[T::default(); V]; CHUNKS];
        for (chunk, vector) in part.iter_mut().enumerate() {
            if (chunk as u32) < vectors {
                // SAFETY: as promised by the caller: the vector is one of the row's.
                *vector = unsafe { gpu.load_readonly(own.add(chunk * LANES * V)) };
            }
        }
        part
    }

    /// Stores the fragment of a row.
    ///
    /// # Safety
    /// As for [`load`](Self::load); no other lane writes this fragment.
    #[inline(always)]
    pub(super) unsafe fn store<G: Gpu, T: Real>(
        self,
        gpu: G,
        matrix: GlobalMut<T>,
        stride: u32,
        row: u32,
        values: &[[f32; V]; CHUNKS],
    ) {
        let own = matrix.add_rows(row, stride).add(self.first as usize);
        for (chunk, values) in values.iter().enumerate() {
            if (chunk as u32) < self.vectors {
                let mut rounded = [T::default(); V];
                round_into(gpu, values, identity, &mut rounded);
                // SAFETY: as promised by the caller.
                unsafe { gpu.store(own.add(chunk * LANES * V), rounded) };
            }
        }
    }

    /// Loads the fragments of the rows that lanes `first..first + U` of the group have the columns of.
    ///
    /// # Safety
    /// As for [`load`](Self::load); columns may be [`ABSENT`].
    #[inline(always)]
    pub(super) unsafe fn load_rows<G: Gpu, T: Real, const U: usize>(
        self,
        gpu: G,
        matrix: GlobalPtr<T>,
        stride: u32,
        column: u32,
        first: usize,
    ) -> [[[T; V]; CHUNKS]; U] {
        let mut rows = [[[T::default(); V]; CHUNKS]; U];
        for (i, row) in rows.iter_mut().enumerate() {
            let column = gpu.warp_shuffle_idx(FULL_WARP, column, (first + i) as u32, LANES as u32);
            // SAFETY: as promised by the caller.
            *row = unsafe { self.load(gpu, matrix, stride, column) };
        }
        rows
    }

    /// Loads the fragment of a row that has all of its vectors, `bytes` after row 0; `own` is the lane's first element there.
    ///
    /// # Safety
    /// The row lies in the matrix, which is live, and has `LANES · V · CHUNKS` elements, aligned to vectors.
    #[inline(always)]
    unsafe fn load_whole<G: Gpu, T: Real>(gpu: G, own: GlobalPtr<T>, bytes: u32) -> [[T; V]; CHUNKS] {
        let own = own.add_bytes(u64::from(bytes));
        let mut part = [[T::default(); V]; CHUNKS];
        for (chunk, vector) in part.iter_mut().enumerate() {
            // SAFETY: as promised by the caller.
            *vector = unsafe { gpu.load_readonly(own.add(chunk * LANES * V)) };
        }
        part
    }

    /// As [`load_whole`](Self::load_whole), of the rows `bytes[first..first + U]` after row 0.
    ///
    /// # Safety
    /// As for `load_whole`.
    #[inline(always)]
    pub(super) unsafe fn load_whole_rows<G: Gpu, T: Real, const U: usize>(
        gpu: G,
        own: GlobalPtr<T>,
        bytes: &[u32; LANES],
        first: usize,
    ) -> [[[T; V]; CHUNKS]; U] {
        let mut rows = [[[T::default(); V]; CHUNKS]; U];
        for (i, row) in rows.iter_mut().enumerate() {
            // SAFETY: as promised by the caller.
            *row = unsafe { Self::load_whole(gpu, own, bytes[first + i]) };
        }
        rows
    }
}

/// The values of all lanes of this lane's group.
#[inline(always)]
pub(super) fn of_group<G: Gpu, const LANES: usize>(gpu: G, own: u32) -> [u32; LANES] {
    let mut all = [0; LANES];
    for (lane, value) in all.iter_mut().enumerate() {
        *value = gpu.warp_shuffle_idx(FULL_WARP, own, lane as u32, LANES as u32);
    }
    all
}

/// This lane's part of a dot product.
#[inline(always)]
pub(super) fn dot<G: Gpu, const V: usize, const CHUNKS: usize>(
    gpu: G,
    q: &[[f32; V]; CHUNKS],
    k: &[[f32; V]; CHUNKS],
) -> f32 {
    let mut sum = 0.0;
    for (q, k) in q.iter().zip(k) {
        for (&q, &k) in q.iter().zip(k) {
            sum = gpu.fma(q, k, sum);
        }
    }
    sum
}

/// What [`transpose_sums`](crate::common::transpose_sums) gives, of sums that come one after another: two of the same level
/// meet at once, so that few are kept at a time.
#[derive(Clone, Copy)]
pub(super) struct TransposedSum<const LANES: usize> {
    /// At index `i` a sum over 2^i lanes that waits for another such.
    waiting: [f32; WARP.ilog2() as usize + 1],
}

impl<const LANES: usize> TransposedSum<LANES> {
    pub(super) const NEW: Self = Self { waiting: [0.0; WARP.ilog2() as usize + 1] };

    /// Takes this lane's part of sum `index`. They come in order.
    #[inline(always)]
    pub(super) fn push<G: Gpu>(&mut self, gpu: G, index: usize, part: f32) {
        let lane = gpu.lane_id();
        let (mut sum, mut waits) = (part, false);
        // A binary counter. All levels are gone through, so that loops unroll and places are constants.
        for (level, waiting) in self.waiting.iter_mut().enumerate() {
            if !waits && index >> level & 1 != 0 {
                let upper = lane >> level & 1 != 0;
                let (kept, given) = if upper { (sum, *waiting) } else { (*waiting, sum) };
                sum = kept + gpu.warp_shuffle_xor(FULL_WARP, given, 1 << level, WARP);
            } else if !waits {
                *waiting = sum;
                waits = true;
            }
        }
    }

    /// In lane `i` of `LANES` sum `i`, when all came.
    #[inline(always)]
    pub(super) const fn get(&self) -> f32 {
        self.waiting[LANES.ilog2() as usize]
    }
}
