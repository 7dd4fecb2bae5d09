//! The products of a block, and what becomes of their sums between them.
use lacuna_gpu::{FULL_WARP, Gpu, SharedPtr, WARP};

use super::super::wgmma::{BlockMask, WgmmaValue};
use super::begin::RowTerms;
use super::{BackwardTiles, PANEL, ROW, SCORES, TERMS};

/// Lanes that share a row.
pub(super) const LANES: u32 = 4;
/// Numbers of a thread in pairs, as products take them, and in parts.
pub(super) type Pairs = [[u32; 2]; SCORES / 2];

impl<
    T: WgmmaValue,
    const KEYS: bool,
    const L: usize,
    const PARTS: usize,
    const GROUPS: u32,
    const STAGES: u32,
    const MODIFIES: bool,
> BackwardTiles<T, KEYS, L, PARTS, GROUPS, STAGES, MODIFIES>
{
    /// What scores are before products are added: 0 where a pair is seen, and -∞ elsewhere. In a block that is seen whole, queries past the last
    /// weigh 1 where keys are owned; but their gradient of O is 0.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    pub(super) unsafe fn seen<G: Gpu>(gpu: G, (stage, group): (u32, u32), mask: u32) -> [f32; SCORES] {
        let mut s = [0.0; SCORES];
        if mask != BlockMask::FULL {
            // SAFETY: as promised by the caller.
            let bits = unsafe { Self::bits(gpu, (stage, group), mask) };
            for (i, score) in s.iter_mut().enumerate() {
                *score = if bits >> i & 1 != 0 { 0.0 } else { f32::NEG_INFINITY };
            }
        }
        s
    }

    /// Makes weights of products, and pairs of them where keys are owned.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    pub(super) unsafe fn weigh<G: Gpu>(
        gpu: G,
        scale: f32,
        stage: u32,
        terms: &RowTerms,
        s: &mut [f32; SCORES],
        weights: &mut Pairs,
    ) {
        for eight in 0..SCORES / 4 {
            // SAFETY: as promised by the caller.
            let of_columns = unsafe { Self::column_terms(gpu, stage, eight as u32) };
            for i in 0..4 {
                let shift = if KEYS { of_columns[i % 2 * TERMS] } else { terms.shift[i / 2] };
                let at = 4 * eight + i;
                s[at] = gpu.exp2_flush(gpu.fma(s[at], scale, shift));
            }
            if KEYS {
                weights[2 * eight] = T::split(gpu, s[4 * eight], s[4 * eight + 1]);
                weights[2 * eight + 1] = T::split(gpu, s[4 * eight + 2], s[4 * eight + 3]);
            }
        }
    }

    /// Makes gradients of scores, in pairs, of the products of V and the gradient of O, and of weights.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    pub(super) unsafe fn slope<G: Gpu>(
        gpu: G,
        stage: u32,
        terms: &RowTerms,
        weights: &[f32; SCORES],
        products: &mut [f32; SCORES],
    ) -> Pairs {
        let mut pairs = [[0; 2]; SCORES / 2];
        for eight in 0..SCORES / 4 {
            // SAFETY: as promised by the caller.
            let of_columns = unsafe { Self::column_terms(gpu, stage, eight as u32) };
            for i in 0..4 {
                let delta = if KEYS { of_columns[i % 2 * TERMS + 1] } else { terms.delta[i / 2] };
                let at = 4 * eight + i;
                products[at] = weights[at] * (products[at] - delta);
            }
            pairs[2 * eight] = T::split(gpu, products[4 * eight], products[4 * eight + 1]);
            pairs[2 * eight + 1] = T::split(gpu, products[4 * eight + 2], products[4 * eight + 3]);
        }
        pairs
    }

    /// Shift and delta of this thread's two columns among eight, where keys are owned.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    pub(super) unsafe fn column_terms<G: Gpu>(gpu: G, stage: u32, eight: u32) -> [f32; 2 * TERMS] {
        if !KEYS {
            return [0.0; 2 * TERMS];
        }
        let column = 8 * eight + gpu.lane_id() % LANES * 2;
        let place = Self::TERMS + stage * Self::TERM_BYTES + column * TERMS as u32 * 4;
        // SAFETY: as promised by the caller.
        unsafe { gpu.shared_load(SharedPtr::from_offset(place)) }
    }

    /// Where a group's rows lie. Of `f32` and long rows by way of a shuffle, so that no register holds places in them through all steps.
    #[inline(always)]
    pub(super) fn owned<G: Gpu>(gpu: G, group: u32) -> u32 {
        let owned = Self::OWNED + group * Self::PAIR;
        if T::PARTS > 1 || Self::PANELS > 2 { gpu.warp_shuffle_idx(FULL_WARP, owned, 0, WARP) } else { owned }
    }

    /// Starts adding the product of 64 rows with 64 rows.
    ///
    /// # Safety
    /// Both are there; the whole warpgroup is here.
    #[inline(always)]
    pub(super) unsafe fn multiply_rows<G: Gpu>(gpu: G, a: u32, b: u32, s: &mut [f32; SCORES]) {
        for sixteen in 0..4 * Self::PANELS {
            let place = sixteen / 4 * PANEL + sixteen % 4 * 32;
            // SAFETY: as promised by the caller.
            unsafe { T::multiply(gpu, s, (a + place, Self::PART), (b + place, Self::PART)) };
        }
    }

    /// Starts adding the product of 64 × 64 numbers in pairs with 64 rows.
    ///
    /// # Safety
    /// As for [`multiply_rows`](Self::multiply_rows).
    #[inline(always)]
    pub(super) unsafe fn multiply_columns<G: Gpu>(
        gpu: G,
        pairs: &Pairs,
        b: u32,
        sums: &mut [[f32; L]; PARTS],
    ) {
        for sixteen in 0..4 {
            let first = 4 * sixteen;
            let a = [0, 1].map(|part| core::array::from_fn(|i| pairs[first + i][part]));
            for (part, sums) in sums.iter_mut().enumerate() {
                let b = b + part as u32 * (L as u32 / 32) * PANEL + sixteen as u32 * 16 * ROW;
                // SAFETY: as promised by the caller.
                unsafe { T::multiply_weights::<G, L, PANEL>(gpu, sums, a, (b, Self::PART)) };
            }
        }
    }

    /// Waits until all products are over.
    #[inline(always)]
    pub(super) fn finish<G: Gpu>(gpu: G, sums: &mut [[f32; L]; PARTS]) {
        for part in sums {
            gpu.warpgroup_wait::<0, L>(part);
        }
    }
}
