//! How far a sum of products may be from the truth.
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
//! Tensor cores sum otherwise; [`Precision`] has their bounds. Whatever bound it is, what follows is the same.
//!
//! Overflow: every partial sum is at most P + bound, P being the sum of the positive products, and at least
//! -(N + bound). So the result may be +∞ only if P + bound is above the largest `f32`, -∞ only if N + bound is,
//! and NaN only if both are.
//!
//! Means are judged by [`Sum::legal_over`]. The softmax and its gradient have theirs in [`softmax_row`] and
//! [`softmax_gradient_row`], top-N in [`SoftmaxRow`].
//!
//! Between the layers of a network a value is an interval of what it may be; the scores of [`crate::spdnn()`] are judged so.
//!
//! What comes after the sum is in [`Finish::legal`]. At last the `f32` result is rounded to the type of the matrix.
//! Rounding keeps order. So the right results are the numbers from the rounded lower end of the `f32` results to their
//! rounded upper end; an infinity is among them exactly if an end rounds to it.

mod epilogue;
mod feed_forward;
mod legal;
mod mean;
mod precision;
mod softmax;
mod topn;
mod within;

pub use epilogue::Finish;
pub(crate) use feed_forward::{Known, Products};
pub use legal::{Legal, Verdict};
pub use precision::Precision;
pub use softmax::{softmax_gradient_row, softmax_row};
pub use topn::{SoftmaxRow, unchanged};

use legal::Set;

/// The unit roundoff of `f32`, 2⁻²⁴.
const U32: f64 = 1.0 / (1u64 << 24) as f64;

/// The unit roundoff of `f64`, 2⁻⁵³.
const U64: f64 = 1.0 / (1u64 << 53) as f64;

/// Half the smallest subnormal of `f32`, 2⁻¹⁵⁰.
const UNDERFLOW: f64 = f32::MIN_POSITIVE as f64 * U32;

/// The most terms of an `f32` sum that can be checked: nu ≤ 1/4.
pub const MAX_TERMS: u32 = Precision::Fp32.max_terms();

/// Nonzero inputs below this size have bits that a tensor core may take for zero.
///
/// The last bit of a larger `f32` is at least 2⁻¹²⁶, so that its parts are normal numbers or zero, also when they are
/// rounded to bfloat16, which has the exponents of `f32`.
const TINY: f32 = f32::MIN_POSITIVE * (1 << 23) as f32;

/// Whether a tensor core may take a part of this factor for zero.
pub(crate) fn is_tiny(x: f32) -> bool {
    x != 0.0 && x.abs() < TINY
}

/// What a product adds to [`Sum::tiny`].
pub(crate) fn tiny(a: f32, b: f32) -> f64 {
    let sizes = f64::from(a.abs()) + f64::from(b.abs());
    let counts = (is_tiny(a) && b != 0.0) || (is_tiny(b) && a != 0.0);
    if counts && sizes.is_finite() { sizes } else { 0.0 }
}

/// A sum of products as the reference knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sum {
    /// The number of products, at most what [`Precision::max_terms`] says.
    pub terms: u32,
    /// Their sum in `f64`.
    pub value: f64,
    /// The sum of the absolute values of the products that are finite.
    pub magnitude: f64,
    /// The sum of |a| + |b| over the finite products that are not zero and have a factor below 2⁻¹⁰³, of which a tensor
    /// core may take a part for zero. `f32` arithmetic has no use for it.
    pub tiny: f64,
}

impl Sum {
    /// How far a right `f32` result may be from [`value`](Self::value), when both are finite.
    pub fn bound(&self, precision: Precision) -> f64 {
        precision.error(self)
    }

    /// The right results.
    ///
    /// An empty sum must be exactly +0. A sum that is NaN must be NaN, and one that is infinite must be that
    /// infinity, unless its finite products could overflow first. Any other must keep the bound, unless a
    /// partial sum could overflow.
    pub fn legal(&self, precision: Precision) -> Legal {
        let value = self.value;
        if self.terms == 0 {
            return Legal { value, set: Set::point(0.0), plus_zero: true };
        }
        if value.is_nan() {
            return Legal { value, set: Set::point(value), plus_zero: false };
        }
        let bound = self.bound(precision);
        let overflows = |sum: f64| sum + bound > f64::from(f32::MAX);
        if value.is_infinite() {
            let set = Set { nan: overflows(self.magnitude), ..Set::point(value) };
            return Legal { value, set, plus_zero: false };
        }
        let positive = overflows(0.5 * (self.magnitude + value));
        let negative = overflows(0.5 * (self.magnitude - value));
        let set = Set { negative, positive, nan: negative && positive, ..Set::around(value, bound) };
        Legal { value, set, plus_zero: false }
    }
}

/// γₙ = nu / (1 - nu).
fn gamma(n: f64, u: f64) -> f64 {
    n * u / (1.0 - n * u)
}
