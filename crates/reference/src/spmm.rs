//! Sparse × dense: C = A B.

use crate::bound::{MAX_TERMS, Sum, Verdict};
use crate::{Mismatch, ReferenceError};
use lacuna_matrix::Csr;
use rayon::prelude::*;

/// C = A B in `f64`, whole or some of its rows, and what is needed to judge an `f32` result.
#[derive(Debug, Clone, PartialEq)]
pub struct SpmmReference {
    /// Rows of C.
    rows: usize,
    /// Columns of C.
    n: usize,
    /// The rows that were computed, in the order of the arrays below.
    computed: Vec<usize>,
    terms: Vec<u32>,
    value: Vec<f64>,
    magnitude: Vec<f64>,
}

/// How close a right result is to the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorReport {
    /// Elements that were checked.
    pub checked: usize,
    /// The largest error over its bound, of 0 (all exact) to 1.
    pub worst_over_bound: f64,
    /// Where it stands, as row and column; `None` when all are exact.
    pub worst_at: Option<(usize, usize)>,
}

/// All of C = A B, for A of `a.rows() × a.cols()` and B of `a.cols() × n`, row-major.
///
/// Only the nonzeros of A count: a NaN in a row of B that no nonzero meets does not show.
///
/// # Errors
/// If `b` has not `a.cols() × n` elements, a row of A has more than [`MAX_TERMS`] nonzeros, or C does not fit into
/// memory.
pub fn spmm(a: &Csr<f32>, b: &[f32], n: usize) -> Result<SpmmReference, ReferenceError> {
    spmm_rows(a, b, n, 0..a.rows())
}

/// Like [`spmm`] for some rows of C, to check large results by samples.
///
/// # Errors
/// As [`spmm`], and if a row is not a row of A.
pub fn spmm_rows(
    a: &Csr<f32>,
    b: &[f32],
    n: usize,
    rows: impl IntoIterator<Item = usize>,
) -> Result<SpmmReference, ReferenceError> {
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
    let (mut value, mut magnitude) = (zeros(computed.len(), n)?, zeros(computed.len(), n)?);
    if n > 0 {
        let outputs = value.par_chunks_mut(n).zip(magnitude.par_chunks_mut(n));
        outputs.zip(&computed).for_each(|((value, magnitude), &row)| sum_row(a, b, row, value, magnitude));
    }
    Ok(SpmmReference { rows: a.rows(), n, computed, terms, value, magnitude })
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

/// One row of C: its sums and, of the products that are finite, the sums of absolute values.
fn sum_row(a: &Csr<f32>, b: &[f32], row: usize, value: &mut [f64], magnitude: &mut [f64]) {
    let n = value.len();
    let (columns, weights) = a.row(row);
    for (&column, &weight) in columns.iter().zip(weights) {
        let b_row = &b[column as usize * n..][..n];
        for ((value, magnitude), &b) in value.iter_mut().zip(magnitude.iter_mut()).zip(b_row) {
            let product = f64::from(weight) * f64::from(b);
            *value += product;
            *magnitude += if product.is_finite() { product.abs() } else { 0.0 };
        }
    }
}

impl SpmmReference {
    /// The rows of C that were computed, in the order of the other arrays.
    pub fn rows(&self) -> &[usize] {
        &self.computed
    }

    /// The elements of C, row-major: `rows().len() × n`.
    pub fn value(&self) -> &[f64] {
        &self.value
    }

    /// For each element of C the sum of the absolute values of its finite products: (|A| |B|)ᵢⱼ.
    pub fn magnitude(&self) -> &[f64] {
        &self.magnitude
    }

    /// For each row of C the products in each of its sums: the nonzeros of that row of A.
    pub fn terms(&self) -> &[u32] {
        &self.terms
    }

    /// Checks a whole C, row-major, at the rows that were computed, by the rules of [`Sum::judge`].
    ///
    /// # Errors
    /// If `got` has the wrong length, or an element is wrong.
    pub fn check(&self, got: &[f32]) -> Result<ErrorReport, Mismatch> {
        if self.rows.checked_mul(self.n) != Some(got.len()) {
            return Err(Mismatch::Length { rows: self.rows, cols: self.n, got: got.len() });
        }
        let checked = self.value.len();
        let mut report = ErrorReport { checked, worst_over_bound: 0.0, worst_at: None };
        let (mut failures, mut worst_failure) = (0, (0, 0.0));
        for at in 0..checked {
            let (row, column, sum) = self.element(at);
            match sum.judge(got[row * self.n + column]) {
                Verdict::Pass(ratio) if ratio > report.worst_over_bound => {
                    report.worst_over_bound = ratio;
                    report.worst_at = Some((row, column));
                }
                Verdict::Pass(_) => {}
                Verdict::Fail(ratio) => {
                    failures += 1;
                    if ratio > worst_failure.1 {
                        worst_failure = (at, ratio);
                    }
                }
            }
        }
        if failures == 0 {
            return Ok(report);
        }
        let (at, ratio) = worst_failure;
        let (row, column, sum) = self.element(at);
        Err(Mismatch::Elements {
            failures,
            checked,
            row,
            column,
            terms: sum.terms,
            got: got[row * self.n + column],
            expected: sum.value,
            bound: sum.bound(),
            ratio,
        })
    }

    /// Row, column and sum of an element of the arrays.
    fn element(&self, at: usize) -> (usize, usize, Sum) {
        let (index, column) = (at / self.n, at % self.n);
        let sum = Sum { terms: self.terms[index], value: self.value[at], magnitude: self.magnitude[at] };
        (self.computed[index], column, sum)
    }
}
