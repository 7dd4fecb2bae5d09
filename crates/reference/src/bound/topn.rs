//! How far the results of top-N may be from the truth.
//!
//! Which elements they are, and in which order, is exact. With temperature t, aᵢ = (xᵢ - m) / t and S = Σ exp aⱼ as for the
//! softmax (`softmax.rs`), with 1 / t for its s:
//! - a probability is a result of that softmax. S may be put together from the sums of chunks, each of them relative to its own
//!   greatest value and then scaled by 2 to the power of a difference: one exponential more, of 4u, and one product, of u;
//!   the exponents' errors are still relative to aᵢ, since both differences have one sign;
//! - its logarithm is computed in powers of two, zᵢ - log₂ S, and multiplied by ln 2. The logarithm errs by 2⁻²² of 1 or of its
//!   size, whichever is larger; the difference, ln 2 and the product add a rounding each. A difference xᵢ - m that overflows may
//!   make it -∞;
//! - the logarithm of Σ exp(xⱼ / t) is m log₂e / t + log₂ S, by one fused step, times ln 2.

use super::legal::Set;
use super::softmax::{Term, widened};
use super::{Legal, U32, U64, UNDERFLOW, gamma};

/// How far a logarithm to base 2 may be off: absolutely up to 2, beyond relatively.
const LOG: f64 = 1.0 / (1u64 << 22) as f64;

/// A row's softmax, and what its sum may have become.
#[derive(Debug, Clone, Copy)]
pub struct SoftmaxRow {
    temperature: f64,
    greatest: f64,
    sum: f64,
    least: f64,
    most: f64,
    /// What a result's own last steps may add beyond their roundings.
    own: f64,
}

impl SoftmaxRow {
    /// The softmax of x / `temperature`, which is finite and above 0.
    pub fn new(x: &[f32], temperature: f32) -> Self {
        let temperature = f64::from(temperature);
        let greatest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max).into();
        let n = x.len() as f64;
        let own = (n + 16.0) * U64;
        let mut row = Self { temperature, greatest, sum: f64::NAN, least: f64::NAN, most: f64::NAN, own };
        if greatest == f64::INFINITY || x.iter().any(|x| x.is_nan()) {
            return row;
        }
        let (mut sum, mut least, mut most) = (0.0, 0.0, 0.0);
        for &x in x {
            let term = Term::of(row.exponent(x));
            sum += term.value;
            least += term.low;
            most += term.high;
        }
        let summing = gamma(n + 8.0, U32) + own;
        (row.sum, row.least, row.most) = (sum, least * (1.0 - summing), most * (1.0 + summing));
        row
    }

    /// (x - m) / t, or -∞ where there is nothing greater.
    fn exponent(&self, x: f32) -> f64 {
        if x == f32::NEG_INFINITY {
            f64::NEG_INFINITY
        } else {
            (f64::from(x) - self.greatest) / self.temperature
        }
    }

    /// Whether all of its probabilities are NaN.
    fn is_nan(&self) -> bool {
        self.sum.is_nan() || self.sum == 0.0
    }

    /// The right probabilities of an element of the row.
    pub fn probability(&self, x: f32) -> Legal {
        if self.is_nan() {
            return legal(f64::NAN, Set::point(f64::NAN));
        }
        let term = Term::of(self.exponent(x));
        let last = gamma(3.0, U32) + self.own;
        let (low, high) = match term.high {
            0.0 => (0.0, 0.0),
            upper => (
                term.low / self.most * (1.0 - last) - UNDERFLOW,
                upper / self.least * (1.0 + last) + UNDERFLOW,
            ),
        };
        let set = Set { low: low.max(0.0), high, ..Set::point(0.0) };
        Legal { plus_zero: true, ..legal(term.value / self.sum, set) }
    }

    /// The right logarithms of that.
    pub fn log_probability(&self, x: f32) -> Legal {
        let exponent = self.exponent(x);
        if self.is_nan() {
            return legal(f64::NAN, Set::point(f64::NAN));
        }
        if exponent == f64::NEG_INFINITY {
            return legal(exponent, Set::point(exponent));
        }
        let off = exponent.abs() * (gamma(3.0, U32) + 8.0 * U64);
        let (least, most) = self.log_sums();
        let set = Set { low: exponent - off - most, high: exponent + off - least, ..Set::point(0.0) };
        let mut set = widened(set, gamma(3.0, U32), 4.0 * UNDERFLOW);
        // The greatest f32 is the least difference that may be infinite.
        set.negative |= -exponent * self.temperature >= f64::from(f32::MAX);
        legal(exponent - self.sum.ln(), set)
    }

    /// The right logarithms of the sum of exponentials.
    pub fn log_sum_exp(&self) -> Legal {
        if self.sum.is_nan() {
            return legal(f64::NAN, Set::point(f64::NAN));
        }
        if self.sum == 0.0 {
            return legal(f64::NEG_INFINITY, Set::point(f64::NEG_INFINITY));
        }
        let first = self.greatest / self.temperature;
        let off = first.abs() * (gamma(1.0, U32) + 8.0 * U64);
        let (least, most) = self.log_sums();
        let set = Set { low: first - off + least, high: first + off + most, ..Set::point(0.0) };
        legal(first + self.sum.ln(), widened(set, gamma(3.0, U32), 4.0 * UNDERFLOW))
    }

    /// The natural logarithm of the sum, at least and at most.
    fn log_sums(&self) -> (f64, f64) {
        let off = |log: f64| LOG * log.abs().max(std::f64::consts::LN_2);
        let (least, most) = (self.least.ln(), self.most.ln());
        (least - off(least), most + off(most))
    }
}

/// The right results where an element stays as it is. A zero may have either sign.
pub fn unchanged(x: f32) -> Legal {
    legal(x.into(), Set::point(x.into()))
}

fn legal(value: f64, set: Set) -> Legal {
    Legal { value, set, plus_zero: false }
}
