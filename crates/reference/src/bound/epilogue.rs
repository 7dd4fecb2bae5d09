//! What a kernel does with a sum before it stores it.

use super::{Legal, Precision, Set, Sum, U32, U64, UNDERFLOW, gamma};

/// The end of a sum: `clamp(alpha · sum + beta · c + bias, lo, hi)`, in `f32`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finish {
    /// The factor of the sum.
    pub alpha: f32,
    /// The factor of what C held before. At 0 it is not read, whatever it is.
    pub beta: f32,
    /// What is added last, if anything.
    pub bias: Option<f32>,
    /// The smallest result; -∞ for none.
    pub lo: f32,
    /// The largest result, at least `lo`; +∞ for none.
    pub hi: f32,
}

impl Finish {
    /// Leaves the sum as it is.
    pub const PLAIN: Self =
        Self { alpha: 1.0, beta: 0.0, bias: None, lo: f32::NEG_INFINITY, hi: f32::INFINITY };

    /// The right results for `sum` where C held `c`.
    ///
    /// Three terms, α s, β c and the bias, are added in any order, with fused operations or not. Some are not there: β c
    /// where β = 0, the bias where none is given. Of t terms each passes through at most t - 1 additions, and through one
    /// more rounding if its product is rounded, which a factor of ±1 does not need. So a term x that passes through r
    /// roundings errs by at most γᵣ |x| (lemma 3.1, as for the sums), and each rounding of a product that is
    /// subnormal by 2⁻¹⁵⁰, which grows no more than the terms. The sum s enters with all the results that are right
    /// for it: |x| is the largest of them, times |α|. The reference's own arithmetic, in `f64`, adds γ₄ with 2⁻⁵³.
    ///
    /// A sum of the terms may overflow to +∞ only if the positive ones, with that error, exceed the largest `f32`, to -∞
    /// only if the negative ones do, and become NaN by that only if both do.
    ///
    /// The clamp is exact and keeps order: it takes the ends of the interval to the ends of the results. It takes
    /// infinities to `hi` and `lo`, and leaves NaN.
    ///
    /// A row without nonzeros has the sum +0, and its result is `clamp(alpha · 0 + beta · c + bias, lo, hi)`; where only
    /// the sum is there, unscaled, and the clamp has no end at -0, the zero is +0.
    ///
    /// # Panics
    /// If `lo > hi`, or either is NaN.
    pub fn legal(&self, sum: &Sum, precision: Precision, c: f32) -> Legal {
        self.legal_of(sum.legal(precision), c)
    }

    /// As [`legal`](Self::legal), for what stands in the sum's place.
    ///
    /// # Panics
    /// If `lo > hi`, or either is NaN.
    pub(crate) fn legal_of(&self, mut legal: Legal, c: f32) -> Legal {
        let plain = self.alpha == 1.0 && self.beta == 0.0 && self.bias.is_none();
        if !plain {
            legal = self.combine(&legal, c);
        }
        let (lo, hi) = (f64::from(self.lo), f64::from(self.hi));
        let negative_zero = |end: f32| end == 0.0 && end.is_sign_negative();
        Legal {
            value: legal.value.clamp(lo, hi),
            set: legal.set.clamp(lo, hi),
            plus_zero: legal.plus_zero && !negative_zero(self.lo) && !negative_zero(self.hi),
        }
    }

    /// The terms and their sum.
    fn combine(&self, sum: &Legal, c: f32) -> Legal {
        let alpha = f64::from(self.alpha);
        let mut terms = [Some((sum.set.times(alpha), self.alpha.abs() != 1.0)), None, None];
        let mut value = alpha * sum.value;
        if self.beta != 0.0 {
            // Exact: two `f32` have a product in `f64`.
            let product = f64::from(self.beta) * f64::from(c);
            value += product;
            terms[1] = Some((Set::point(product), self.beta.abs() != 1.0));
        }
        if let Some(bias) = self.bias {
            value += f64::from(bias);
            terms[2] = Some((Set::point(f64::from(bias)), false));
        }

        let additions = terms.iter().flatten().count() as f64 - 1.0;
        let (mut total, mut error) = (Set::point(0.0), 0.0);
        let (mut upward, mut downward) = (0.0, 0.0);
        for &(term, is_product) in terms.iter().flatten() {
            let roundings = additions + f64::from(u8::from(is_product));
            let size = term.upward().max(term.downward());
            let underflow = if is_product && size > 0.0 { UNDERFLOW } else { 0.0 };
            error += (gamma(roundings, U32) + gamma(4.0, U64)) * size + underflow * (1.0 + gamma(3.0, U32));
            upward += term.upward();
            downward += term.downward();
            total = total.plus(term);
        }

        let largest = f64::from(f32::MAX);
        let (above, below) = (upward + error > largest, downward + error > largest);
        let set = Set {
            low: total.low - error,
            high: total.high + error,
            negative: total.negative || below && total.has_finite(),
            positive: total.positive || above && total.has_finite(),
            nan: total.nan || above && (below || total.negative) || below && total.positive,
        };
        Legal { value, set, plus_zero: false }
    }
}
