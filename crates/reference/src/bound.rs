//! How far an `f32` sum of products may be from the truth.
//!
//! Let s = Σ aᵢbᵢ have n terms, let m = Σ |aᵢbᵢ|, and let u = 2⁻²⁴ be the unit roundoff of `f32`. Summed in any
//! order, on any tree, with or without fused multiply-add, each product passes through at most n roundings: one
//! of its own and n - 1 additions, or n fused steps. Each rounding multiplies by 1 + δ with |δ| ≤ u, and a product
//! of n such factors is 1 + θ with |θ| ≤ γₙ = nu / (1 - nu). Hence
//!
//! |ŝ - s| ≤ γₙ m
//!
//! (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., §3.1, lemma 3.1 and eq. 3.5). To it come
//! - underflow: where a product or a fused step is subnormal, its rounding errs by up to half the smallest
//!   subnormal, η = 2⁻¹⁵⁰, instead of relatively (additions of subnormals are exact); each of the n such errors
//!   then passes through the same roundings: n η (1 + γₙ) in all. Flushing subnormals to zero is not allowed for;
//! - the reference: products of two `f32` are exact in `f64`, their `f64` sum errs by γ̃ m with v = 2⁻⁵³ for u, and
//!   so does m itself. Some roundings more of the bound's own arithmetic count as terms.
//!
//! Overflow: every partial sum is at most P + bound, P being the sum of the positive products, and at least
//! -(N + bound). So the result may be +∞ only if P + bound is above the largest `f32`, -∞ only if N + bound is,
//! and NaN only if both are.

/// The unit roundoff of `f32`, 2⁻²⁴.
const U32: f64 = 1.0 / (1u64 << 24) as f64;

/// The unit roundoff of `f64`, 2⁻⁵³.
const U64: f64 = 1.0 / (1u64 << 53) as f64;

/// Half the smallest subnormal of `f32`, 2⁻¹⁵⁰.
const UNDERFLOW: f64 = f32::MIN_POSITIVE as f64 * U32;

/// The most terms of a sum that can be checked: nu ≤ 1/4.
pub const MAX_TERMS: u32 = 1 << 22;

/// A sum of products as the reference knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sum {
    /// The number of products, at most [`MAX_TERMS`].
    pub terms: u32,
    /// Their sum in `f64`.
    pub value: f64,
    /// The sum of the absolute values of the products that are finite.
    pub magnitude: f64,
}

/// How an `f32` result compares with a [`Sum`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Right: the error over the bound, at most 1.
    Pass(f64),
    /// Wrong: the error over the bound, above 1; infinite where NaN, an infinity or its lack is the fault.
    Fail(f64),
}

impl Sum {
    /// How far a right `f32` result may be from [`value`](Self::value), when both are finite.
    pub fn bound(&self) -> f64 {
        // Where all products are zero none is rounded.
        if self.magnitude == 0.0 {
            return 0.0;
        }
        let n = f64::from(self.terms);
        let relative = gamma(n, U32) + 2.0 * gamma(n + 4.0, U64);
        relative * self.magnitude + n * UNDERFLOW * (1.0 + relative)
    }

    /// Judges an `f32` result.
    ///
    /// An empty sum must be exactly +0. A sum that is NaN must be NaN, and one that is infinite must be that
    /// infinity, unless its finite products could overflow first. Any other must keep the bound, unless a
    /// partial sum could overflow.
    pub fn judge(&self, got: f32) -> Verdict {
        let pass_if = |good| if good { Verdict::Pass(0.0) } else { Verdict::Fail(f64::INFINITY) };
        if self.terms == 0 {
            return pass_if(got.to_bits() == 0);
        }
        if self.value.is_nan() {
            return pass_if(got.is_nan());
        }
        let bound = self.bound();
        let overflows = |sum: f64| sum + bound > f64::from(f32::MAX);
        if self.value.is_infinite() {
            return pass_if(f64::from(got) == self.value || (got.is_nan() && overflows(self.magnitude)));
        }
        let above = overflows(0.5 * (self.magnitude + self.value));
        let below = overflows(0.5 * (self.magnitude - self.value));
        match got {
            _ if got.is_nan() => pass_if(above && below),
            f32::INFINITY => pass_if(above),
            f32::NEG_INFINITY => pass_if(below),
            _ => within(f64::from(got), self.value, bound),
        }
    }
}

/// Whether two finite numbers are within `bound` of each other.
fn within(got: f64, expected: f64, bound: f64) -> Verdict {
    match (got - expected).abs() {
        0.0 => Verdict::Pass(0.0),
        error if error <= bound => Verdict::Pass(error / bound),
        error => Verdict::Fail(error / bound),
    }
}

/// γₙ = nu / (1 - nu).
fn gamma(n: f64, u: f64) -> f64 {
    n * u / (1.0 - n * u)
}
