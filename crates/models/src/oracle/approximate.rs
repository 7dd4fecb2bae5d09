//! Values that are known within a bound.
use lacuna::Value;
use lacuna_reference::Precision;
use lacuna_reference::bound::Sum;
use thiserror::Error;

use super::{Number, numbers};
use crate::network::Shape;
use crate::weights::WeightsError;

/// A value of a network, in NCHW: exact elements, and how far those of a device may be from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Approximate {
    /// Its shape.
    pub shape: Shape,
    /// Its elements.
    pub value: Vec<f64>,
    /// For each of them what a right one may be off.
    pub error: Vec<f64>,
}

/// How near a right result is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Check {
    /// Elements.
    pub checked: usize,
    /// The greatest error, as a part of its bound.
    pub worst_over_bound: f64,
    /// The greatest error, as a part of the greatest element.
    pub error_over_greatest: f64,
    /// The greatest bound, as a part of the greatest element: from about 1 on the bound says nothing.
    pub bound_over_greatest: f64,
}

/// Why there is no oracle, or what a device has wrong.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum OracleError {
    /// A value is not as long as its shape says.
    #[error("{what}: expected {expected} elements, got {got}")]
    Length {
        /// Which value.
        what: String,
        /// Elements of the shape.
        expected: usize,
        /// Elements that there are.
        got: usize,
    },
    /// The weights do not fit a layer.
    #[error("layer {layer}: {source}")]
    Weights {
        /// The layer.
        layer: String,
        /// What does not fit.
        source: WeightsError,
    },
    /// An element is not what it may be.
    #[error("{what}, element {at}: expected {expected} within {bound:e}, got {got}")]
    Wrong {
        /// Which value.
        what: String,
        /// Which element.
        at: usize,
        /// What it should be.
        expected: f64,
        /// What it may be off.
        bound: f64,
        /// What it is.
        got: f32,
    },
}

impl Approximate {
    /// What is known exactly.
    pub fn exact<T: Value>(shape: Shape, values: &[T]) -> Self {
        let value: Vec<f64> = numbers(values).into_iter().map(f64::from).collect();
        Self { shape, error: vec![0.0; value.len()], value }
    }

    /// The same, rounded to the type of values where that has 16 bits: what is within a bound is then between its rounded ends.
    pub(super) fn stored<T: Number>(mut self) -> Self {
        for (value, error) in self.value.iter().zip(&mut self.error) {
            *error = stored::<T>(*value, *error);
        }
        self
    }

    /// Checks what a device has; `what` is its name in errors. What is infinite where it should not be is wrong, however large the bound.
    ///
    /// # Errors
    /// [`OracleError::Length`] and [`OracleError::Wrong`].
    pub fn check<T: Value>(&self, what: &str, got: &[T]) -> Result<Check, OracleError> {
        if got.len() != self.value.len() {
            let (expected, got) = (self.value.len(), got.len());
            return Err(OracleError::Length { what: what.to_owned(), expected, got });
        }
        let (mut worst, mut greatest, mut most_off, mut bound) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
        for (at, (got, (&expected, &error))) in
            numbers(got).into_iter().zip(self.value.iter().zip(&self.error)).enumerate()
        {
            // Infinities have no difference.
            let off = if f64::from(got) == expected { 0.0 } else { (f64::from(got) - expected).abs() };
            // NaN is not within either.
            let is_within = off == 0.0 || off <= error && got.is_finite();
            if !is_within {
                return Err(OracleError::Wrong { what: what.to_owned(), at, expected, bound: error, got });
            }
            worst = worst.max(if off > 0.0 { off / error } else { 0.0 });
            (greatest, most_off, bound) = (greatest.max(expected.abs()), most_off.max(off), bound.max(error));
        }
        let over_greatest = |number: f64| if number > 0.0 { number / greatest } else { 0.0 };
        let [error_over_greatest, bound_over_greatest] = [most_off, bound].map(over_greatest);
        Ok(Check { checked: got.len(), worst_over_bound: worst, error_over_greatest, bound_over_greatest })
    }
}

/// A sum of so many terms that may have these sizes: what it may be off in `f32`, or on tensor cores. Of more terms than the reference
/// has a bound for, anything.
pub(crate) fn sum_error(terms: usize, magnitude: f64, tiny: f64, precision: Precision) -> f64 {
    match u32::try_from(terms) {
        Ok(terms) if terms <= precision.max_terms() => {
            Sum { terms, value: 0.0, magnitude, tiny }.bound(precision)
        }
        _ => f64::INFINITY,
    }
}

/// What a number that is known within an error may be off after it was rounded to a type of values. `f32` results have that in their errors.
pub(super) fn stored<T: Number>(value: f64, error: f64) -> f64 {
    if size_of::<T>() == size_of::<f32>() {
        return error;
    }
    let (least, most) = T::rounded(value - error, value + error);
    (most - value).max(value - least)
}

/// An element within limits, and what it may be off there.
pub(super) fn clamped(value: f64, error: f64, lo: f64, hi: f64) -> (f64, f64) {
    let within = value.clamp(lo, hi);
    let (least, most) = ((value - error).clamp(lo, hi), (value + error).clamp(lo, hi));
    (within, (most - within).max(within - least))
}
