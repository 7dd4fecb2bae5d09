//! Sparse × dense: C = A B.

mod check;
mod extremum;

pub use check::{Epilogue, ErrorReport};
pub use extremum::{
    Extremum, ExtremumGradient, ExtremumReference, spmm_extremum, spmm_extremum_gradient, spmm_extremum_rows,
};

use crate::bound::{self, MAX_TERMS, is_tiny};
use crate::{Precision, ReferenceError, Value};
use lacuna_matrix::Csr;
use rayon::prelude::*;
use std::marker::PhantomData;

/// C = A B in `f64`, whole or some of its rows, and what is needed to judge a result of type `T`.
#[derive(Debug, Clone, PartialEq)]
pub struct SpmmReference<T = f32> {
    /// Rows of C.
    rows: usize,
    /// Columns of C.
    n: usize,
    /// The arithmetic that a result may have been computed in.
    precision: Precision,
    /// Whether sums are divided by the number of their terms.
    is_mean: bool,
    /// The rows that were computed, in the order of the arrays below.
    computed: Vec<usize>,
    terms: Vec<u32>,
    value: Vec<f64>,
    magnitude: Vec<f64>,
    /// For each element [`Sum::tiny`](crate::bound::Sum::tiny); empty where that is 0 for all.
    tiny: Vec<f64>,
    result: PhantomData<T>,
}

/// All of C = A B, for A of `a.rows() × a.cols()` and B of `a.cols() × n`, row-major.
///
/// Only the nonzeros of A count: a NaN in a row of B that no nonzero meets does not show.
///
/// # Errors
/// If `b` has not `a.cols() × n` elements, a row of A has more than [`MAX_TERMS`] nonzeros, or C does not fit into
/// memory.
pub fn spmm<T: Value>(a: &Csr<T>, b: &[T], n: usize) -> Result<SpmmReference<T>, ReferenceError> {
    spmm_rows(a, b, n, 0..a.rows())
}

/// Like [`spmm`] for some rows of C, to check large results by samples.
///
/// # Errors
/// As [`spmm`], and if a row is not a row of A.
pub fn spmm_rows<T: Value>(
    a: &Csr<T>,
    b: &[T],
    n: usize,
    rows: impl IntoIterator<Item = usize>,
) -> Result<SpmmReference<T>, ReferenceError> {
    if a.cols().checked_mul(n) != Some(b.len()) {
        return Err(ReferenceError::DenseLength { rows: a.cols(), cols: n, got: b.len() });
    }
    let computed: Vec<usize> = rows.into_iter().collect();
    let mut terms = Vec::with_capacity(computed.len());
    for &row in &computed {
        if row >= a.rows() {
            return Err(ReferenceError::RowOutOfRange { row, rows: a.rows() });
        }
        let length = a.row(row).0.len();
        if length > MAX_TERMS as usize {
            return Err(ReferenceError::TooManyTerms { row, terms: length, max: MAX_TERMS });
        }
        terms.push(length as u32);
    }
    let factors = Factors { a, weights: &T::to_f32s(a.values()), b: &T::to_f32s(b), n };
    let (mut value, mut magnitude) = (zeros(computed.len(), n)?, zeros(computed.len(), n)?);
    let mut tiny = if factors.some_are_tiny() { zeros(computed.len(), n)? } else { Vec::new() };
    if n > 0 {
        let outputs = value.par_chunks_mut(n).zip(magnitude.par_chunks_mut(n));
        outputs.zip(&computed).for_each(|((value, magnitude), &row)| factors.sum_row(row, value, magnitude));
        tiny.par_chunks_mut(n).zip(&computed).for_each(|(tiny, &row)| factors.sum_tiny(row, tiny));
    }
    let precision = Precision::default();
    let (rows, is_mean) = (a.rows(), false);
    Ok(SpmmReference {
        rows,
        n,
        precision,
        is_mean,
        computed,
        terms,
        value,
        magnitude,
        tiny,
        result: PhantomData,
    })
}

/// `rows × cols` zeros. With no columns in A, B is empty for any `cols`, so that a product too large to hold can get here.
fn zeros(rows: usize, cols: usize) -> Result<Vec<f64>, ReferenceError> {
    let too_large = || ReferenceError::ResultTooLarge { rows, cols };
    let len = rows.checked_mul(cols).ok_or_else(too_large)?;
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(len).map_err(|_| too_large())?;
    zeros.resize(len, 0.0);
    Ok(zeros)
}

/// The operands in `f32`.
struct Factors<'a, T> {
    a: &'a Csr<T>,
    /// The values of A.
    weights: &'a [f32],
    b: &'a [f32],
    n: usize,
}

impl<T: Value> Factors<'_, T> {
    /// One row of C: its sums and, of the products that are finite, the sums of absolute values.
    fn sum_row(&self, row: usize, value: &mut [f64], magnitude: &mut [f64]) {
        for (weight, b_row) in self.row(row) {
            for ((value, magnitude), &b) in value.iter_mut().zip(magnitude.iter_mut()).zip(b_row) {
                let product = f64::from(weight) * f64::from(b);
                *value += product;
                *magnitude += if product.is_finite() { product.abs() } else { 0.0 };
            }
        }
    }

    /// One row of [`Sum::tiny`](crate::bound::Sum::tiny).
    fn sum_tiny(&self, row: usize, tiny: &mut [f64]) {
        for (weight, b_row) in self.row(row) {
            for (tiny, &b) in tiny.iter_mut().zip(b_row) {
                *tiny += bound::tiny(weight, b);
            }
        }
    }

    /// The nonzeros of a row of A, each with the row of B that it meets.
    fn row(&self, row: usize) -> impl Iterator<Item = (f32, &[f32])> {
        let positions = self.a.pattern().row_range(row);
        let columns = &self.a.col_indices()[positions.clone()];
        let rows_of_b = columns.iter().map(|&column| &self.b[column as usize * self.n..][..self.n]);
        self.weights[positions].iter().copied().zip(rows_of_b)
    }

    fn some_are_tiny(&self) -> bool {
        self.weights.par_iter().any(|&weight| is_tiny(weight)) || self.b.par_iter().any(|&b| is_tiny(b))
    }
}

impl<T> SpmmReference<T> {
    /// Has results judged as of this arithmetic. Without a call it is [`Precision::Fp32`].
    ///
    /// # Errors
    /// If a row has more than [`Precision::max_terms`] nonzeros.
    pub fn precision(mut self, precision: Precision) -> Result<Self, ReferenceError> {
        let max = precision.max_terms();
        if let Some(index) = self.terms.iter().position(|&terms| terms > max) {
            let (row, terms) = (self.computed[index], self.terms[index] as usize);
            return Err(ReferenceError::TooManyTerms { row, terms, max });
        }
        self.precision = precision;
        Ok(self)
    }

    /// Has results judged as means: each sum over the number of its products, before the epilogue.
    #[must_use]
    pub fn mean(self) -> Self {
        Self { is_mean: true, ..self }
    }

    /// The rows of C that were computed, in the order of the other arrays.
    pub fn rows(&self) -> &[usize] {
        &self.computed
    }

    /// The elements of A B, row-major: `rows().len() × n`.
    pub fn value(&self) -> &[f64] {
        &self.value
    }

    /// For each element of A B the sum of the absolute values of its finite products: (|A| |B|)ᵢⱼ.
    pub fn magnitude(&self) -> &[f64] {
        &self.magnitude
    }

    /// For each row of A B the products in each of its sums: the nonzeros of that row of A.
    pub fn terms(&self) -> &[u32] {
        &self.terms
    }
}
