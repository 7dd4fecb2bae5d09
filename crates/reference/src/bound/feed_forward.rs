//! What a layer of a network makes of what may have come before it.
//!
//! Of each value between two layers an interval is known, in which every right `f32` result lies, and whether the value may
//! be NaN. An end may be infinite; then that infinity is among the results. A network's inputs are points.
//!
//! A layer computes clamp(Σ wᵢyᵢ + b, lo, hi). While each yᵢ is in its interval, the exact sum of the products is between L, the sum
//! of their least values, and H, the sum of their greatest; and Σ |wᵢyᵢ| is at most m = Σ |wᵢ| max |yᵢ|. A zero is added exactly.
//! So of n products that may be other than zero, and t terms, which are these and a bias other than zero, each term passes
//! through at most t roundings, in any order, with fused multiply-add or not. As for other [sums](super) the result errs by at most
//!
//! δ = γₜ (m + |b|) + n η (1 + γₜ), and 0 where n = 0,
//!
//! and the error of the reference's own sums of L, H and m. The sum is in [L + b - δ, H + b + δ]. It is an `f32`, so each end moves
//! inwards to the next one. The clamp is exact and keeps order. It makes a point of an interval beyond `lo` or `hi`: that is
//! what keeps errors from growing from layer to layer.
//!
//! On tensor cores, with weights of bfloat16, a value is the sum of three numbers of bfloat16 with its sign, and each of them makes a
//! product. So of n products there are 3n steps, of 2⁻²² each ([`Precision`](super::Precision) says why), and what is below the smallest
//! normal number may be taken for zero: products, sums, and parts of values. The bias is added in `f32` after that:
//!
//! ε = γ₃ₙ(2⁻²²) m + 2⁻¹²⁶ (6n + 3 Σ |wᵢ|) (1 + γ₃ₙ(2⁻²²)), and δ = ε + 2⁻²⁴ (m + |b| + ε) + η.
//!
//! These sums are not the only right ones there: in `f32` they err by less.
//!
//! Overflow: the positive products sum up to at most (m + H)/2, and the sizes of the negative ones to at most (m - L)/2. With
//! the bias and δ, these tell as for other sums which infinities the sum may become, and whether it may become NaN. What is
//! between a finite end and an infinity counts as right too.

use super::precision::{SMALLEST, STEP};
use super::{Legal, Set, U32, U64, UNDERFLOW, gamma};

const LARGEST: f64 = f32::MAX as f64;

/// A value between two layers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Known {
    /// What it is without rounding errors, or the nearest of what it may be.
    pub(crate) value: f64,
    /// The least that it may be; more than `high` if it is NaN and nothing else.
    pub(crate) low: f32,
    /// The greatest that it may be.
    pub(crate) high: f32,
    /// The greatest size that it may have; NaN if it may be NaN.
    pub(crate) size: f32,
}

impl Known {
    /// This value alone.
    pub(crate) fn exactly(value: f32) -> Self {
        let (low, high) =
            if value.is_nan() { (f32::INFINITY, f32::NEG_INFINITY) } else { (value + 0.0, value + 0.0) };
        Self { value: value.into(), low, high, size: value.abs() }
    }

    /// Whether it is another value than zero for certain.
    pub(crate) fn is_nonzero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// Whether it is zero for certain.
    pub(crate) fn is_zero(&self) -> bool {
        self.size == 0.0
    }

    /// The right results. A zero may have either sign.
    pub(crate) fn legal(&self) -> Legal {
        Legal { value: self.value, set: self.set(), plus_zero: false }
    }

    fn set(&self) -> Set {
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        let some = low <= high;
        Set {
            low: low.max(-LARGEST),
            high: high.min(LARGEST),
            negative: some && low == f64::NEG_INFINITY,
            positive: some && high == f64::INFINITY,
            nan: self.size.is_nan(),
        }
    }
}

/// The products that an output sums.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Products {
    /// Their sum as the reference has it.
    value: f64,
    /// What their exact sum may be.
    set: Set,
    /// What the finite positive ones sum up to at most.
    upward: f64,
    /// And the sizes of the finite negative ones.
    downward: f64,
    /// Σ |w| max |y| of the finite ones.
    size: f64,
    /// How many may be other than zero and finite.
    count: f64,
    /// Σ |w| of these.
    weights: f64,
}

impl Products {
    /// Products that are all finite, with the sums L, H and m; `count` of them may be other than zero, and have these
    /// `weights`, added up.
    pub(crate) fn finite(value: f64, low: f64, high: f64, size: f64, [count, weights]: [f64; 2]) -> Self {
        let (upward, downward) = (0.5 * (size + high), 0.5 * (size - low));
        Self { value, set: Set { low, high, ..Set::point(0.0) }, upward, downward, size, count, weights }
    }

    /// The products of these weights and values.
    pub(crate) fn of(factors: impl Iterator<Item = (f32, Known)>) -> Self {
        let mut sum = Self::finite(0.0, 0.0, 0.0, 0.0, [0.0; 2]);
        for (weight, known) in factors {
            let weight = f64::from(weight);
            let product = known.set().times(weight);
            let (upward, downward) = (product.upward(), product.downward());
            sum.value += weight * known.value;
            sum.set = sum.set.plus(product);
            sum.upward += upward;
            sum.downward += downward;
            sum.size += upward.max(downward);
            if upward.max(downward) != 0.0 {
                sum.count += 1.0;
                sum.weights += weight.abs();
            }
        }
        sum
    }

    /// How far a sum may be from the exact one, that of `own` sizes with the bias.
    fn error(&self, own: f64, has_bias: bool, tensor_cores: bool) -> f64 {
        if self.count == 0.0 {
            return 0.0;
        }
        let reference = 2.0 * gamma(self.count + 9.0, U64);
        if tensor_cores {
            let steps = 3.0 * self.count;
            let summing = gamma(steps, STEP);
            let flushed = SMALLEST * (2.0 * steps + 3.0 * self.weights) * (1.0 + summing);
            let sum = summing * self.size + flushed;
            return sum + U32 * (own + sum) + UNDERFLOW + reference * own;
        }
        let terms = self.count + f64::from(u8::from(has_bias));
        let relative = gamma(terms, U32) + reference;
        relative * own + self.count * UNDERFLOW * (1.0 + relative)
    }

    /// The output: the sum with `bias`, cut to `lo..=hi`, where the sum may be that of tensor cores or not.
    pub(crate) fn output(&self, bias: f32, [lo, hi]: [f32; 2], tensor_cores: bool) -> Known {
        let exact = f64::from(bias);
        let (up, down) = if bias.is_finite() { (exact.max(0.0), (-exact).max(0.0)) } else { (0.0, 0.0) };
        let error = self.error(self.size + up + down, up + down > 0.0, tensor_cores);

        let sum = self.set.plus(Set::point(exact));
        let (above, below) = (self.upward + up + error > LARGEST, self.downward + down + error > LARGEST);
        let positive = sum.positive || above && sum.has_finite();
        let negative = sum.negative || below && sum.has_finite();
        let nan = sum.nan || above && (below || sum.negative) || below && sum.positive;

        let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
        if sum.has_finite() {
            (low, high) = (at_least(sum.low - error), at_most(sum.high + error));
        }
        if positive {
            high = f32::INFINITY;
        }
        if negative {
            low = f32::NEG_INFINITY;
        }
        let mut value = (self.value + exact).clamp(lo.into(), hi.into());
        if low <= high {
            // Of the two zeros there is +0, so that equal values are the same.
            (low, high) = (low.clamp(lo, hi) + 0.0, high.clamp(lo, hi) + 0.0);
            value = value.clamp(low.into(), high.into()) + 0.0;
        }
        Known { value, low, high, size: if nan { f32::NAN } else { low.abs().max(high.abs()) } }
    }
}

/// The least `f32` that is at least `x`.
fn at_least(x: f64) -> f32 {
    let nearest = x as f32;
    if f64::from(nearest) < x { nearest.next_up() } else { nearest }
}

/// The greatest `f32` that is at most `x`.
fn at_most(x: f64) -> f32 {
    let nearest = x as f32;
    if f64::from(nearest) > x { nearest.next_down() } else { nearest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lacuna_matrix::generate::random_values;

    const ANY: [f32; 2] = [f32::NEG_INFINITY, f32::INFINITY];

    fn output(factors: &[(f32, f32)], bias: f32, [lo, hi]: [f32; 2]) -> Known {
        let factors = factors.iter().map(|&(weight, value)| (weight, Known::exactly(value)));
        Products::of(factors).output(bias, [lo, hi], false)
    }

    #[test]
    fn sums_of_finite_products_are_those_of_the_rules() {
        let random = random_values(60, 7);
        let factors: Vec<(f32, Known)> = random
            .chunks(3)
            .map(|x| {
                let (low, high) = (x[1].min(x[2]), x[1].max(x[2]));
                (x[0], Known { value: x[1].into(), low, high, size: low.abs().max(high.abs()) })
            })
            .collect();
        let sum = |product: fn(f64, &Known) -> f64| -> f64 {
            factors.iter().map(|(weight, known)| product(f64::from(*weight), known)).sum()
        };
        let value = sum(|w, y| w * y.value);
        let low = sum(|w, y| (w * f64::from(y.low)).min(w * f64::from(y.high)));
        let high = sum(|w, y| (w * f64::from(y.low)).max(w * f64::from(y.high)));
        let size = sum(|w, y| w.abs() * f64::from(y.size));
        let weights = factors.iter().map(|(weight, _)| f64::from(weight.abs())).sum();
        let finite = Products::finite(value, low, high, size, [20.0, weights]);
        let plain = finite.output(0.1, ANY, false);
        let all = Products::of(factors.iter().copied());
        assert_eq!(plain, all.output(0.1, ANY, false));
        // On tensor cores: 60 steps of four times the error, and no more.
        let tensor = finite.output(0.1, ANY, true);
        assert_eq!(tensor, all.output(0.1, ANY, true));
        let width = |known: Known| f64::from(known.high) - f64::from(known.low) - (high - low);
        let ratio = width(tensor) / width(plain);
        assert!(ratio > 10.0 && ratio < 12.5, "{ratio}");
        let (low, high) = (low + f64::from(0.1f32), high + f64::from(0.1f32));
        assert!(f64::from(plain.low) < low && high < f64::from(plain.high), "{plain:?}");
        let room = gamma(21.0, U32) * (size + 0.1) * 1.01;
        assert!(f64::from(plain.low) > low - room && high + room > f64::from(plain.high), "{plain:?}");
    }

    #[test]
    fn only_what_is_not_zero_is_rounded() {
        let exact = output(&[(3.0, 0.0), (0.0, 7.0)], 0.1, ANY);
        assert_eq!(exact, Known::exactly(0.1));
        // One product without a bias: one rounding.
        let one = output(&[(1.0, 1.0), (5.0, 0.0)], 0.0, ANY);
        assert_eq!((one.low, one.high), (1f32.next_down(), 1.0));
    }

    #[test]
    fn ends_are_the_next_inside() {
        let x = 1.0 + 1e-12;
        assert_eq!((at_least(x), at_most(x)), (1f32.next_up(), 1.0));
        assert_eq!((at_least(-x), at_most(-x)), (-1.0, -(1f32.next_up())));
        assert_eq!((at_least(1e39), at_most(1e39)), (f32::INFINITY, f32::MAX));
        assert_eq!((at_least(0.5), at_most(0.5)), (0.5, 0.5));
    }

    #[test]
    fn what_overflows_stays_on_its_side() {
        let up = output(&[(f32::MAX, 2.0), (1.0, 1.0)], 0.0, ANY);
        assert_eq!((up.low, up.high, up.size), (f32::INFINITY, f32::INFINITY, f32::INFINITY));
        let edge = output(&[(1.0, f32::MAX)], f32::MAX * 1e-7, ANY);
        assert!(edge.low.is_finite() && edge.high == f32::INFINITY && !edge.size.is_nan(), "{edge:?}");
        let both = output(&[(f32::MAX, 2.0), (-f32::MAX, 2.0)], 0.0, ANY);
        assert!(both.low == f32::NEG_INFINITY && both.high == f32::INFINITY && both.size.is_nan());
        // An infinity that comes late may find the other one.
        let late = output(&[(f32::MAX, 2.0)], f32::NEG_INFINITY, ANY);
        assert!(late.high == f32::NEG_INFINITY && late.size.is_nan());
    }
}
