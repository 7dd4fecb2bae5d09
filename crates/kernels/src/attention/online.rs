//! Online softmax: maximum and sum are kept while the keys come.
use lacuna_gpu::{FULL_WARP, Gpu, WARP};

use crate::common::{add_across_lanes, reduce};

/// ln 2, the natural logarithm of what `log2_approx` takes one of.
pub(super) const LN_2: f32 = core::f32::consts::LN_2;

/// How far scores may exceed the maximum that weights go by before it is raised, in powers of two. It seldom is, then.
pub(super) const HEADROOM: f32 = 8.0;

/// The softmax of a query after some of its keys: weights are 2^(score − max), to be divided by their sum at last.
#[derive(Clone, Copy)]
pub(super) struct OnlineSoftmax<const V: usize, const CHUNKS: usize> {
    /// The largest score so far, or one that is less by [`HEADROOM`] at most; the same in all lanes, -∞ before the first. NaN is
    /// no score here: it shows in the sum.
    max: f32,
    /// The sum of this lane's weights.
    sum: f32,
    /// The sum of this lane's weighted part of V.
    pub(super) part: [[f32; V]; CHUNKS],
}

impl<const V: usize, const CHUNKS: usize> OnlineSoftmax<V, CHUNKS> {
    pub(super) const NEW: Self = Self { max: f32::NEG_INFINITY, sum: 0.0, part: [[0.0; V]; CHUNKS] };

    /// Takes up to one score a lane, scaled to powers of two, and gives the lane's weight: 0 where there is no key.
    #[inline(always)]
    pub(super) fn weigh<G: Gpu>(&mut self, gpu: G, score: f32, present: bool) -> f32 {
        let [weight] = weigh_all(gpu, core::array::from_mut(self), [score], [present]);
        weight
    }

    /// Makes room for larger scores: what was summed so far is rescaled.
    #[inline(always)]
    fn raise<G: Gpu>(&mut self, gpu: G, score: f32) {
        // NaN is left out.
        let max = self.max.max(reduce(gpu, FULL_WARP, WARP, score, f32::max));
        // Before the first finite score this is 0, and so are the sums.
        let factor = if max == self.max { 1.0 } else { gpu.exp2_approx(self.max - max) };
        self.sum *= factor;
        for part in &mut self.part {
            for x in part.iter_mut() {
                *x *= factor;
            }
        }
        self.max = max;
    }

    /// Adds a weighted part of a row of V.
    #[inline(always)]
    pub(super) fn add<G: Gpu>(&mut self, gpu: G, weight: f32, v: &[[f32; V]; CHUNKS]) {
        for (part, v) in self.part.iter_mut().zip(v) {
            for (x, &v) in part.iter_mut().zip(v) {
                *x = gpu.fma(weight, v, *x);
            }
        }
    }

    /// Adds up what groups of `lanes` lanes have, and divides: each group then has the row of O, and each lane the natural
    /// logarithm of the sum of exponentials. Without keys they are 0 and -∞.
    #[inline(always)]
    pub(super) fn finish<G: Gpu>(mut self, gpu: G, lanes: u32, any_keys: bool) -> ([[f32; V]; CHUNKS], f32) {
        let sum = add_across_lanes(gpu, FULL_WARP, [1, WARP], self.sum);
        let inverse = if any_keys { gpu.rcp_approx(sum) } else { 0.0 };
        for part in &mut self.part {
            for x in part.iter_mut() {
                *x = inverse
                    * if lanes < WARP { add_across_lanes(gpu, FULL_WARP, [lanes, WARP], *x) } else { *x };
            }
        }
        (self.part, LN_2 * (self.max + gpu.log2_approx(sum)))
    }
}

/// As [`OnlineSoftmax::weigh`], for a score of each of some queries.
#[inline(always)]
pub(super) fn weigh_all<G: Gpu, const V: usize, const CHUNKS: usize, const QUERIES: usize>(
    gpu: G,
    online: &mut [OnlineSoftmax<V, CHUNKS>; QUERIES],
    scores: [f32; QUERIES],
    present: [bool; QUERIES],
) -> [f32; QUERIES] {
    let mut scores = scores;
    let mut grows = false;
    for query in 0..QUERIES {
        if !present[query] {
            scores[query] = f32::NEG_INFINITY;
        }
        grows |= scores[query] > online[query].max + HEADROOM;
    }
    // They seldom grow after the first keys: to ask takes one vote, to find the largest five shuffles each.
    if gpu.warp_any(FULL_WARP, grows) {
        for query in 0..QUERIES {
            online[query].raise(gpu, scores[query]);
        }
    }
    let mut weights = [0.0; QUERIES];
    for query in 0..QUERIES {
        // While all scores are -∞, their weights are 0, not 2^(∞ - ∞).
        let max = online[query].max;
        let shift = if max == f32::NEG_INFINITY { 0.0 } else { max };
        weights[query] = gpu.exp2_approx(scores[query] - shift);
        online[query].sum += weights[query];
    }
    weights
}
