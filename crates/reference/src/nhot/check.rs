//! A result against the reference.

use super::NHotReference;
use crate::bound::Verdict;
use crate::{ErrorReport, Mismatch, Value};

impl<T: Value> NHotReference<T> {
    /// Checks a result, row by row without gaps.
    ///
    /// # Errors
    /// If `got` has the wrong length, or an element is wrong.
    pub fn check(&self, got: &[T]) -> Result<ErrorReport, Mismatch> {
        let (checked, rows, cols) = (self.legal.len(), self.terms.len(), self.columns);
        if got.len() != checked {
            return Err(Mismatch::Length { rows, cols, got: got.len() });
        }
        let mut report = ErrorReport { checked, worst_over_bound: 0.0, worst_at: None };
        let (mut failures, mut worst_failure) = (0, (0, 0.0));
        for (at, (legal, &got)) in self.legal.iter().zip(got).enumerate() {
            match legal.judge(got) {
                Verdict::Pass(ratio) if ratio > report.worst_over_bound => {
                    report.worst_over_bound = ratio;
                    report.worst_at = Some((at / cols, at % cols));
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
        Err(Mismatch::Elements {
            failures,
            checked,
            row: at / cols,
            column: at % cols,
            terms: self.terms[at / cols],
            dtype: T::NAME,
            got: got[at].to_f32(),
            expected: self.legal[at].value,
            bound: self.legal[at].bound(),
            ratio,
        })
    }
}
