//! Softmax over the rows of a sparse matrix, and its gradient.
use std::sync::Arc;

use lacuna::{Index, SparseSoftmax, Value, softmax};
use pyo3::prelude::*;

use crate::device::{Dtype, stream, with_type};
use crate::error::raise;
use crate::pattern::{Pattern, PatternOf, with_pattern};
use crate::plans::{Key, Operation};
use crate::torch::direct;

/// y = softmax(scale·x) of each row; or, where `gradient` is that of y, the gradient of x from y.
struct Rows {
    stream: usize,
    dtype: Dtype,
    batch: usize,
    scale: f32,
    /// x, or y.
    from: u64,
    gradient: Option<u64>,
    to: u64,
}

impl<'py> FromPyObject<'_, 'py> for Rows {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (stream, dtype, batch, scale, from, gradient, to) = object.extract()?;
        Ok(Self { stream, dtype, batch, scale, from, gradient, to })
    }
}

impl Rows {
    fn key(&self) -> Key {
        let numbers = [self.batch as u64, self.scale.to_bits().into(), 0, 0, 0, 0, 0, 0, 0];
        Key { operation: Operation::Softmax, dtype: self.dtype, stream: 0, numbers }
    }

    /// Plans first, where there is no plan yet.
    ///
    /// # Safety
    /// The addresses are of live tensors with room for `batch` times the stride, which stay until the stream has come to this.
    unsafe fn run<T: Value, I: Index>(&self, pattern: &PatternOf<I>) -> lacuna::Result<()> {
        let plan: Arc<SparseSoftmax<T, I>> = pattern.plans.get_or_make(self.key(), false, || {
            let options = softmax::Options::default().batch(self.batch).scale(self.scale);
            SparseSoftmax::plan_with(&pattern.matrix.with_zeros::<T>(0)?, options)
        })?;
        // SAFETY: as promised by the caller.
        unsafe {
            let stream = stream(pattern.matrix.device(), self.stream)?;
            let values = |address| pattern.matrix.with_foreign_values::<T>(self.batch, address);
            let (from, mut to) = (values(self.from)?, values(self.to)?);
            match self.gradient {
                None => plan.run(&stream, &from, &mut to),
                Some(gradient) => plan.backward(&stream, &from, &values(gradient)?, &mut to),
            }
        }
    }
}

#[pymethods]
impl Pattern {
    /// The softmax of each row, or its gradient.
    fn softmax(&self, py: Python<'_>, rows: Rows) -> PyResult<()> {
        with_pattern!(self, of => of.softmax(py, &rows))
    }

    /// The same for tensors, past PyTorch's dispatcher: see [`direct`].
    #[pyo3(signature = (from, scale, gradient=None))]
    fn softmax_direct<'py>(
        &self,
        py: Python<'py>,
        from: &Bound<'py, PyAny>,
        scale: f32,
        gradient: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        with_pattern!(self, of => of.softmax_direct(py, from, scale, gradient))
    }
}

impl<I: Index> PatternOf<I> {
    fn softmax(&self, py: Python<'_>, rows: &Rows) -> PyResult<()> {
        // SAFETY: the Python files and `Call` pass addresses of tensors with that room, which they hold, on the current stream.
        let work = || with_type!(rows.dtype, T => unsafe { rows.run::<T, I>(self) });
        py.detach(work).map_err(|error| raise(&error))
    }

    fn softmax_direct<'py>(
        &self,
        py: Python<'py>,
        from: &Bound<'py, PyAny>,
        scale: f32,
        gradient: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        direct(py, self.index, &[from, gradient.unwrap_or(from)], |call| {
            let sizes = self.nnz_and_stride();
            let Some((source, matrices)) = call.values(from, sizes)? else { return Ok(None) };
            let gradient = match gradient {
                None => None,
                Some(gradient) => match call.values(gradient, sizes)? {
                    Some((gradient, of_gradient))
                        if of_gradient == matrices && gradient.dtype == source.dtype =>
                    {
                        Some(gradient.address)
                    }
                    _ => return Ok(None),
                },
            };
            let Some((values, to)) = call.empty_values(matrices, sizes, source.dtype)? else {
                return Ok(None);
            };
            let (dtype, batch) = (source.dtype, matrices.unwrap_or(1));
            let rows = Rows { stream: call.stream, dtype, batch, scale, from: source.address, gradient, to };
            self.softmax(py, &rows)?;
            Ok(Some(values))
        })
    }
}
