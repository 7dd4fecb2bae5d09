//! A token: its moments, and how far results may be off.
//!
//! With u = 2⁻²⁴, γₙ = nu / (1 - nu) and η = 2⁻¹⁵⁰, half the smallest subnormal. For n features, numbers are added up so that each
//! passes through at most D = ⌈n/32⌉ + 16 additions: at least 32 chains, or terms that are added by fours, and what joins them. A mean
//! is a sum times 1/n, which is rounded, as is the product. Let a = mean |x|, μ the mean, c = x - μ, and σ² the variance. Hence
//! 1. m̂ is within ε = γ_{D+2} a + η of μ. Let e = m̂ - μ, and b = mean |x - m̂| ≤ mean |c| + ε.
//! 2. d̂ = x - m̂ is rounded once. Its mean is exactly -e without rounding; δ̂, as it is computed, is within β = γ_{D+3} b + η of -e.
//! 3. The mean of (x - m̂)² is σ² + e². Each square has the roundings of d̂ twice and one of its own, so that what is computed is
//!    within γ_{D+5} (σ² + ε²) + 2η of it. From it comes δ̂², which is within β (2ε + β) of e², in one fused step: v̂, replaced
//!    by 0 where it is below, is within ν = (γ_{D+5} (σ² + ε²) + β (2ε + β) + 4η) (1 + u) + u σ² of σ².
//! 4. v̂ + ε₀ (the operation's epsilon) is rounded once: it is (σ² + ε₀)(1 + r) with |r| ≤ ρ = ν (1 + u) / (σ² + ε₀) + u. Its inverse root is
//!    computed within 2u: a start within 53·2⁻²² (the logarithm to base 2 of a number, at most 149 in size, within 2⁻²² of its
//!    size, halved; and a power of 2 within 2 ulp), of which a step of Newton's method leaves 3/2 of the square, 2⁻³²; and its roundings,
//!    half of u for v·y, and u for the last one. So it is (1 + s) / √(σ² + ε₀) with |s| ≤ (1 - ρ)^(-1/2) (1 + 2u) - 1. Where ρ
//!    reaches 1 nothing is known.
//! 5. ĉ = d̂ - δ̂, rounded, is within κ = u (|c| + ε) + β + u (|c| + u (|c| + ε) + β) of c.
//! 6. The quotient is rounded once, and once more after the fused step with weight and bias.
//!
//! So an error of the mean enters by γ² only: the terms with ε are those of the second pass. Overflow: where n a (1 + γ) exceeds the
//! largest `f32`, a sum may be infinite, and anything may come. Where the sum of squares surely exceeds it, the variance is
//! infinite, and the result the bias; where it may, anything.
use crate::bound::Legal;

const U: f64 = f32::EPSILON as f64 / 2.0;
/// Half the smallest subnormal.
const ETA: f64 = f32::MIN_POSITIVE as f64 * U;
/// What the reference's own arithmetic may add, relatively; to a mean it may add as much for each feature.
const OWN: f64 = f64::EPSILON;

/// What the numbers of a token come to.
pub(super) struct Token {
    mean: f64,
    /// 1 / √(variance + ε₀).
    factor: f64,
    errors: Errors,
}

/// What is known of how far numbers may be off.
enum Errors {
    /// A number is not finite: all results are NaN.
    Nan,
    /// The variance is infinite: results are the bias.
    Infinite,
    /// Nothing.
    Unknown,
    /// ε, β, s and what the reference's mean may be off.
    Within { mean: f64, correction: f64, factor: f64, own: f64 },
}

fn gamma(n: f64) -> f64 {
    n * U / (1.0 - n * U)
}

impl Token {
    /// The token with these numbers.
    pub(super) fn of(numbers: impl ExactSizeIterator<Item = f64> + Clone, epsilon: f32) -> Self {
        let n = numbers.len() as f64;
        let mean_of = |of: &dyn Fn(f64) -> f64| numbers.clone().map(of).sum::<f64>() / n;
        let (mean, size) = (mean_of(&|x| x), mean_of(&f64::abs));
        let spread = mean_of(&|x| (x - mean).abs());
        let variance = mean_of(&|x| (x - mean) * (x - mean));
        let total = variance + f64::from(epsilon);
        let token = |errors| Self { mean, factor: total.sqrt().recip(), errors };
        if !size.is_finite() {
            return token(Errors::Nan);
        }
        let depth = (n / 32.0).ceil() + 16.0;
        let own = n * OWN * size;
        let overflows = |sum: f64| sum * (1.0 + gamma(depth + 5.0)) > f64::from(f32::MAX);
        // γ is a bound while nu is small.
        if depth * U > 0.25 || overflows(n * size) {
            return token(Errors::Unknown);
        }
        let off_mean = gamma(depth + 2.0) * size + ETA + own;
        let correction = gamma(depth + 3.0) * (spread + off_mean) + ETA + own;
        let squares = variance + off_mean * off_mean;
        if overflows(n * squares) {
            let are_sure = n * variance * (1.0 - gamma(depth + 5.0)) > 1.001 * f64::from(f32::MAX);
            return token(if are_sure { Errors::Infinite } else { Errors::Unknown });
        }
        let off_variance = (gamma(depth + 5.0) * squares
            + correction * (2.0 * off_mean + correction)
            + 4.0 * ETA
            + own * own
            + n * OWN * variance)
            * (1.0 + U)
            + U * variance;
        let relative = off_variance * (1.0 + U) / total + U;
        // Not a comparison that NaN, 0/0, would pass.
        if !matches!(relative.partial_cmp(&1.0), Some(std::cmp::Ordering::Less)) {
            return token(Errors::Unknown);
        }
        let factor = (1.0 + 2.0 * U) / (1.0 - relative).sqrt() - 1.0;
        token(Errors::Within { mean: off_mean, correction, factor, own })
    }

    /// The right results for a number of the token.
    pub(super) fn legal(&self, x: f64, weight: f64, bias: f64) -> Legal {
        let deviation = x - self.mean;
        let quotient = deviation * self.factor;
        if matches!(self.errors, Errors::Nan) || weight.is_nan() || bias.is_nan() {
            return Legal::exactly(f64::NAN);
        }
        let Errors::Within { mean, correction, factor, own } = self.errors else {
            let is_bias = matches!(self.errors, Errors::Infinite) && weight.is_finite();
            return match bias.is_finite() {
                true if is_bias => Legal::within(bias, 0.0, false),
                true => Legal::anything(bias),
                false if is_bias => Legal::exactly(bias),
                false => Legal::infinite_or_nan(bias),
            };
        };
        let size = deviation.abs();
        let off_deviation =
            U * (size + mean) + correction + U * (size + U * (size + mean) + correction) + own;
        let off = (size + off_deviation) * self.factor * (1.0 + factor) * (1.0 + U) - quotient.abs()
            + ETA
            + 8.0 * OWN * quotient.abs();
        let value = quotient * weight + bias;
        if !value.is_finite() {
            // Of an infinite weight only the quotient's sign counts.
            let is_sure = weight.is_finite() || quotient.abs() > off;
            return if is_sure { Legal::exactly(value) } else { Legal::anything(0.0) };
        }
        let off = off * weight.abs();
        let bound = off + U * (value.abs() + off) + ETA + 4.0 * OWN * (bias.abs() + quotient.abs());
        Legal::within(value, bound, false)
    }
}
