//! A result against the reference.

use super::SpmmReference;
use crate::bound::{Finish, Legal, Sum, Verdict};
use crate::{Mismatch, ReferenceError, Value};

/// How close a right result is to the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorReport {
    /// Elements that were checked.
    pub checked: usize,
    /// The largest error over its bound, of 0 (all exact) to 1. The last rounding, to the type of the result, is no
    /// error.
    pub worst_over_bound: f64,
    /// Where it stands, as row and column; `None` when all are exact.
    pub worst_at: Option<(usize, usize)>,
}

/// What is done with A B before it is stored: C = clamp(alpha · A B + beta · C + bias, lo, hi).
///
/// Batches are checked one by one, each with its own C; the bias of a row is the same for all of its columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epilogue<'a, T> {
    /// The factor of A B.
    pub alpha: f32,
    /// The factor of what C held before. At 0 it is not read.
    pub beta: f32,
    /// What C held before, whole and row-major, where `beta` is not 0.
    pub c: &'a [T],
    /// One value a row of C, added to all its elements.
    pub bias: Option<&'a [T]>,
    /// The smallest result.
    pub lo: f32,
    /// The largest result.
    pub hi: f32,
}

impl<T> Default for Epilogue<'_, T> {
    /// C = A B.
    fn default() -> Self {
        let Finish { alpha, beta, lo, hi, .. } = Finish::PLAIN;
        Self { alpha, beta, c: &[], bias: None, lo, hi }
    }
}

impl<T: Value> Epilogue<'_, T> {
    pub(super) fn check(&self, rows: usize, n: usize) -> Result<(), ReferenceError> {
        let expect = |what, expected: u128, got: usize| match got as u128 == expected {
            true => Ok(()),
            false => Err(ReferenceError::EpilogueLength { what, expected, got }),
        };
        if self.beta != 0.0 {
            expect("C before, row-major", rows as u128 * n as u128, self.c.len())?;
        }
        if let Some(bias) = self.bias {
            expect("bias, one a row of C", rows as u128, bias.len())?;
        }
        if self.lo <= self.hi { Ok(()) } else { Err(ReferenceError::Clamp { lo: self.lo, hi: self.hi }) }
    }

    /// What is done with the element at `row`, at place `at` of C, and what C held there.
    pub(super) fn of(&self, row: usize, at: usize) -> (Finish, f32) {
        let Self { alpha, beta, lo, hi, .. } = *self;
        let bias = self.bias.map(|bias| bias[row].to_f32());
        let before = if beta == 0.0 { 0.0 } else { self.c[at].to_f32() };
        (Finish { alpha, beta, bias, lo, hi }, before)
    }
}

/// An element of the result, and what it may be.
struct Element {
    row: usize,
    column: usize,
    terms: u32,
    legal: Legal,
}

impl<T: Value> SpmmReference<T> {
    /// Checks a whole C = A B, row-major, at the rows that were computed, by the rules of [`Sum::legal`].
    ///
    /// # Errors
    /// If `got` has the wrong length, or an element is wrong.
    pub fn check(&self, got: &[T]) -> Result<ErrorReport, Mismatch> {
        self.check_with(&Epilogue::default(), got)
    }

    /// Checks a whole C = clamp(alpha · A B + beta · C + bias, lo, hi), row-major, at the rows that were computed, by
    /// the rules of [`Finish::legal`].
    ///
    /// # Errors
    /// If `got` or a part of the epilogue has the wrong length, `lo` is not at most `hi`, or an element is wrong.
    pub fn check_with(&self, epilogue: &Epilogue<'_, T>, got: &[T]) -> Result<ErrorReport, Mismatch> {
        if self.rows.checked_mul(self.n) != Some(got.len()) {
            return Err(Mismatch::Length { rows: self.rows, cols: self.n, got: got.len() });
        }
        epilogue.check(self.rows, self.n)?;
        let checked = self.value.len();
        let mut report = ErrorReport { checked, worst_over_bound: 0.0, worst_at: None };
        let (mut failures, mut worst_failure) = (0, (0, 0.0));
        for at in 0..checked {
            let Element { row, column, legal, .. } = self.element(epilogue, at);
            match legal.judge(got[row * self.n + column]) {
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
        let Element { row, column, terms, legal } = self.element(epilogue, at);
        Err(Mismatch::Elements {
            failures,
            checked,
            row,
            column,
            terms,
            dtype: T::NAME,
            got: got[row * self.n + column].to_f32(),
            expected: legal.value,
            bound: legal.bound(),
            ratio,
        })
    }

    /// What an element of the arrays may be.
    fn element(&self, epilogue: &Epilogue<'_, T>, at: usize) -> Element {
        let (index, column) = (at / self.n, at % self.n);
        let (row, terms) = (self.computed[index], self.terms[index]);
        let tiny = self.tiny.get(at).copied().unwrap_or(0.0);
        let sum = Sum { terms, value: self.value[at], magnitude: self.magnitude[at], tiny };
        let (finish, before) = epilogue.of(row, row * self.n + column);
        let legal = if self.is_mean && terms > 0 {
            finish.legal_of(sum.legal_over(terms, self.precision), before)
        } else {
            finish.legal(&sum, self.precision, before)
        };
        Element { row, column, terms, legal }
    }
}
