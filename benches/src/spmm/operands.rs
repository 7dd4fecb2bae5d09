//! The operands of one product, and what it should come to.
use anyhow::Result;
use lacuna::matrix::Csr;
use lacuna::{Buffer, Device};
use lacuna_cases::{Number, Problem};
use lacuna_reference::{ErrorReport, Mismatch, Precision, SpmmReference, spmm_rows};

/// A problem on a device, but for A.
pub(crate) struct Operands<T: Number> {
    pub(super) a: Csr<T>,
    pub(super) b: Buffer<T>,
    pub(super) c: Buffer<T>,
    reference: SpmmReference<T>,
}

impl<T: Number> Operands<T> {
    pub(super) fn new(device: &Device, problem: &Problem) -> Result<Self> {
        Self::with_b(device, problem, &problem.dense_as::<T>("B", problem.cols(), 0xb)?)
    }

    /// Those of a B that there is.
    pub(crate) fn with_b(device: &Device, problem: &Problem, b: &[T]) -> Result<Self> {
        let a = problem.sparse()?.map_values(T::from_f32);
        let reference = spmm_rows(&a, b, problem.width, problem.checked_rows())?;
        Ok(Self { a, b: device.upload(b)?, c: device.upload(&unwritten_c::<T>(problem)?)?, reference })
    }

    /// Checks C against the reference, as computed by this arithmetic.
    pub(super) fn check(&self, arithmetic: Precision, c: &[T]) -> Result<Result<ErrorReport, Mismatch>> {
        Ok(self.reference.clone().precision(arithmetic)?.check(c))
    }

    /// The largest error of C over the bound of this arithmetic; none where it is out of it.
    pub(super) fn error_over_bound(&self, arithmetic: Precision, c: &[T]) -> Result<Option<f64>> {
        Ok(self.check(arithmetic, c)?.ok().map(|report| report.worst_over_bound))
    }
}

/// What C is before a product.
pub(super) fn unwritten_c<T: Number>(problem: &Problem) -> Result<Vec<T>> {
    problem.unwritten("C", problem.rows().saturating_mul(problem.width))
}
