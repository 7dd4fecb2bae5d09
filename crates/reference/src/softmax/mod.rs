//! The softmax over the rows of a sparse matrix, and its gradient.

use crate::bound::{Legal, MAX_TERMS, Verdict, softmax_gradient_row, softmax_row};
use crate::{ErrorReport, Mismatch, ReferenceError, Value};
use lacuna_matrix::{Csr, Pattern};
use rayon::prelude::*;
use std::marker::PhantomData;
use std::sync::Arc;

/// A softmax or its gradient in `f64`, and what is needed to judge a result of type `T`.
#[derive(Debug, Clone)]
pub struct SoftmaxReference<T = f32> {
    pattern: Arc<Pattern>,
    /// What each value may be.
    legal: Vec<Legal>,
    result: PhantomData<T>,
}

/// The softmax of `scale · x` over each row's values; `scale` is finite and not 0. [`softmax_row`] says how a right result is
/// computed.
///
/// # Errors
/// If a row of x has more than [`MAX_TERMS`] nonzeros.
pub fn softmax<T: Value>(x: &Csr<T>, scale: f32) -> Result<SoftmaxReference<T>, ReferenceError> {
    let values = T::to_f32s(x.values());
    of_rows(x.pattern(), |range| softmax_row(&values[range], scale))
}

/// The gradient of the x in the softmax of `scale · x`, from its result `y` and the gradient `dy` of that, which has y's
/// pattern. [`softmax_gradient_row`] says how a right result is computed.
///
/// # Errors
/// If `dy` has not one value a nonzero, or a row has more than [`MAX_TERMS`].
pub fn softmax_gradient<T: Value>(
    y: &Csr<T>,
    dy: &[T],
    scale: f32,
) -> Result<SoftmaxReference<T>, ReferenceError> {
    if dy.len() != y.nnz() {
        return Err(ReferenceError::Values { what: "dy", expected: y.nnz(), got: dy.len() });
    }
    let (values, dy) = (T::to_f32s(y.values()), T::to_f32s(dy));
    of_rows(y.pattern(), |range| softmax_gradient_row(&values[range.clone()], &dy[range], scale))
}

fn of_rows<T>(
    pattern: &Arc<Pattern>,
    row: impl Fn(std::ops::Range<usize>) -> Vec<Legal> + Sync,
) -> Result<SoftmaxReference<T>, ReferenceError> {
    for index in 0..pattern.rows() {
        let terms = pattern.row_range(index).len();
        if terms > MAX_TERMS as usize {
            return Err(ReferenceError::TooManyTerms { row: index, terms, max: MAX_TERMS });
        }
    }
    let legal = (0..pattern.rows()).into_par_iter().flat_map_iter(|index| row(pattern.row_range(index)));
    Ok(SoftmaxReference { pattern: Arc::clone(pattern), legal: legal.collect(), result: PhantomData })
}

impl<T: Value> SoftmaxReference<T> {
    /// The values in `f64`, row by row.
    pub fn value(&self) -> Vec<f64> {
        self.legal.iter().map(|legal| legal.value).collect()
    }

    /// What each value may be, row by row.
    pub fn legal(&self) -> &[Legal] {
        &self.legal
    }

    /// Checks a result's values, row by row.
    ///
    /// # Errors
    /// If `got` has the wrong length, or a value is wrong.
    pub fn check(&self, got: &[T]) -> Result<ErrorReport, Mismatch> {
        let checked = self.legal.len();
        if got.len() != checked {
            return Err(Mismatch::Values { what: "result", expected: checked, got: got.len() });
        }
        let mut report = ErrorReport { checked, worst_over_bound: 0.0, worst_at: None };
        let (mut failures, mut worst_failure) = (0, (0, 0.0));
        for (at, (legal, &got)) in self.legal.iter().zip(got).enumerate() {
            match legal.judge(got) {
                Verdict::Pass(ratio) if ratio > report.worst_over_bound => {
                    report.worst_over_bound = ratio;
                    report.worst_at = Some(self.place(at));
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
        let (row, column) = self.place(at);
        Err(Mismatch::Elements {
            failures,
            checked,
            row,
            column,
            terms: self.pattern.row_range(row).len() as u32,
            dtype: T::NAME,
            got: got[at].to_f32(),
            expected: self.legal[at].value,
            bound: self.legal[at].bound(),
            ratio,
        })
    }

    /// Row and column of a nonzero.
    fn place(&self, at: usize) -> (usize, usize) {
        // The row is the last that starts at or before it, and is not empty.
        let row = self.pattern.row_offsets().partition_point(|&start| start as usize <= at) - 1;
        (row, self.pattern.col_indices()[at] as usize)
    }
}
