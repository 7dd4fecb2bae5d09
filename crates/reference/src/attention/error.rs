//! The bound on weights, as the module derives it.

use super::{AttentionReference, Heads, ScoreMod};
use crate::bound::Precision;
use crate::{Value, bound};

/// The unit roundoff of `f32`, 2⁻²⁴, and of `f64`.
pub(super) const U32: f64 = 1.0 / (1u64 << 24) as f64;
const U64: f64 = 1.0 / (1u64 << 53) as f64;
/// The smallest subnormal `f32`, 2⁻¹⁴⁹.
pub(super) const SUBNORMAL: f64 = f32::MIN_POSITIVE as f64 * 2.0 * U32;
/// What `log2_approx` may be off by.
const LOG2: f64 = 4.0 * U32;
/// Keys after which the largest score may have grown, at least.
const KEYS: usize = 32;

/// The natural logarithm of about the largest `f64`.
const LARGEST_EXPONENT: f64 = 700.0;

/// How a result was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arithmetic {
    /// In one pass, in `f32`.
    #[default]
    Fused,
    /// As SDDMM, softmax and SpMM: scores and weights are rounded to the type of the operands. The product of weights and V
    /// is of this precision.
    Steps(Precision),
    /// In one pass, with both products on tensor cores, and weights rounded to the type of the operands: of `f32` three products of bfloat16.
    Tiles,
}

/// The errors of a row's weights.
#[derive(Debug, Clone)]
pub(super) struct RowError {
    /// For each key how far its weight may be off.
    pub(super) weights: Vec<f64>,
    /// How far the logarithm of the sum of exponentials may be off.
    pub(super) logsumexp: f64,
}

/// γₙ = nu / (1 - nu).
pub(super) fn gamma(n: f64) -> f64 {
    n * U32 / (1.0 - n * U32)
}

/// How far the hyperbolic tangent may be off, as a part of itself.
pub(super) const TANH: f64 = 44.0 * U32;

impl ScoreMod {
    /// How far a score may be off by its soft cap and its bias, beside what its product is off.
    pub(super) fn error(self, capped: f64, bias: f64) -> f64 {
        if self == Self::default() {
            return 0.0;
        }
        let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
        let of_cap = if self.softcap.is_some() { TANH + 3.0 * U32 } else { 0.0 };
        (of_cap + 8.0 * U32) * finite(capped) + 8.0 * U32 * finite(bias)
    }
}

impl<T: Value> AttentionReference<'_, T> {
    /// Whether a score may overflow on its way, though it is finite.
    pub(super) fn may_overflow(&self, row: usize) -> bool {
        let range = self.mask.row_range(row);
        // Without the scale, too: it comes after the sum.
        let factor = 1.5 * (1.0 / f64::from(self.heads.scale.abs())).max(1.0);
        let most = match self.arithmetic {
            Arithmetic::Fused | Arithmetic::Tiles => f64::from(f32::MAX),
            Arithmetic::Steps(_) => T::LARGEST,
        };
        self.magnitudes[range.clone()].iter().any(|magnitude| magnitude * factor > most)
            || self.scores[range].iter().any(|score| score.is_finite() && score.abs() * 1.5 > most)
    }

    /// How far scores may exceed what weights go by, in powers of two: so they are larger by so many, until they are divided.
    pub(super) fn headroom(&self) -> f64 {
        match self.arithmetic {
            Arithmetic::Fused | Arithmetic::Tiles => 8.0,
            Arithmetic::Steps(_) => 0.0,
        }
    }

    /// The errors of a row whose scores are finite or -∞.
    pub(super) fn row_error(&self, row: usize) -> RowError {
        let range = self.mask.row_range(row);
        let (scores, magnitudes) = (&self.scores[range.clone()], &self.magnitudes[range.clone()]);
        let modified = &self.modified[range.clone()];
        let weights = &self.weights[range];
        let (n, d) = (scores.len() as f64, self.heads.dim as f64);
        let log2_e = std::f64::consts::LOG2_E;
        let scale = f64::from(self.heads.scale.abs());
        // What a score's sum is off, and what rounding to the type of the operands adds to a score, and to a weight.
        let (sum, [score_rounded, score_least], [rounded, least]) = match self.arithmetic {
            Arithmetic::Fused => (gamma(d + 2.0), [0.0; 2], [0.0; 2]),
            Arithmetic::Steps(_) => (gamma(d + 4.0), [T::ROUNDOFF, T::LEAST], [T::ROUNDOFF, T::LEAST]),
            Arithmetic::Tiles => {
                let sum = relative_error(of_tiles::<T>(), self.heads.dim) + gamma(2.0);
                // Exponentials that are subnormal are 0, and so may be parts of small weights, of which `f32` has two.
                let parts = if of_tiles::<T>() == Precision::SplitBf16 { 4.0 } else { 1.0 };
                (sum, [0.0; 2], [T::ROUNDOFF, T::LEAST + parts * f64::from(f32::MIN_POSITIVE)])
            }
        };
        let flushed = (d + 2.0) * SUBNORMAL * (1.0 + scale) + score_least * scale;
        let relative = sum + 2.0 * (d + 4.0) * U64;
        let q = self.heads.row(self.heads.q, row);
        let lost = |key: &u32| -> f64 {
            if !self.loses_parts {
                return 0.0;
            }
            let pairs = q.iter().zip(self.heads.row(self.heads.k, *key as usize));
            scale * pairs.map(|(q, k)| lost_parts(q.to_f32(), k.to_f32())).sum::<f64>()
        };
        let keys = self.mask.row_columns(row);
        let exponent = |(((score, magnitude), modified), key): (((&f64, &f64), &f64), &u32)| {
            let finite = if score.is_finite() { score.abs() } else { 0.0 };
            let rounded = score_rounded * (finite + relative * magnitude);
            log2_e * (relative * magnitude + rounded + flushed + lost(key) + modified)
        };
        let exponents: Vec<f64> =
            scores.iter().zip(magnitudes).zip(modified).zip(keys).map(exponent).collect();
        let worst = exponents.iter().copied().fold(0.0, f64::max);
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let factors = scores.len().div_ceil(KEYS) as f64 + 1.0;
        let delta = |(score, exponent): (&f64, &f64)| {
            let distance = if score.is_finite() { log2_e * (max - score) } else { 0.0 };
            // The maximum that weights go by is less than that of the scores by so much at most.
            let distance = distance.max(self.headroom());
            let exponent = exponent + U32 * (distance + 2.0 * worst);
            1.001 * (std::f64::consts::LN_2 * exponent + 5.0 * U32 * (factors + 1.0))
        };
        let deltas: Vec<f64> = scores.iter().zip(&exponents).map(delta).collect();
        let sum = |sign: f64| -> f64 {
            weights.iter().zip(&deltas).map(|(weight, delta)| weight * (sign * delta).exp()).sum()
        };
        // Exponentials of more than that overflow, and nothing is known of the sum.
        let known = deltas.iter().all(|&delta| delta < LARGEST_EXPONENT);
        let total = if known { sum(1.0).ln().max(-sum(-1.0).ln()).max(0.0) } else { f64::INFINITY };
        let kappa = 2.0 * gamma(n) + 4.0 * U32 + 4.0 * (n + 4.0) * U64;
        let flushed = (factors + 2.0) * 4.0 * SUBNORMAL + least;
        let error = |(weight, delta): (&f64, &f64)| {
            let factor = (delta + total + kappa).exp_m1() * (1.0 + rounded) + rounded;
            // Weights are from 0 to 1, whatever the scores.
            (weight * factor).min(1.001) + flushed
        };
        let weights = weights.iter().zip(&deltas).map(error).collect();

        let value = self.logsumexp(row);
        let logsumexp = total
            + gamma(n)
            + LOG2 * (1.0 + (value - max) + std::f64::consts::LN_2 * self.headroom())
            + 4.0 * U32 * value.abs();
        RowError { weights, logsumexp: 1.001 * logsumexp }
    }

    /// Whether numbers come in parts, of which tensor cores may take some for zero: of `f32` by tiles, where Q, K or V has small ones.
    pub(super) fn may_lose_parts(&self) -> bool {
        let Heads { q, k, v, .. } = self.heads;
        let has_parts = self.arithmetic == Arithmetic::Tiles && of_tiles::<T>() == Precision::SplitBf16;
        has_parts && [q, k, v].iter().any(|values| values.iter().any(|x| bound::is_tiny(x.to_f32())))
    }

    /// How far the sum of `n` products of weights may be off, relatively, beside what their weights are off.
    pub(super) fn product_error(&self, n: usize) -> f64 {
        match self.arithmetic {
            // Counted among the errors of the weights.
            Arithmetic::Fused => 0.0,
            Arithmetic::Steps(precision) => relative_error(precision, n),
            Arithmetic::Tiles => relative_error(of_tiles::<T>(), n),
        }
    }
}

/// What a product of these loses where a part of a factor is taken for zero.
pub(super) fn lost_parts(x: f32, y: f32) -> f64 {
    4.0 * f64::from(f32::MIN_POSITIVE) * bound::tiny(x, y)
}

/// The most that a sum of products loses where parts of factors are taken for zero, of factors whose sizes have this sum; of numbers that
/// have no parts nothing.
pub(super) fn most_lost(precision: Precision, sizes: f64) -> f64 {
    if precision == Precision::SplitBf16 { 4.0 * f64::from(f32::MIN_POSITIVE) * sizes } else { 0.0 }
}

/// How tiles multiply values of `T`.
pub(super) fn of_tiles<T: Value>() -> Precision {
    if T::ROUNDOFF == U32 { Precision::SplitBf16 } else { Precision::Tensor }
}

/// How far a sum of `n` products of size 1 in all may be off.
pub(super) fn relative_error(precision: Precision, n: usize) -> f64 {
    let sum = bound::Sum { terms: n as u32, value: 1.0, magnitude: 1.0, tiny: 0.0 };
    sum.bound(precision)
}
