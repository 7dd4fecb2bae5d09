//! The results that are right.

use crate::Value;

/// The right results of one element: an interval of reals, and which of the infinities and NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Legal {
    /// The reference, in `f64`.
    pub value: f64,
    /// The right `f32` results before they are rounded to the type of the matrix.
    pub(super) set: Set,
    /// Whether a zero must be +0.
    pub(super) plus_zero: bool,
}

/// How a result compares with what is right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Right: the error over the bound, at most 1.
    Pass(f64),
    /// Wrong: the error over the bound, above 1; infinite where NaN, an infinity or its lack is the fault.
    Fail(f64),
}

impl Legal {
    /// How far a right `f32` result may be from [`value`](Self::value), to the side where it may be farther; 0 where no
    /// finite result is right.
    pub fn bound(&self) -> f64 {
        if self.set.has_finite() { (self.set.high - self.value).max(self.value - self.set.low) } else { 0.0 }
    }

    /// Judges a result.
    ///
    /// It is right if one of the right `f32` results rounds to it. The error is the least by which an `f32` result that
    /// rounds to it is off; so a result that is the reference, correctly rounded, has none.
    pub fn judge<T: Value>(&self, got: T) -> Verdict {
        let got = f64::from(got.to_f32());
        let (low, high) = T::rounded(self.set.low, self.set.high);
        let inside = low <= got && got <= high;
        let sign_is_right = !self.plus_zero || got != 0.0 || got.is_sign_positive();
        let right = match got {
            _ if got.is_nan() => self.set.nan,
            f64::INFINITY => self.set.positive || inside,
            f64::NEG_INFINITY => self.set.negative || inside,
            _ => inside && sign_is_right,
        };
        let ratio = self.ratio(T::origin(got));
        match right {
            true => Verdict::Pass(if inside { ratio.min(1.0) } else { 0.0 }),
            // A result halfway to a wrong one needs no error, and is wrong.
            false if got.is_finite() && sign_is_right => Verdict::Fail(ratio.max(1f64.next_up())),
            false => Verdict::Fail(f64::INFINITY),
        }
    }

    /// How far the reference is from the nearest of `origin`, over how far it may be.
    fn ratio(&self, (low, high): (f64, f64)) -> f64 {
        let (off, room) = if low > self.value {
            (low - self.value, self.set.high - self.value)
        } else {
            (self.value - high, self.value - self.set.low)
        };
        match off {
            _ if !self.set.has_finite() => f64::INFINITY,
            ..=0.0 => 0.0,
            off => off / room.max(0.0),
        }
    }
}

/// A set of `f32` results: the reals from `low` to `high`, none if `low > high`, and some of what is not finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Set {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Whether -∞ is in it.
    pub(super) negative: bool,
    /// Whether +∞ is in it.
    pub(super) positive: bool,
    /// Whether NaN is in it.
    pub(super) nan: bool,
}

impl Set {
    const EMPTY: Self =
        Self { low: f64::INFINITY, high: f64::NEG_INFINITY, negative: false, positive: false, nan: false };

    /// One result.
    pub(super) fn point(x: f64) -> Self {
        match x {
            _ if x.is_nan() => Self { nan: true, ..Self::EMPTY },
            f64::INFINITY => Self { positive: true, ..Self::EMPTY },
            f64::NEG_INFINITY => Self { negative: true, ..Self::EMPTY },
            _ => Self { low: x, high: x, ..Self::EMPTY },
        }
    }

    /// The finite results within `bound` of `x`.
    pub(super) fn around(x: f64, bound: f64) -> Self {
        Self { low: x - bound, high: x + bound, ..Self::EMPTY }
    }

    pub(super) fn has_finite(&self) -> bool {
        self.low <= self.high
    }

    /// The largest of its finite results, at least 0.
    pub(super) fn upward(&self) -> f64 {
        self.high.max(0.0)
    }

    /// The size of the smallest of its finite results if that is negative, otherwise 0.
    pub(super) fn downward(&self) -> f64 {
        (-self.low).max(0.0)
    }

    /// What is in either.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            negative: self.negative || other.negative,
            positive: self.positive || other.positive,
            nan: self.nan || other.nan,
        }
    }

    /// The exact products with `factor`.
    pub(super) fn times(self, factor: f64) -> Self {
        let mut products = Self { nan: self.nan, ..Self::EMPTY };
        if self.has_finite() {
            let (low, high) = (Self::point(factor * self.low), Self::point(factor * self.high));
            products = products.or(low).or(high);
            // An infinity times what lies between.
            if self.low <= 0.0 && self.high >= 0.0 {
                products = products.or(Self::point(factor * 0.0));
            }
        }
        if self.positive {
            products = products.or(Self::point(factor * f64::INFINITY));
        }
        if self.negative {
            products = products.or(Self::point(factor * f64::NEG_INFINITY));
        }
        products
    }

    /// The exact sums.
    pub(super) fn plus(self, other: Self) -> Self {
        let finite = self.has_finite() && other.has_finite();
        let (x, y) = (self, other);
        Self {
            low: if finite { x.low + y.low } else { f64::INFINITY },
            high: if finite { x.high + y.high } else { f64::NEG_INFINITY },
            negative: x.negative && (y.negative || y.has_finite()) || y.negative && x.has_finite(),
            positive: x.positive && (y.positive || y.has_finite()) || y.positive && x.has_finite(),
            nan: x.nan || y.nan || x.positive && y.negative || x.negative && y.positive,
        }
    }

    /// What they become when cut to `lo..=hi`. NaN stays.
    pub(super) fn clamp(self, lo: f64, hi: f64) -> Self {
        let mut cut = Self { nan: self.nan, ..Self::EMPTY };
        if self.has_finite() {
            cut = cut.or(Self::point(self.low.clamp(lo, hi))).or(Self::point(self.high.clamp(lo, hi)));
        }
        if self.positive {
            cut = cut.or(Self::point(hi));
        }
        if self.negative {
            cut = cut.or(Self::point(lo));
        }
        cut
    }
}
