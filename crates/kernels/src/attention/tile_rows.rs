//! The softmax of 16 queries by a warp, of scores as tensor cores leave them: a lane has two rows, eight apart, and of each eight columns two
//! neighbours.
use lacuna_gpu::{FULL_WARP, Gpu};

use super::online::{HEADROOM, LN_2};
use super::row::Head;
use super::score::{Score, column_and_row};
use super::wgmma::WgmmaValue;
use crate::common::{add_across_lanes, reduce};

/// Lanes that share a query.
pub(super) const LANES: u32 = 4;
/// Scores of a lane, of 64 keys.
pub(super) const SCORES_OF_BLOCK: usize = 32;
/// Pairs of scores at most: of two blocks of 64 keys.
pub(super) const MOST_PAIRS: usize = SCORES_OF_BLOCK;

/// The softmax of a lane's two queries so far: weights are 2^(score − max), to be divided by their sum at last.
#[derive(Clone, Copy)]
pub(super) struct Softmax {
    max: [f32; 2],
    /// Of this lane's weights.
    sum: [f32; 2],
}

/// What scores are before products are added: 0 where a key is seen, which a bit of a block's word says, and -∞ elsewhere.
#[inline(always)]
pub(super) fn seen<const SCORES: usize>(words: [u32; 2]) -> [f32; SCORES] {
    let mut s = [0.0; SCORES];
    for i in 0..SCORES {
        let is_seen = words[i / SCORES_OF_BLOCK] >> (i % SCORES_OF_BLOCK) & 1 != 0;
        s[i] = if is_seen { 0.0 } else { f32::NEG_INFINITY };
    }
    s
}

/// Makes scores of products: within the soft cap, and lessened by distance, of which there are as many as queries of the lane, for the first
/// key of each block. What is not seen stays -∞, which the cap has not.
#[inline(always)]
pub(super) fn modify<G: Gpu, const SCORES: usize>(
    gpu: G,
    score: Score,
    words: [u32; 2],
    ahead: [[f32; 2]; 2],
    s: &mut [f32; SCORES],
) {
    score.cap(gpu, s);
    for (i, s) in s.iter_mut().enumerate() {
        let (column, row) = column_and_row(i % SCORES_OF_BLOCK);
        let distance = (ahead[i / SCORES_OF_BLOCK][row] - column).abs();
        let modified = score.biased(gpu, *s, distance);
        let is_seen = words[i / SCORES_OF_BLOCK] >> (i % SCORES_OF_BLOCK) & 1 != 0;
        *s = if is_seen { modified } else { f32::NEG_INFINITY };
    }
}

impl Softmax {
    pub(super) const NEW: Self = Self { max: [f32::NEG_INFINITY; 2], sum: [0.0; 2] };

    /// Makes weights of scores, in pairs as products take them, and in parts. If scores are larger than those before, what was summed is rescaled.
    #[inline(always)]
    pub(super) fn weigh<G: Gpu, T: WgmmaValue, const SCORES: usize, const L: usize, const PARTS: usize>(
        &mut self,
        gpu: G,
        scale: f32,
        s: &[f32; SCORES],
        o: &mut [[f32; L]; PARTS],
    ) -> [[u32; 2]; MOST_PAIRS] {
        let mut largest = [f32::NEG_INFINITY; 2];
        for i in 0..SCORES {
            // NaN is left out: it shows in the sum.
            largest[i / 2 % 2] = largest[i / 2 % 2].max(s[i]);
        }
        let largest = [largest[0] * scale, largest[1] * scale];
        let grows = largest[0] > self.max[0] + HEADROOM || largest[1] > self.max[1] + HEADROOM;
        if gpu.warp_any(FULL_WARP, grows) {
            let mut factors = [1.0; 2];
            for row in 0..2 {
                let max = self.max[row].max(reduce(gpu, FULL_WARP, LANES, largest[row], f32::max));
                // Before the first finite score this is 0, and so are the sums.
                if max != self.max[row] {
                    factors[row] = gpu.exp2_flush(self.max[row] - max);
                }
                self.sum[row] *= factors[row];
                self.max[row] = max;
            }
            for part in o.iter_mut() {
                for i in 0..L {
                    part[i] *= factors[i / 2 % 2];
                }
            }
        }
        // While all scores are -∞, their weights are 0, not 2^(∞ - ∞).
        let shift = |row: usize| if self.max[row] == f32::NEG_INFINITY { 0.0 } else { -self.max[row] };
        let shifts = [shift(0), shift(1)];
        let mut weights = [[0; 2]; MOST_PAIRS];
        for pair in 0..SCORES / 2 {
            let row = pair % 2;
            let low = gpu.exp2_flush(gpu.fma(s[2 * pair], scale, shifts[row]));
            let high = gpu.exp2_flush(gpu.fma(s[2 * pair + 1], scale, shifts[row]));
            self.sum[row] += low + high;
            weights[pair] = T::split(gpu, low, high);
        }
        weights
    }

    /// Writes rows of O that are finite, and their logarithms. Gives a bit for each of the warp's 16 rows that is not.
    ///
    /// # Safety
    /// The head is live, and no other warp writes these rows, of which the head has those below `rows`.
    #[inline(always)]
    pub(super) unsafe fn write<G: Gpu, T: WgmmaValue, const L: usize, const PARTS: usize>(
        &self,
        gpu: G,
        head: &Head<T>,
        [first, rows]: [u32; 2],
        o: &[[f32; L]; PARTS],
    ) -> u32 {
        let lane = gpu.lane_id();
        let mut bad = [0; 2];
        for (row, bad) in bad.iter_mut().enumerate() {
            let sum = add_across_lanes(gpu, FULL_WARP, [1, LANES], self.sum[row]);
            let inverse = gpu.rcp_approx(sum);
            let query = first + lane / LANES + 8 * row as u32;
            let mut finite = true;
            for (i, sum) in o.as_flattened().iter().enumerate() {
                if i / 2 % 2 == row {
                    finite &= (sum * inverse).is_finite();
                }
            }
            let is_there = query < rows;
            *bad = gpu.warp_ballot(FULL_WARP, is_there && !finite);
            let row_is_good = *bad >> (lane / LANES * LANES) & 15 == 0;
            if is_there && row_is_good {
                let own = 2 * (lane % LANES);
                let to = head.o.add_rows(query, head.o_stride).add(own as usize);
                for eight in 0..L * PARTS / 4 {
                    let (part, at) = (eight / (L / 4), 4 * (eight % (L / 4)) + 2 * row);
                    // The dimension is a multiple of 8 elements, of `f32` of 4.
                    if 8 * eight as u32 + if T::PARTS > 1 { own } else { 0 } < head.dim {
                        let pair = [o[part][at] * inverse, o[part][at + 1] * inverse];
                        // SAFETY: as promised by the caller.
                        unsafe { T::store_pair(gpu, to.add(8 * eight), pair) };
                    }
                }
                if lane.is_multiple_of(LANES) {
                    let logsumexp = LN_2 * (self.max[row] + gpu.log2_approx(sum));
                    // SAFETY: as promised by the caller.
                    unsafe { head.store_logsumexp(gpu, query, logsumexp) };
                }
            }
        }
        // A bit for each row, from those of its four lanes.
        let of_row = if lane < 8 { bad[0] } else { bad[1] };
        gpu.warp_ballot(FULL_WARP, lane < 16 && of_row >> (lane % 8 * LANES) & 15 != 0)
    }
}
