//! Two warpgroups that divide the work on 64 keys.
//!
//! ```text
//!   warps 0–3   Pᵀ = 2^(scale·K·Qᵀ + shift) ─ mask ──┬──────────────────────►  dV += Pᵀ·dO
//!                                                    ▼ shared memory
//!   warps 4–7   V·dOᵀ ─────────────────────►  dSᵀ = Pᵀ ⊙ (V·dOᵀ − delta)  ─►  dK += dSᵀ·Q
//! ```
use lacuna_gpu::{Gpu, SharedPtr};

use super::super::wgmma::{BlockMask, WgmmaValue};
use super::begin::RowTerms;
use super::consume::Place;
use super::weights::slope;
use super::write::Gradient;
use super::{BackwardTiles, SCORES, WARPGROUP, Work};

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
    /// Works out the gradients of 64 rows by two warpgroups, and writes them.
    ///
    /// # Safety
    /// Both are here; operands and entries are live.
    #[inline(always)]
    pub(super) unsafe fn divide<G: Gpu, const N: usize>(work: &Work<T, G>, warp: u32) {
        // SAFETY: as promised by the caller.
        unsafe {
            if warp < 4 {
                Self::consume_divided::<G, N, false>(work, warp);
            } else {
                Self::consume_divided::<G, N, true>(work, warp - 4);
            }
        }
    }

    /// Works out the gradient of V of 64 rows or, if `SLOPES`, that of K, and writes it.
    ///
    /// # Safety
    /// The whole warpgroup is here, and the other is in the other's call; operands and entries are live.
    #[inline(always)]
    unsafe fn consume_divided<G: Gpu, const N: usize, const SLOPES: bool>(work: &Work<T, G>, warp: u32) {
        let mut sums = [[0.0; L]; PARTS];
        // SAFETY: as promised by the caller; a stage is read while it is full. A tile of one group has no block that it does not see, so
        // that both have the same blocks.
        unsafe {
            let terms =
                if SLOPES { Self::begin(work, (0, 1), 1..2) } else { Self::begin(work, (0, 0), 0..1) };
            let mut place = Place::first(warp);
            while place.step < Self::STEPS * work.count * work.heads {
                let mask = Self::enter(work, &place, u32::from(SLOPES));
                if SLOPES {
                    Self::add_slopes::<G, N>(work, &place, &terms, &mut sums);
                } else {
                    Self::add_weights::<G, N>(work, &place, mask, &terms, &mut sums);
                }
                Self::leave(work, &mut place);
            }
            let [by_slopes, of_values] = work.gradients::<KEYS>();
            let (factor, matrix) = if SLOPES { (work.operands.factor, by_slopes) } else { (1.0, of_values) };
            let again = work.write::<KEYS, L, PARTS>(warp, &Gradient { sums: &sums, factor, matrix }, None);
            work.work_out_anew::<KEYS, MODIFIES>((warp, again, Self::PANELS), [SLOPES, !SLOPES], &terms);
        }
    }

    /// Makes weights of a block, gives them to the other warpgroup, and adds their products with the gradient of O.
    ///
    /// # Safety
    /// The stage is full; the whole warpgroup is here.
    #[inline(always)]
    unsafe fn add_weights<G: Gpu, const N: usize>(
        work: &Work<T, G>,
        place: &Place,
        mask: u32,
        terms: &RowTerms,
        sums: &mut [[f32; L]; PARTS],
    ) {
        let (gpu, stage) = (work.gpu, place.stage);
        let streamed = Self::streamed(gpu, stage);
        debug_assert!(mask != BlockMask::EMPTY);
        // SAFETY: as promised by the caller; weights are written when those before have been read.
        unsafe {
            let mut s = Self::seen::<G, N>(gpu, place, mask);
            gpu.warpgroup_arrive();
            Self::multiply_rows(gpu, Self::owned(gpu, 0), streamed, &mut s);
            gpu.warpgroup_commit();
            gpu.warpgroup_wait::<0, N>(&mut s);
            let mut weights = [[0; 2]; SCORES / 2];
            if MODIFIES {
                Self::weigh_modified(work, (place, mask), terms, &mut s, &mut weights);
            } else {
                Self::weigh(work, place, terms, &mut s, &mut weights);
            }
            gpu.warpgroup_arrive();
            Self::multiply_columns::<G, N>(gpu, &weights, streamed + Self::STREAMED, sums);
            gpu.warpgroup_commit();
            if place.step > 0 {
                gpu.barrier_sync(Self::READ, 2 * WARPGROUP);
            }
            for eight in 0..N / 4 {
                let four = [s[4 * eight], s[4 * eight + 1], s[4 * eight + 2], s[4 * eight + 3]];
                gpu.shared_store(Self::weights(gpu, eight), four);
            }
            gpu.barrier_arrive(Self::WRITTEN, 2 * WARPGROUP);
            Self::finish(gpu, sums);
        }
    }

    /// Makes gradients of a block's scores, of weights that the other warpgroup gives, and adds their products with Q.
    ///
    /// # Safety
    /// As for [`add_weights`](Self::add_weights).
    #[inline(always)]
    unsafe fn add_slopes<G: Gpu, const N: usize>(
        work: &Work<T, G>,
        place: &Place,
        terms: &RowTerms,
        sums: &mut [[f32; L]; PARTS],
    ) {
        let (gpu, stage) = (work.gpu, place.stage);
        let streamed = Self::streamed(gpu, stage);
        let mut products = [0.0; N];
        // SAFETY: as promised by the caller; weights are read when they are written.
        unsafe {
            let owned = Self::owned(gpu, 0) + Self::MATRIX;
            gpu.warpgroup_arrive();
            Self::multiply_rows(gpu, owned, streamed + Self::STREAMED, &mut products);
            gpu.warpgroup_commit();
            gpu.warpgroup_wait::<0, N>(&mut products);
            gpu.barrier_sync(Self::WRITTEN, 2 * WARPGROUP);
            let mut weights = [0.0; N];
            for (eight, four) in weights.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                *four = gpu.shared_load(Self::weights(gpu, eight));
            }
            let slopes = slope::<G, T, KEYS, N>(
                gpu,
                Self::terms(Self::slot(place.step, place.stage)),
                terms,
                &weights,
                &mut products,
            );
            if place.step + 1 < Self::STEPS * work.count * work.heads {
                gpu.barrier_arrive(Self::READ, 2 * WARPGROUP);
            }
            gpu.warpgroup_arrive();
            Self::multiply_columns::<G, N>(gpu, &slopes, streamed, sums);
            gpu.warpgroup_commit();
            Self::finish(gpu, sums);
        }
    }

    /// Where four of a thread's weights lie.
    #[inline(always)]
    fn weights<G: Gpu>(gpu: G, eight: usize) -> SharedPtr<f32> {
        let vector = eight as u32 * WARPGROUP + gpu.thread_idx_x() % WARPGROUP;
        SharedPtr::from_offset(Self::WEIGHTS + vector * 16)
    }
}
