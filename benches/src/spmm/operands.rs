//! The operands of one product, and what it should come to.
use anyhow::Result;
use lacuna::matrix::Csr;
use lacuna::{Buffer, Device};
use lacuna_cases::{Number, Problem};
use lacuna_reference::{
    Epilogue, ErrorReport, Extremum, ExtremumReference, Mismatch, Precision, SpmmReference,
    spmm_extremum_rows, spmm_rows,
};

use crate::types::Reduce;

/// A problem on a device, but for A.
pub(crate) struct Operands<T: Number> {
    pub(super) a: Csr<T>,
    pub(super) b: Buffer<T>,
    pub(super) c: Buffer<T>,
    reference: SpmmReference<T>,
    /// What C should be, if that is not the product.
    reduced: Option<Reduced<T>>,
}

/// Another reduction of a row's products than their sum.
enum Reduced<T> {
    Mean,
    Extremum(ExtremumReference<T>),
}

impl<T: Number> Operands<T> {
    pub(super) fn new(device: &Device, problem: &Problem) -> Result<Self> {
        Self::with_b(device, problem, &problem.dense_as::<T>("B", problem.cols(), 0xb)?)
    }

    /// Those of a product with another reduction.
    pub(super) fn reduced(device: &Device, problem: &Problem, reduce: Reduce) -> Result<Self> {
        let b = problem.dense_as::<T>("B", problem.cols(), 0xb)?;
        let operands = Self::with_b(device, problem, &b)?;
        let extremum = |extremum| -> Result<_> {
            let rows = problem.checked_rows();
            let reference = spmm_extremum_rows(&operands.a, &b, problem.width, extremum, rows)?;
            Ok(Some(Reduced::Extremum(reference)))
        };
        let reduced = match reduce {
            Reduce::Sum => None,
            Reduce::Mean => Some(Reduced::Mean),
            Reduce::Max => extremum(Extremum::Greatest)?,
            Reduce::Min => extremum(Extremum::Least)?,
        };
        Ok(Self { reduced, ..operands })
    }

    /// Those of a B that there is.
    pub(crate) fn with_b(device: &Device, problem: &Problem, b: &[T]) -> Result<Self> {
        let a = problem.sparse()?.map_values(T::from_f32);
        let reference = spmm_rows(&a, b, problem.width, problem.checked_rows())?;
        let c = device.upload(&unwritten_c::<T>(problem)?)?;
        Ok(Self { a, b: device.upload(b)?, c, reference, reduced: None })
    }

    /// Checks C against the reference of the reduction, as computed by this arithmetic.
    pub(super) fn check_reduced(
        &self,
        arithmetic: Precision,
        c: &[T],
    ) -> Result<Result<ErrorReport, Mismatch>> {
        Ok(match &self.reduced {
            None => return self.check(arithmetic, c),
            Some(Reduced::Mean) => self.reference.clone().precision(arithmetic)?.mean().check(c),
            Some(Reduced::Extremum(reference)) => reference.check_with(&Epilogue::default(), c),
        })
    }

    /// Checks C against the product, as computed by this arithmetic.
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
