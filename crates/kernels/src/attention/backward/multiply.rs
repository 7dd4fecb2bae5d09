//! The products of a block by warpgroups.
use lacuna_gpu::{FULL_WARP, Gpu, SharedPtr, WARP};

use super::super::wgmma::{BITMAP_WORDS, BlockMask, WgmmaValue};
use super::begin::RowTerms;
use super::consume::Place;
use super::modified::ScoreBlock;
use super::weights::weigh;
use super::{BackwardTiles, PANEL, Pairs, ROW, SCORES, Work};

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
    pub(super) unsafe fn seen<G: Gpu, const N: usize>(gpu: G, place: &Place, mask: u32) -> [f32; N] {
        let mut s = [0.0; N];
        if mask != BlockMask::FULL {
            // SAFETY: as promised by the caller.
            let bits = unsafe { Self::bits(gpu, place, mask) };
            for (i, score) in s.iter_mut().enumerate() {
                *score = if bits >> i & 1 != 0 { 0.0 } else { f32::NEG_INFINITY };
            }
        }
        s
    }

    /// This thread's bits of a step.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    pub(super) unsafe fn bits<G: Gpu>(gpu: G, place: &Place, mask: u32) -> u32 {
        if mask == BlockMask::FULL {
            return u32::MAX;
        }
        let from = Self::bitmap(Self::slot(place.step, place.stage), place.warp / 4)
            + gpu.thread_idx_x() % BITMAP_WORDS * 4;
        // SAFETY: as promised by the caller.
        let [bits]: [u32; 1] = unsafe { gpu.shared_load(SharedPtr::from_offset(from)) };
        bits >> (place.half * SCORES as u32 / 2)
    }

    /// Whose scores a step makes.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    unsafe fn score_block<G: Gpu>(work: &Work<T, G>, place: &Place, mask: u32) -> ScoreBlock {
        let &Place { step, index, half, warp, .. } = place;
        // SAFETY: as promised by the caller.
        let bits = unsafe { Self::bits(work.gpu, place, mask) };
        // Heads are gone through with all entries each.
        let head = step / (Self::STEPS * work.count);
        ScoreBlock {
            head,
            index,
            warp,
            column: half * Self::ROWS,
            bits,
            terms: Self::terms(Self::slot(place.step, place.stage)),
        }
    }

    /// Makes weights of products, and pairs of them where keys are owned.
    ///
    /// # Safety
    /// The stage is full.
    #[inline(always)]
    pub(super) unsafe fn weigh<G: Gpu, const N: usize>(
        work: &Work<T, G>,
        place: &Place,
        terms: &RowTerms,
        s: &mut [f32; N],
        weights: &mut Pairs,
    ) {
        let (scale, at) = (work.operands.shape.scale, Self::terms(Self::slot(place.step, place.stage)));
        // SAFETY: as promised by the caller.
        unsafe { weigh::<G, T, KEYS, N>(work.gpu, scale, at, terms, s, weights) };
    }

    /// The same of scores that are changed: see [`Work::weigh_modified`].
    ///
    /// # Safety
    /// The stage is full; the whole warpgroup is here.
    #[inline(always)]
    pub(super) unsafe fn weigh_modified<G: Gpu, const N: usize>(
        work: &Work<T, G>,
        (place, mask): (&Place, u32),
        terms: &RowTerms,
        s: &mut [f32; N],
        weights: &mut Pairs,
    ) {
        // SAFETY: as promised by the caller.
        unsafe {
            let block = Self::score_block(work, place, mask);
            work.weigh_modified::<KEYS, N>(&block, terms, s, weights);
        }
    }

    /// Where a group's rows lie. Of `f32` and long rows by way of a shuffle, so that no register holds places in them through all steps.
    #[inline(always)]
    pub(super) fn owned<G: Gpu>(gpu: G, group: u32) -> u32 {
        let owned = Self::OWNED + group * Self::PAIR;
        if T::PARTS > 1 || Self::PANELS > 2 { gpu.warp_shuffle_idx(FULL_WARP, owned, 0, WARP) } else { owned }
    }

    /// Where the rows of a stage lie: if there is only one, likewise.
    #[inline(always)]
    pub(super) fn streamed<G: Gpu>(gpu: G, stage: u32) -> u32 {
        let streamed = stage * Self::STREAMED_PAIR;
        if STAGES == 1 { gpu.warp_shuffle_idx(FULL_WARP, streamed, 0, WARP) } else { streamed }
    }

    /// Starts adding the product of 64 rows, which are owned, with those that streamed.
    ///
    /// # Safety
    /// Both are there; the whole warpgroup is here.
    #[inline(always)]
    pub(super) unsafe fn multiply_rows<G: Gpu, const N: usize>(gpu: G, a: u32, b: u32, s: &mut [f32; N]) {
        for sixteen in 0..4 * Self::PANELS {
            let (panel, column) = (sixteen / 4, sixteen % 4 * 32);
            let a = (a + panel * PANEL + column, Self::PART);
            let b = (b + panel * Self::STREAMED_PANEL + column, Self::STREAMED_PART);
            // SAFETY: as promised by the caller.
            unsafe { T::multiply(gpu, s, a, b) };
        }
    }

    /// Starts adding the product of 64 × 2·`N` numbers in pairs with the rows that streamed.
    ///
    /// # Safety
    /// As for [`multiply_rows`](Self::multiply_rows).
    #[inline(always)]
    pub(super) unsafe fn multiply_columns<G: Gpu, const N: usize>(
        gpu: G,
        pairs: &Pairs,
        b: u32,
        sums: &mut [[f32; L]; PARTS],
    ) {
        for sixteen in 0..N / 8 {
            let first = 4 * sixteen;
            let a = [0, 1].map(|part| core::array::from_fn(|i| pairs[first + i][part]));
            for (part, sums) in sums.iter_mut().enumerate() {
                let b = b + part as u32 * (L as u32 / 32) * Self::STREAMED_PANEL + sixteen as u32 * 16 * ROW;
                let b = (b, Self::STREAMED_PART);
                // SAFETY: as promised by the caller.
                unsafe {
                    if Self::HALVES {
                        T::multiply_weights::<G, L, { PANEL / 2 }>(gpu, sums, a, b);
                    } else {
                        T::multiply_weights::<G, L, PANEL>(gpu, sums, a, b);
                    }
                }
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
