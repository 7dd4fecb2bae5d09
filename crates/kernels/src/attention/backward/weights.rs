//! What becomes of a block's products: weights, and gradients of scores.
use lacuna_gpu::{Gpu, SharedPtr};

use super::super::tile_rows::LANES;
use super::super::wgmma::WgmmaValue;
use super::begin::RowTerms;
use super::{Pairs, SCORES, TERMS};

/// Makes weights of products, and pairs of them where keys are owned, whose queries' terms are at `place`.
///
/// # Safety
/// The terms are there.
#[inline(always)]
pub(super) unsafe fn weigh<G: Gpu, T: WgmmaValue, const KEYS: bool, const N: usize>(
    gpu: G,
    scale: f32,
    place: u32,
    terms: &RowTerms,
    s: &mut [f32; N],
    weights: &mut Pairs,
) {
    for eight in 0..N / 4 {
        // SAFETY: as promised by the caller.
        let of_columns = unsafe { column_terms::<G, KEYS>(gpu, place, eight as u32) };
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
/// The terms are there.
#[inline(always)]
pub(super) unsafe fn slope<G: Gpu, T: WgmmaValue, const KEYS: bool, const N: usize>(
    gpu: G,
    place: u32,
    terms: &RowTerms,
    weights: &[f32; N],
    products: &mut [f32; N],
) -> Pairs {
    let mut pairs = [[0; 2]; SCORES / 2];
    for eight in 0..N / 4 {
        // SAFETY: as promised by the caller.
        let of_columns = unsafe { column_terms::<G, KEYS>(gpu, place, eight as u32) };
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
/// The terms are there.
#[inline(always)]
pub(super) unsafe fn column_terms<G: Gpu, const KEYS: bool>(
    gpu: G,
    place: u32,
    eight: u32,
) -> [f32; 2 * TERMS] {
    if !KEYS {
        return [0.0; 2 * TERMS];
    }
    let column = 8 * eight + gpu.lane_id() % LANES * 2;
    let place = place + column * TERMS as u32 * 4;
    // SAFETY: as promised by the caller.
    unsafe { gpu.shared_load(SharedPtr::from_offset(place)) }
}
