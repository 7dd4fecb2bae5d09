//! Activations that are limits: what several operations make of their sums.
use crate::{Error, Result};

/// What is made of each sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Activation {
    /// The sum itself.
    #[default]
    Identity,
    /// Numbers below 0 become 0. NaN and −0 stay.
    Relu,
    /// Numbers below `lo` become `lo`, those above `hi` become `hi`. NaN stays. The Sparse DNN Challenge has 0 and 32.
    Clamp {
        /// The least result.
        lo: f32,
        /// The greatest.
        hi: f32,
    },
}

impl Activation {
    /// The least and the greatest result.
    pub(crate) fn limits(self) -> [f32; 2] {
        match self {
            Self::Identity => [f32::NEG_INFINITY, f32::INFINITY],
            Self::Relu => [0.0, f32::INFINITY],
            Self::Clamp { lo, hi } => [lo, hi],
        }
    }

    /// What it makes of a number.
    pub(crate) fn of(self, sum: f32) -> f32 {
        let [lo, hi] = self.limits();
        if sum < lo {
            lo
        } else if sum > hi {
            hi
        } else {
            sum
        }
    }

    /// Whether limits are numbers in order.
    pub(crate) fn check(self, operation: &'static str) -> Result<()> {
        let [lo, hi] = self.limits();
        let expected = || "lo, hi with lo <= hi, neither of them NaN";
        Error::expect(lo <= hi, operation, "the clamp", expected, format!("{lo}, {hi}"))
    }
}
