//! The N greatest of each row of a dense matrix, and what they are in the row's softmax.

use crate::bound::{Legal, MAX_TERMS, SoftmaxRow, Verdict, unchanged};
use crate::{ErrorReport, Mismatch, ReferenceError, Value};
use rayon::prelude::*;
use std::cmp::Ordering;

/// What becomes of the values that are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopNForm {
    /// The softmax over the whole row.
    Probability,
    /// The logarithm of that.
    LogProbability,
    /// They stay as they are.
    Logit,
}

/// The N greatest of each row, exactly, and what is needed to judge a result.
#[derive(Debug, Clone)]
pub struct TopNReference {
    columns: usize,
    n: usize,
    indices: Vec<u32>,
    legal: Vec<Legal>,
    log_sums: Vec<Legal>,
}

/// The `n` greatest of each row of `columns` elements, in falling order. Of equal ones the first comes first; NaN is the greatest.
/// `temperature`, finite and above 0, divides them before the softmax.
///
/// # Errors
/// If there are not whole rows, `n` is not from 1 to `columns`, or rows have more than [`MAX_TERMS`] elements.
pub fn topn<T: Value>(
    logits: &[T],
    columns: usize,
    n: usize,
    temperature: f32,
    form: TopNForm,
) -> Result<TopNReference, ReferenceError> {
    if n == 0 || n > columns {
        return Err(ReferenceError::Values { what: "N", expected: columns, got: n });
    }
    if !logits.len().is_multiple_of(columns) {
        let rows = logits.len() / columns;
        return Err(ReferenceError::FactorLength { what: "logits", rows, cols: columns, got: logits.len() });
    }
    if columns > MAX_TERMS as usize {
        return Err(ReferenceError::TooManyTerms { row: 0, terms: columns, max: MAX_TERMS });
    }
    let rows: Vec<_> = logits
        .par_chunks(columns)
        .map(|row| {
            let row = T::to_f32s(row);
            let indices = greatest(&row, n);
            let softmax = SoftmaxRow::new(&row, temperature);
            let legal = |&index: &u32| {
                let x = row[index as usize];
                match form {
                    TopNForm::Probability => softmax.probability(x),
                    TopNForm::LogProbability => softmax.log_probability(x),
                    TopNForm::Logit => unchanged(x),
                }
            };
            let legal: Vec<Legal> = indices.iter().map(legal).collect();
            (indices, legal, softmax.log_sum_exp())
        })
        .collect();
    let mut reference =
        TopNReference { columns, n, indices: Vec::new(), legal: Vec::new(), log_sums: Vec::new() };
    for (indices, legal, log_sum) in rows {
        reference.indices.extend(indices);
        reference.legal.extend(legal);
        reference.log_sums.push(log_sum);
    }
    Ok(reference)
}

/// The indices of the `n` greatest.
fn greatest(row: &[f32], n: usize) -> Vec<u32> {
    let order = |&a: &u32, &b: &u32| {
        let (x, y) = (row[a as usize], row[b as usize]);
        let falling = match (x.is_nan(), y.is_nan()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => y.partial_cmp(&x).expect("neither is NaN"),
        };
        falling.then(a.cmp(&b))
    };
    let mut indices: Vec<u32> = (0..row.len() as u32).collect();
    if n < indices.len() {
        indices.select_nth_unstable_by(n, order);
        indices.truncate(n);
    }
    indices.sort_unstable_by(order);
    indices
}

impl TopNReference {
    /// The indices, n a row.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The values in `f64`, n a row.
    pub fn value(&self) -> Vec<f64> {
        self.legal.iter().map(|legal| legal.value).collect()
    }

    /// Checks a result: its indices, which must be exact, and its values.
    ///
    /// # Errors
    /// If there are not as many of either, an index is another, or a value is wrong.
    pub fn check(&self, values: &[f32], indices: &[u32]) -> Result<ErrorReport, Mismatch> {
        let expected = self.indices.len();
        for got in [values.len(), indices.len()] {
            if got != expected {
                return Err(Mismatch::Length { rows: self.log_sums.len(), cols: self.n, got });
            }
        }
        if let Some(at) = (0..expected).find(|&at| self.indices[at] != indices[at]) {
            let failures = (0..expected).filter(|&at| self.indices[at] != indices[at]).count();
            return Err(Mismatch::Order {
                failures,
                checked: expected,
                row: at / self.n,
                place: at % self.n,
                expected: self.indices[at],
                got: indices[at],
            });
        }
        self.judge(&self.legal, values, self.n)
    }

    /// Checks the logarithms of the rows' sums of exponentials.
    ///
    /// # Errors
    /// If there is not one a row, or one is wrong.
    pub fn check_log_sum_exp(&self, got: &[f32]) -> Result<ErrorReport, Mismatch> {
        let rows = self.log_sums.len();
        if got.len() != rows {
            return Err(Mismatch::Length { rows, cols: 1, got: got.len() });
        }
        self.judge(&self.log_sums, got, 1)
    }

    fn judge(&self, legal: &[Legal], got: &[f32], width: usize) -> Result<ErrorReport, Mismatch> {
        let mut report = ErrorReport { checked: got.len(), worst_over_bound: 0.0, worst_at: None };
        let (mut failures, mut worst) = (0, (0, 0.0));
        for (at, (legal, &got)) in legal.iter().zip(got).enumerate() {
            match legal.judge(got) {
                Verdict::Pass(ratio) if ratio > report.worst_over_bound => {
                    report.worst_over_bound = ratio;
                    report.worst_at = Some((at / width, at % width));
                }
                Verdict::Pass(_) => {}
                Verdict::Fail(ratio) => {
                    failures += 1;
                    if ratio > worst.1 {
                        worst = (at, ratio);
                    }
                }
            }
        }
        if failures == 0 {
            return Ok(report);
        }
        let (at, ratio) = worst;
        Err(Mismatch::Elements {
            failures,
            checked: got.len(),
            row: at / width,
            column: at % width,
            terms: self.columns as u32,
            dtype: f32::NAME,
            got: got[at],
            expected: legal[at].value,
            bound: legal[at].bound(),
            ratio,
        })
    }
}
