//! Sums over a number.
//!
//! A mean of n numbers is computed from their `f32` sum in one of two ways: divided by n, which is one rounding, or times the
//! rounded 1/n, which is two. Each multiplies by 1 + δ with |δ| ≤ u, so that what the sum may be, over n, is widened by γ₂, and
//! by η = 2⁻¹⁵⁰ where the result is subnormal; 1/n is not.

use super::legal::Set;
use super::softmax::widened;
use super::{Legal, Precision, Sum, U32, UNDERFLOW, gamma};

impl Sum {
    /// The right results for this sum over `count`, which is not 0.
    pub fn legal_over(&self, count: u32, precision: Precision) -> Legal {
        let sum = self.legal(precision);
        if self.terms == 0 {
            return sum;
        }
        let count = f64::from(count);
        let set: Set = widened(sum.set.times(1.0 / count), gamma(2.0, U32), UNDERFLOW);
        Legal { value: sum.value / count, set, plus_zero: false }
    }
}
