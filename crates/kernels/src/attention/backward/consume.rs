//! The warpgroups that multiply, 64 rows each.
use lacuna_gpu::{FULL_WARP, Gpu, WARP};

use super::super::wgmma::{BlockEntry, BlockMask, WgmmaValue};
use super::begin::RowTerms;
use super::weights::slope;
use super::write::Gradient;
use super::{BackwardTiles, SCORES, Work};

/// Which block a warp multiplies: the step, its entry, which half of it where a step is half a block, and where it is copied to.
pub(super) struct Place {
    pub(super) step: u32,
    pub(super) index: u32,
    pub(super) half: u32,
    pub(super) stage: u32,
    /// The warp, of those that own rows: 16 each.
    pub(super) warp: u32,
}

impl Place {
    /// The first block of a warp.
    #[inline(always)]
    pub(super) fn first(warp: u32) -> Self {
        Self { step: 0, index: 0, half: 0, stage: 0, warp }
    }
}

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
    /// Works out the gradients of 64 rows, and writes them.
    ///
    /// # Safety
    /// The whole warpgroup is here; operands and entries are live.
    #[inline(always)]
    pub(super) unsafe fn consume<G: Gpu, const N: usize>(work: &Work<T, G>, warp: u32) {
        let group = warp / 4;
        // The gradient by dS, and that of V.
        let (mut sums, mut values) = ([[0.0; L]; PARTS], [[0.0; L]; PARTS]);
        // SAFETY: as promised by the caller; a stage is read while it is full.
        unsafe {
            let terms = Self::begin(work, (group, group), 0..2);
            let mut place = Place::first(warp);
            while place.step < Self::STEPS * work.count * work.heads {
                let mask = Self::enter(work, &place, place.warp / 4);
                if mask != BlockMask::EMPTY {
                    Self::multiply::<G, N>(work, &place, mask, &terms, &mut sums, &mut values);
                }
                Self::leave(work, &mut place);
            }
            let [by_slopes, of_values] = work.gradients::<KEYS>();
            let by_slopes = Gradient { sums: &sums, factor: work.operands.factor, matrix: by_slopes };
            let of_values = Gradient { sums: &values, factor: 1.0, matrix: of_values };
            let again = work.write::<KEYS, L, PARTS>(warp, &by_slopes, KEYS.then_some(&of_values));
            work.work_out_anew::<KEYS, MODIFIES>((warp, again, Self::PANELS), [true, KEYS], &terms);
        }
    }

    /// Waits, as a warpgroup, until a block is there, and gives what a group sees of it.
    ///
    /// # Safety
    /// As for [`consume`](Self::consume).
    #[inline(always)]
    pub(super) unsafe fn enter<G: Gpu>(work: &Work<T, G>, place: &Place, warpgroup: u32) -> u32 {
        let (gpu, group) = (work.gpu, place.warp / 4);
        // SAFETY: as promised by the caller.
        let mask = unsafe { BlockEntry::load_mask(gpu, work.entries, place.index, work.count, group) };
        // It is the same for all lanes, which the compiler sees by way of a shuffle.
        let mask = gpu.warp_shuffle_idx(FULL_WARP, mask, 0, WARP);
        gpu.barrier_sync(Self::FULL + place.stage * Self::WARPGROUPS + warpgroup, Self::AT_FULL);
        mask
    }

    /// Gives the block's stage back, and goes to the next block.
    #[inline(always)]
    pub(super) fn leave<G: Gpu>(work: &Work<T, G>, place: &mut Place) {
        if place.step + STAGES < Self::STEPS * work.count * work.heads {
            work.gpu.barrier_arrive(Self::EMPTY + place.stage, Self::AT_EMPTY);
        }
        place.step += 1;
        place.stage = if place.stage + 1 == STAGES { 0 } else { place.stage + 1 };
        if Self::HALVES {
            place.half ^= 1;
            if place.half == 1 {
                return;
            }
        }
        // Queries go through their entries once.
        place.index = if !KEYS || place.index + 1 < work.count { place.index + 1 } else { 0 };
    }

    /// Adds what a block gives.
    ///
    /// # Safety
    /// The stage is full; the whole warpgroup is here.
    #[inline(always)]
    unsafe fn multiply<G: Gpu, const N: usize>(
        work: &Work<T, G>,
        place: &Place,
        mask: u32,
        terms: &RowTerms,
        sums: &mut [[f32; L]; PARTS],
        values: &mut [[f32; L]; PARTS],
    ) {
        let (gpu, stage, group) = (work.gpu, place.stage, place.warp / 4);
        let (owned, streamed) = (Self::owned(gpu, group), Self::streamed(gpu, stage));
        // SAFETY: as promised by the caller.
        unsafe {
            let mut s = Self::seen::<G, N>(gpu, place, mask);
            gpu.warpgroup_arrive();
            Self::multiply_rows(gpu, owned, streamed, &mut s);
            gpu.warpgroup_commit();
            let (mut weights, mut products) = ([[0; 2]; SCORES / 2], [0.0; N]);
            // Kernels that modify are not called without; with both ways in them, the compiler spills no registers.
            if !MODIFIES || PARTS == 1 && work.is_plain() {
                Self::multiply_rows(gpu, owned + Self::MATRIX, streamed + Self::STREAMED, &mut products);
                gpu.warpgroup_commit();
                gpu.warpgroup_wait::<1, N>(&mut s);
                Self::weigh(work, place, terms, &mut s, &mut weights);
            } else {
                // The second product comes later: its sums have no registers until scores are done.
                gpu.warpgroup_wait::<0, N>(&mut s);
                Self::weigh_modified(work, (place, mask), terms, &mut s, &mut weights);
                gpu.warpgroup_arrive();
                Self::multiply_rows(gpu, owned + Self::MATRIX, streamed + Self::STREAMED, &mut products);
                gpu.warpgroup_commit();
            }
            gpu.warpgroup_wait::<0, N>(&mut products);
            let slopes = slope::<G, T, KEYS, N>(
                gpu,
                Self::terms(Self::slot(place.step, place.stage)),
                terms,
                &s,
                &mut products,
            );
            gpu.warpgroup_arrive();
            if KEYS {
                Self::multiply_columns::<G, N>(gpu, &weights, streamed + Self::STREAMED, values);
            }
            Self::multiply_columns::<G, N>(gpu, &slopes, streamed, sums);
            gpu.warpgroup_commit();
            Self::finish(gpu, sums);
            if KEYS {
                Self::finish(gpu, values);
            }
        }
    }
}
