//! A result against the reference.

use super::SddmmReference;
use crate::bound::{Finish, Legal, Precision, Sum, Verdict};
use crate::{Mismatch, Value};

/// How close a right result is to the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledReport {
    /// Nonzeros that were checked.
    pub checked: usize,
    /// The largest error over its bound, of 0 (all exact) to 1. The last rounding, to the type of the result, is no
    /// error.
    pub worst_over_bound: f64,
    /// The nonzero where it stands; `None` when all are exact.
    pub worst_at: Option<usize>,
}

impl<T: Value> SddmmReference<T> {
    /// Checks D = (A Bᵀ) ⊙ I\[C\]: a value for each nonzero, in the order of the pattern, by the rules of [`Sum::legal`].
    ///
    /// # Errors
    /// If there are not as many values as nonzeros, or one is wrong.
    pub fn check(&self, got: &[T]) -> Result<SampledReport, Mismatch> {
        self.check_with(None, got)
    }

    /// Checks D = (A Bᵀ) ⊙ C, where C has the values `scale`, by the rules of [`Finish::legal`].
    ///
    /// # Errors
    /// As [`check`](Self::check), and if the scale has not a value for each nonzero.
    pub fn check_scaled(&self, scale: &[T], got: &[T]) -> Result<SampledReport, Mismatch> {
        self.expect_length("values of C", scale.len())?;
        self.check_with(Some(scale), got)
    }

    fn expect_length(&self, what: &'static str, got: usize) -> Result<(), Mismatch> {
        let expected = self.value.len();
        if got == expected { Ok(()) } else { Err(Mismatch::Values { what, expected, got }) }
    }

    fn check_with(&self, scale: Option<&[T]>, got: &[T]) -> Result<SampledReport, Mismatch> {
        self.expect_length("result", got.len())?;
        let checked = got.len();
        let mut report = SampledReport { checked, worst_over_bound: 0.0, worst_at: None };
        let (mut failures, mut worst) = (0, (0, 0.0));
        for (at, &value) in got.iter().enumerate() {
            match self.legal(scale, at).judge(value) {
                Verdict::Pass(ratio) if ratio > report.worst_over_bound => {
                    report.worst_over_bound = ratio;
                    report.worst_at = Some(at);
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
        let legal = self.legal(scale, at);
        Err(Mismatch::Elements {
            failures,
            checked,
            row: self.pattern.row_offsets().partition_point(|&start| start as usize <= at) - 1,
            column: self.pattern.col_indices()[at] as usize,
            terms: self.k,
            dtype: T::NAME,
            got: got[at].to_f32(),
            expected: legal.value,
            bound: legal.bound(),
            ratio,
        })
    }

    /// What the value of a nonzero may be.
    fn legal(&self, scale: Option<&[T]>, at: usize) -> Legal {
        let (value, magnitude) = (self.value[at], self.magnitude[at]);
        let sum = Sum { terms: self.k, value, magnitude, tiny: 0.0 };
        let alpha = scale.map_or(1.0, |scale| scale[at].to_f32());
        Finish { alpha, ..Finish::PLAIN }.legal(&sum, Precision::Fp32, 0.0)
    }
}
