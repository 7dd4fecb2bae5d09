//! The operands of one sampled product, and what it should come to.
use anyhow::Result;
use lacuna::{Buffer, Device};
use lacuna_cases::{Number, Problem};
use lacuna_reference::{Precision, SddmmReference, sddmm as reference_of};

use crate::checked::Checked;

/// A problem on a device, but for D.
pub(super) struct Operands<T: Number> {
    pub(super) a: Buffer<T>,
    pub(super) b: Buffer<T>,
    pub(super) checked: Checked,
    pub(super) reference: SddmmReference<T>,
}

impl<T: Number> Operands<T> {
    pub(super) fn new(device: &Device, problem: &Problem) -> Result<Self> {
        let k = problem.width;
        let a = problem.dense_as::<T>("A", problem.rows(), 0xc)?;
        let b = problem.dense_as::<T>("B", problem.cols(), 0xb)?;
        let checked = Checked::of(problem)?;
        let reference = reference_of(&checked.pattern, &checked.dense(&a, k), &b, k)?;
        Ok(Self { a: device.upload(&a)?, b: device.upload(&b)?, checked, reference })
    }

    /// The largest error of D's values in the checked rows over the bound of this arithmetic; none where it is out of it.
    pub(super) fn error_over_bound(&self, arithmetic: Precision, values: &[T]) -> Result<Option<f64>> {
        let reference = self.reference.clone().precision(arithmetic)?;
        Ok(reference.check(values).ok().map(|report| report.worst_over_bound))
    }
}
