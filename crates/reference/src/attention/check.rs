//! A result against the reference.

use super::AttentionReference;
use super::backward::Inexact;
use super::error::{Arithmetic, RowError, SUBNORMAL, gamma, lost_parts};
use super::forward::expect_len;
use crate::bound::{Legal, Verdict};
use crate::{ErrorReport, Mismatch, Value};

/// Below this power of two a weight may be taken for zero, whichever factors it was made of.
const SMALLEST_WEIGHT: f64 = 7.888609052210118e-31; // 2⁻¹⁰⁰

/// How the scores of a row decide about it.
enum Row {
    Empty,
    Overflows,
    NotANumber,
    Usual(RowError),
}

impl<T: Value> AttentionReference<'_, T> {
    /// Checks O, queries × `dim`.
    ///
    /// # Errors
    /// If `got` has the wrong length, or an element is wrong.
    pub fn check(&self, got: &[T]) -> Result<ErrorReport, Mismatch> {
        let dim = self.heads.dim;
        expect_len("O", self.mask.rows(), dim, got.len())?;
        let mut tally = Tally::new(got.len());
        for row in 0..self.mask.rows() {
            let kind = self.kind(row);
            for column in 0..dim {
                let legal = self.legal(&kind, row, column);
                let terms = self.mask.row_range(row).len() as u32;
                tally.judge(&legal, got[row * dim + column], [row, column], terms);
            }
        }
        tally.finish(T::NAME)
    }

    /// Checks the logarithms of the sums of exponentials, one a query.
    ///
    /// # Errors
    /// If `got` has the wrong length, or an element is wrong.
    pub fn check_logsumexp(&self, got: &[f32]) -> Result<ErrorReport, Mismatch> {
        expect_len("logarithms", self.mask.rows(), 1, got.len())?;
        let mut tally = Tally::new(got.len());
        for (row, &got) in got.iter().enumerate() {
            let value = self.logsumexp(row);
            let legal = match self.kind(row) {
                Row::Overflows => Legal::anything(value),
                Row::Usual(error) => Legal::within(value, error.logsumexp, false),
                Row::Empty | Row::NotANumber => Legal::exactly(value),
            };
            tally.judge(&legal, got, [row, 0], self.mask.row_range(row).len() as u32);
        }
        tally.finish("f32")
    }

    /// The sum of O ⊙ G along a row, where O was written as it should be.
    pub(super) fn mean_of_o(&self, row: usize, g: &[T]) -> Inexact {
        let kind = self.kind(row);
        let mut mean = Inexact { value: 0.0, error: 0.0 };
        let mut size = 0.0;
        for (column, g) in g.iter().enumerate() {
            let (legal, g) = (self.legal(&kind, row, column), f64::from(g.to_f32()));
            let error = legal.bound() + T::ROUNDOFF * (legal.value.abs() + legal.bound()) + T::LEAST;
            mean.value += legal.value * g;
            mean.error += error * g.abs();
            size += (legal.value.abs() + error) * g.abs();
        }
        let d = g.len() as f64;
        mean.error += gamma(d + 1.0) * size + d * SUBNORMAL;
        mean
    }

    fn kind(&self, row: usize) -> Row {
        let scores = &self.scores[self.mask.row_range(row)];
        if scores.is_empty() {
            return Row::Empty;
        }
        if self.may_overflow(row) {
            return Row::Overflows;
        }
        let undefined = |score: &f64| score.is_nan() || *score == f64::INFINITY;
        if scores.iter().any(undefined) || scores.iter().all(|&score| score == f64::NEG_INFINITY) {
            return Row::NotANumber;
        }
        Row::Usual(self.row_error(row))
    }

    /// The right results of an element.
    fn legal(&self, kind: &Row, row: usize, column: usize) -> Legal {
        let error = match kind {
            Row::Empty => return Legal::exactly(0.0),
            Row::Overflows => return Legal::anything(self.value(row, column)),
            Row::NotANumber => return Legal::exactly(f64::NAN),
            Row::Usual(error) => error,
        };
        let range = self.mask.row_range(row);
        let n = range.len();
        let weights = &self.weights[range.clone()];
        let (mut value, mut size, mut all) = (0.0, 0.0, 0.0);
        let (mut bound, mut uncertain) = (0.0, false);
        let smallest = match self.arithmetic {
            // What is not finite is worked out anew in `f32`, by tiles too.
            Arithmetic::Fused | Arithmetic::Tiles => SMALLEST_WEIGHT,
            Arithmetic::Steps(_) => SMALLEST_WEIGHT.max(4.0 * T::LEAST),
        };
        for (i, &key) in self.mask.row_columns(row).iter().enumerate() {
            let (weight, v) = (weights[i], self.v(key, column));
            value += weight * v;
            if v.is_finite() {
                size += (weight + error.weights[i]) * v.abs();
                bound += error.weights[i] * v.abs();
                if self.loses_parts {
                    bound += lost_parts(weight as f32, v as f32);
                }
                all += v.abs();
            } else {
                uncertain |= weight < smallest;
            }
        }
        let overflows = 1.01 * self.headroom().exp2() * all > f64::from(f32::MAX);
        if value.is_nan() {
            // A weight of 0 that meets an infinity: where `f64` has a weight of 0, so has any other type.
            return Legal::exactly(f64::NAN);
        }
        if value.is_infinite() {
            let may_be_nan = uncertain || overflows;
            return if may_be_nan { Legal::infinite_or_nan(value) } else { Legal::exactly(value) };
        }
        let flushed = 4.0 * (n + n.div_ceil(32) + 4) as f64 * SUBNORMAL;
        Legal::within(value, bound + self.product_error(n) * size + flushed, overflows)
    }
}

/// What a check has seen so far.
pub(super) struct Tally {
    report: ErrorReport,
    failures: usize,
    worst: Option<Failure>,
}

struct Failure {
    legal: Legal,
    got: f32,
    at: [usize; 2],
    terms: u32,
    ratio: f64,
}

impl Tally {
    pub(super) fn new(checked: usize) -> Self {
        let report = ErrorReport { checked, worst_over_bound: 0.0, worst_at: None };
        Self { report, failures: 0, worst: None }
    }

    /// Judges the result of a sum of `terms` products at a row and column.
    pub(super) fn judge<T: Value>(&mut self, legal: &Legal, got: T, at: [usize; 2], terms: u32) {
        match legal.judge(got) {
            Verdict::Pass(ratio) if ratio > self.report.worst_over_bound => {
                self.report.worst_over_bound = ratio;
                self.report.worst_at = Some((at[0], at[1]));
            }
            Verdict::Pass(_) => {}
            Verdict::Fail(ratio) => {
                self.failures += 1;
                if self.worst.as_ref().is_none_or(|worst| ratio > worst.ratio) {
                    self.worst = Some(Failure { legal: *legal, got: got.to_f32(), at, terms, ratio });
                }
            }
        }
    }

    pub(super) fn finish(self, dtype: &'static str) -> Result<ErrorReport, Mismatch> {
        let Some(Failure { legal, got, at, terms, ratio }) = self.worst else { return Ok(self.report) };
        Err(Mismatch::Elements {
            failures: self.failures,
            checked: self.report.checked,
            row: at[0],
            column: at[1],
            terms,
            dtype,
            got,
            expected: legal.value,
            bound: legal.bound(),
            ratio,
        })
    }
}
