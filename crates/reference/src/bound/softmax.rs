//! How far a softmax, and its gradient, may be from the truth.
//!
//! With u = 2⁻²⁴, η = 2⁻¹⁵⁰ and γₙ = nu / (1 - nu) as for the sums.
//!
//! # The softmax
//! Let s·xᵢ have the greatest value at x = m, and let aᵢ = s (xᵢ - m) ≤ 0, so that yᵢ = eᵢ / S with eᵢ = exp aᵢ and S = Σ eⱼ of
//! n terms. A result is computed so, or better, in `f32`:
//! 1. zᵢ = (xᵢ - m) · c with c = s log₂e. The difference is rounded, c is, and their product: zᵢ = aᵢ log₂e (1 + θ₃) with
//!    |θ₃| ≤ γ₃. The error is relative to aᵢ, not to xᵢ: at most 160 places of e, since eᵢ is 0 from aᵢ = -104 on;
//! 2. eᵢ = 2 to the power zᵢ within 2 ulp: that is 4u relatively, and 4η where the result is subnormal. So it lies between
//!    exp(aᵢ (1 + γ₃)) (1 - 4u) - 4η, and at least 0, and exp(aᵢ (1 - γ₃)) (1 + 4u) + 4η. Of aᵢ = -∞ it is exactly 0;
//! 3. the sum, of terms that are not negative, in any order: between that of the lower ends times 1 - γₙ₋₁, and that of the
//!    upper ends times 1 + γₙ₋₁;
//! 4. a reciprocal within 1 ulp, 2u relatively, times eᵢ: one rounding more, by u, or by η where the product is subnormal.
//!    A division rounded once is better.
//!
//! The ends of eᵢ over the opposite ends of the sum, with the roundings of the last step, are the ends of the result. It is
//! never negative, nor -0. The reference's own errors, those of `f64`, are counted as some n more of 2⁻⁵³.
//!
//! A row is NaN if one of s·xᵢ is NaN or +∞, or if all are -∞: then m is infinite, and -∞ - -∞ is NaN.
//!
//! # The gradient
//! dxᵢ = s yᵢ (dyᵢ - D) with D = Σ yⱼ dyⱼ. D is a sum of products, with the bound of such sums; the difference adds one
//! rounding to that; the product of s and yᵢ is rounded, and its product with the difference: γ₂ of the result. Where s yᵢ is
//! subnormal it errs by η, which the difference multiplies; where the result is, by η. Overflow is as for sums, and values
//! that are not finite go where the formula takes them.

use super::legal::Set;
use super::{Legal, Precision, Sum, U32, U64, UNDERFLOW, gamma};

/// What 2 ulp are of a result of 2 to a power, relatively, and of a subnormal one.
const POWER: (f64, f64) = (4.0 * U32, 4.0 * UNDERFLOW);

/// The right results of a row's softmax of `scale · x`; `scale` is finite and not 0.
pub fn softmax_row(x: &[f32], scale: f32) -> Vec<Legal> {
    // Exact: two `f32` have a product in `f64`.
    let scaled: Vec<f64> = x.iter().map(|&x| f64::from(x) * f64::from(scale)).collect();
    // NaN does not count in `max`.
    let greatest = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if greatest.is_infinite() || scaled.iter().any(|scaled| scaled.is_nan()) {
        return vec![legal(f64::NAN, Set::point(f64::NAN)); x.len()];
    }
    let n = x.len() as f64;
    let own = (n + 16.0) * U64;
    let terms: Vec<Term> = scaled.iter().map(|scaled| Term::of(scaled - greatest)).collect();
    let total = |part: fn(&Term) -> f64| terms.iter().map(part).sum::<f64>();
    let summing = gamma(n - 1.0, U32) + own;
    let sum = total(|term| term.value);
    let least = total(|term| term.low) * (1.0 - summing);
    let most = total(|term| term.high) * (1.0 + summing);
    let last = gamma(3.0, U32) + own;
    let result = |term: &Term| {
        // What is exactly 0 stays so.
        let (low, high) = match term.high {
            0.0 => (0.0, 0.0),
            upper => (term.low / most * (1.0 - last) - UNDERFLOW, upper / least * (1.0 + last) + UNDERFLOW),
        };
        let set = Set { low: low.max(0.0), high, ..Set::point(0.0) };
        Legal { plus_zero: true, ..legal(term.value / sum, set) }
    };
    terms.iter().map(result).collect()
}

/// An exponential, and what it may have become.
pub(super) struct Term {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Term {
    /// e to the power `a`, at most 0.
    pub(super) fn of(a: f64) -> Self {
        if a == f64::NEG_INFINITY {
            return Self { value: 0.0, low: 0.0, high: 0.0 };
        }
        let off = gamma(3.0, U32) + 8.0 * U64;
        let (relative, absolute) = POWER;
        let low = (a * (1.0 + off)).exp() * (1.0 - relative) - absolute;
        let high = (a * (1.0 - off)).exp() * (1.0 + relative) + absolute;
        Self { value: a.exp(), low: low.max(0.0), high }
    }
}

/// The right results of a row of the gradient of the softmax of `scale · x`, from its result `y` and the gradient `dy` of that.
pub fn softmax_gradient_row(y: &[f32], dy: &[f32], scale: f32) -> Vec<Legal> {
    let products = || y.iter().zip(dy).map(|(&y, &dy)| f64::from(y) * f64::from(dy));
    let sum = Sum {
        terms: y.len() as u32,
        value: products().sum(),
        magnitude: products().filter(|product| product.is_finite()).map(f64::abs).sum(),
        tiny: 0.0,
    };
    let negative = sum.legal(Precision::Fp32).set.times(-1.0);
    let result = |(&y, &dy): (&f32, &f32)| {
        let factor = f64::from(scale) * f64::from(y);
        let value = factor * (f64::from(dy) - sum.value);
        if factor.abs() > f64::from(f32::MAX) {
            // The factor itself overflows: so may all that it multiplies.
            let anything = Set { negative: true, positive: true, nan: true, ..Set::point(value) };
            return legal(value, anything);
        }
        let difference = widened(Set::point(f64::from(dy)).plus(negative), U32, 0.0);
        let size = difference.upward().max(difference.downward());
        let is_subnormal = factor != 0.0 && factor.abs() < f64::from(f32::MIN_POSITIVE);
        let absolute = UNDERFLOW + if is_subnormal { UNDERFLOW * size * (1.0 + 4.0 * U32) } else { 0.0 };
        legal(value, widened(difference.times(factor), gamma(2.0, U32), absolute))
    };
    y.iter().zip(dy).map(result).collect()
}

/// The results of a rounding, by so much relatively and absolutely, of the numbers in a set.
pub(super) fn widened(set: Set, relative: f64, absolute: f64) -> Set {
    if !set.has_finite() {
        return set;
    }
    let relative = relative + 8.0 * U64;
    let low = set.low - relative * set.low.abs() - absolute;
    let high = set.high + relative * set.high.abs() + absolute;
    let largest = f64::from(f32::MAX);
    Set {
        low,
        high,
        negative: set.negative || low < -largest,
        positive: set.positive || high > largest,
        ..set
    }
}

fn legal(value: f64, set: Set) -> Legal {
    Legal { value, set, plus_zero: false }
}
