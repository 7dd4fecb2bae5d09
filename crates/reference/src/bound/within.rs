//! Right results of operations that derive their own bound.

use super::Legal;
use super::legal::Set;

impl Legal {
    /// This value alone: +0 where it is a zero.
    pub(crate) fn exactly(value: f64) -> Self {
        Self { value, set: Set::point(value), plus_zero: value == 0.0 }
    }

    /// What is within `bound` of a finite value; where a sum on the way `overflows`, also infinities and NaN.
    pub(crate) fn within(value: f64, bound: f64, overflows: bool) -> Self {
        let set =
            Set { negative: overflows, positive: overflows, nan: overflows, ..Set::around(value, bound) };
        Self { value, set, plus_zero: false }
    }

    /// An infinity, or NaN.
    pub(crate) fn infinite_or_nan(value: f64) -> Self {
        Self { value, set: Set { nan: true, ..Set::point(value) }, plus_zero: false }
    }

    /// Anything: some sum on the way may or may not overflow, and the rest hangs on that.
    pub(crate) fn anything(value: f64) -> Self {
        Self::within(value, f64::INFINITY, true)
    }
}
