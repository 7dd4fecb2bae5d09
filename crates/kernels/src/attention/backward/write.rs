//! Gradients in memory.
use lacuna_gpu::{FULL_WARP, GlobalMut, GlobalPtr, Gpu, WARP};

use super::super::tile_rows::LANES;
use super::super::wgmma::WgmmaValue;
use super::{TERMS, Work};

impl<T: WgmmaValue, G: Gpu> Work<T, G> {
    /// Writes rows of a gradient or two, where they are finite. Gives a bit for each of the warp's 16 rows that are not.
    ///
    /// # Safety
    /// The whole warp is here, whose rows they are; operands are live.
    #[inline(always)]
    pub(super) unsafe fn write<const KEYS: bool, const L: usize, const PARTS: usize>(
        &self,
        warp: u32,
        gradient: &Gradient<'_, T, L, PARTS>,
        other: Option<&Gradient<'_, T, L, PARTS>>,
    ) -> u32 {
        let gpu = self.gpu;
        // By way of a shuffle, so that no register holds what is made of it through all steps.
        let lane = gpu.warp_shuffle_idx(FULL_WARP, gpu.lane_id(), gpu.lane_id(), WARP);
        let side = self.owned::<KEYS>();
        let first = self.first + warp * 16;
        let mut bad = [0; 2];
        for (row, bad) in bad.iter_mut().enumerate() {
            let at = first + lane / LANES + 8 * row as u32;
            let mut finite = gradient.is_finite(row);
            if let Some(other) = other {
                finite &= other.is_finite(row);
            }
            let is_there = at < side.rows;
            *bad = gpu.warp_ballot(FULL_WARP, is_there && !finite);
            if is_there && *bad >> (lane / LANES * LANES) & 15 == 0 {
                // SAFETY: as promised by the caller.
                unsafe {
                    let place = (at, side.strides[0], self.operands.shape.dim, lane);
                    gradient.write(gpu, row, place);
                    if let Some(other) = other {
                        other.write(gpu, row, place);
                    }
                }
            }
        }
        // A bit for each row, from those of its four lanes.
        let of_row = if lane < 8 { bad[0] } else { bad[1] };
        gpu.warp_ballot(FULL_WARP, lane < 16 && of_row >> (lane % 8 * LANES) & 15 != 0)
    }
}

/// A gradient that a warpgroup has: its sums, what they are multiplied by, and where it goes.
pub(super) struct Gradient<'s, T, const L: usize, const PARTS: usize> {
    pub(super) sums: &'s [[f32; L]; PARTS],
    pub(super) factor: f32,
    pub(super) matrix: GlobalMut<T>,
}

impl<T: WgmmaValue, const L: usize, const PARTS: usize> Gradient<'_, T, L, PARTS> {
    /// Whether all that this thread has of its first row is finite, or of its second.
    #[inline(always)]
    fn is_finite(&self, row: usize) -> bool {
        let mut finite = true;
        for (i, sum) in self.sums.as_flattened().iter().enumerate() {
            if i / 2 % 2 == row {
                finite &= (sum * self.factor).is_finite();
            }
        }
        finite
    }

    /// Writes what this thread has of it, which is row `at` of `dim` elements, `stride` bytes apart.
    ///
    /// # Safety
    /// The row is live, and this warp's.
    #[inline(always)]
    unsafe fn write<G: Gpu>(&self, gpu: G, row: usize, (at, stride, dim, lane): (u32, u32, u32, u32)) {
        let own = 2 * (lane % LANES);
        let to = self.matrix.add_rows(at, stride).add(own as usize);
        for eight in 0..L * PARTS / 4 {
            let (part, i) = (eight / (L / 4), 4 * (eight % (L / 4)) + 2 * row);
            // The dimension is a multiple of 8 elements, of `f32` of 4.
            if 8 * eight as u32 + if T::PARTS > 1 { own } else { 0 } < dim {
                let pair = [self.sums[part][i] * self.factor, self.sums[part][i + 1] * self.factor];
                // SAFETY: as promised by the caller.
                unsafe { T::store_pair(gpu, to.add(8 * eight), pair) };
            }
        }
    }
}

impl<T: WgmmaValue, G: Gpu> Work<T, G> {
    /// The gradients of what is owned: that by dS, and that of V.
    #[inline(always)]
    pub(super) fn gradients<const KEYS: bool>(&self) -> [GlobalMut<T>; 2] {
        let operands = &self.operands;
        let head = u64::from(self.head);
        if KEYS {
            let offset = (head * operands.shape.kv_batch_stride) as usize;
            [operands.d_k.add(offset), operands.d_v.add(offset)]
        } else {
            [operands.d_q.add((head * operands.shape.q_batch_stride) as usize), operands.d_v]
        }
    }

    /// The terms of query `query` of a head, as the first kernel left them.
    ///
    /// # Safety
    /// It is one of the head's.
    #[inline(always)]
    pub(super) unsafe fn load_terms<const KEYS: bool>(&self, index: u32, query: u32) -> [f32; TERMS] {
        let terms = GlobalPtr::<f32>::from_address(self.terms::<KEYS>(index).address());
        // SAFETY: as promised by the caller.
        unsafe { self.gpu.load_readonly(terms.add(query as usize * TERMS)) }
    }
}
