//! Dense × dense, sampled: D = (A Bᵀ) ⊙ I\[C\], or scaled by C.

mod check;

pub use check::SampledReport;

use crate::bound::MAX_TERMS;
use crate::{ReferenceError, Value};
use lacuna_matrix::Pattern;
use rayon::prelude::*;
use std::marker::PhantomData;

/// The products at the nonzeros of a pattern in `f64`, and what is needed to judge a result of type `T`.
#[derive(Debug, Clone, PartialEq)]
pub struct SddmmReference<T = f32> {
    pattern: Pattern,
    /// Products of each sum.
    k: u32,
    value: Vec<f64>,
    magnitude: Vec<f64>,
    result: PhantomData<T>,
}

/// The sums Σₖ a\[i, k\] · b\[j, k\] at each nonzero (i, j) of `pattern`, for A of `pattern.rows() × k` and B of
/// `pattern.cols() × k`, row-major.
///
/// A row of B that no nonzero names, or of A without a nonzero, does not show.
///
/// # Errors
/// If `a` or `b` has not as many elements, or `k` is above [`MAX_TERMS`].
pub fn sddmm<T: Value>(
    pattern: &Pattern,
    a: &[T],
    b: &[T],
    k: usize,
) -> Result<SddmmReference<T>, ReferenceError> {
    for (what, rows, got) in [("A", pattern.rows(), a.len()), ("B", pattern.cols(), b.len())] {
        if rows.checked_mul(k) != Some(got) {
            return Err(ReferenceError::FactorLength { what, rows, cols: k, got });
        }
    }
    if k > MAX_TERMS as usize {
        return Err(ReferenceError::TooLong { terms: k, max: MAX_TERMS });
    }
    let (a, b) = (&T::to_f32s(a), &T::to_f32s(b));
    let sums = (0..pattern.rows()).into_par_iter().flat_map_iter(|row| {
        let of_a = &a[row * k..][..k];
        pattern.row_columns(row).iter().map(move |&column| dot(of_a, &b[column as usize * k..][..k]))
    });
    let (value, magnitude) = sums.unzip();
    Ok(SddmmReference { pattern: pattern.clone(), k: k as u32, value, magnitude, result: PhantomData })
}

/// The sum of the products and, of those that are finite, the sum of absolute values.
fn dot(a: &[f32], b: &[f32]) -> (f64, f64) {
    a.iter().zip(b).fold((0.0, 0.0), |(value, magnitude), (&a, &b)| {
        let product = f64::from(a) * f64::from(b);
        (value + product, magnitude + if product.is_finite() { product.abs() } else { 0.0 })
    })
}

impl<T> SddmmReference<T> {
    /// The sums, one a nonzero.
    pub fn value(&self) -> &[f64] {
        &self.value
    }

    /// For each of them the sum of the absolute values of its finite products.
    pub fn magnitude(&self) -> &[f64] {
        &self.magnitude
    }
}
