//! Dense × dense, sampled: D = (A Bᵀ) ⊙ I\[C\], or scaled by C.

mod check;

pub use check::SampledReport;

use crate::bound::{self, MAX_TERMS, is_tiny};
use crate::{Precision, ReferenceError, Value};
use lacuna_matrix::Pattern;
use rayon::prelude::*;
use std::marker::PhantomData;

/// The products at the nonzeros of a pattern in `f64`, and what is needed to judge a result of type `T`.
#[derive(Debug, Clone, PartialEq)]
pub struct SddmmReference<T = f32> {
    pattern: Pattern,
    /// Products of each sum.
    k: u32,
    /// The arithmetic that a result may have been computed in.
    precision: Precision,
    value: Vec<f64>,
    magnitude: Vec<f64>,
    /// For each sum [`Sum::tiny`](crate::bound::Sum::tiny); empty where that is 0 for all.
    tiny: Vec<f64>,
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
    let factors = Factors { pattern, a: &T::to_f32s(a), b: &T::to_f32s(b), k };
    let (value, magnitude) = factors.each(dot).unzip();
    let tiny = if factors.some_are_tiny() { factors.each(tiny).collect() } else { Vec::new() };
    let (pattern, precision) = (pattern.clone(), Precision::default());
    Ok(SddmmReference { pattern, k: k as u32, precision, value, magnitude, tiny, result: PhantomData })
}

/// The operands in `f32`.
struct Factors<'a> {
    pattern: &'a Pattern,
    a: &'a [f32],
    b: &'a [f32],
    k: usize,
}

impl<'a> Factors<'a> {
    /// What `of` makes of the two rows that meet at each nonzero.
    fn each<R: Send>(&self, of: fn(&'a [f32], &'a [f32]) -> R) -> impl ParallelIterator<Item = R> {
        let Self { pattern, a, b, k } = *self;
        (0..pattern.rows()).into_par_iter().flat_map_iter(move |row| {
            let of_a = &a[row * k..][..k];
            pattern.row_columns(row).iter().map(move |&column| of(of_a, &b[column as usize * k..][..k]))
        })
    }

    fn some_are_tiny(&self) -> bool {
        [self.a, self.b].into_iter().any(|values| values.par_iter().any(|&value| is_tiny(value)))
    }
}

/// The sum of the products and, of those that are finite, the sum of absolute values.
fn dot(a: &[f32], b: &[f32]) -> (f64, f64) {
    a.iter().zip(b).fold((0.0, 0.0), |(value, magnitude), (&a, &b)| {
        let product = f64::from(a) * f64::from(b);
        (value + product, magnitude + if product.is_finite() { product.abs() } else { 0.0 })
    })
}

/// [`Sum::tiny`](crate::bound::Sum::tiny) of a sum.
fn tiny(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| bound::tiny(a, b)).sum()
}

impl<T> SddmmReference<T> {
    /// Has results judged as of this arithmetic. Without a call it is [`Precision::Fp32`].
    ///
    /// # Errors
    /// If K is above [`Precision::max_terms`].
    pub fn precision(mut self, precision: Precision) -> Result<Self, ReferenceError> {
        let max = precision.max_terms();
        if self.k > max {
            return Err(ReferenceError::TooLong { terms: self.k as usize, max });
        }
        self.precision = precision;
        Ok(self)
    }

    /// The sums, one a nonzero.
    pub fn value(&self) -> &[f64] {
        &self.value
    }

    /// For each of them the sum of the absolute values of its finite products.
    pub fn magnitude(&self) -> &[f64] {
        &self.magnitude
    }
}
