//! Masks of attention that are given as rules.
use lacuna::attention;
use lacuna::matrix::{Csr, Pattern as HostPattern};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::raise;
use crate::products::numbers;

/// A mask as rules.
#[pyclass(frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct Mask {
    pub(crate) inner: attention::Mask,
}

impl Mask {
    fn of(made: lacuna::Result<attention::Mask>) -> PyResult<Self> {
        made.map(|inner| Self { inner }).map_err(|error| raise(&error))
    }
}

#[pymethods]
impl Mask {
    #[staticmethod]
    fn full(queries: usize, keys: usize) -> PyResult<Self> {
        Self::of(attention::Mask::full(queries, keys))
    }
    #[staticmethod]
    fn causal(tokens: usize) -> PyResult<Self> {
        Self::of(attention::Mask::causal(tokens))
    }
    #[staticmethod]
    fn causal_lower_right(queries: usize, keys: usize) -> PyResult<Self> {
        Self::of(attention::Mask::causal_lower_right(queries, keys))
    }
    #[staticmethod]
    fn sliding_window(tokens: usize, window: usize) -> PyResult<Self> {
        Self::of(attention::Mask::sliding_window(tokens, window))
    }
    #[staticmethod]
    fn diagonals(queries: usize, keys: usize, first: i64, last: i64) -> PyResult<Self> {
        Self::of(attention::Mask::diagonals(queries, keys, first..=last))
    }
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value, reason = "Python's lists come as vectors")]
    fn documents(queries: Vec<usize>, keys: Vec<usize>) -> PyResult<Self> {
        Self::of(attention::Mask::cross_documents(&queries, &keys))
    }
    /// Blocks of a size, those that a pattern on the host has.
    #[staticmethod]
    fn blocks(
        size: [usize; 2],
        block: [usize; 2],
        shape: [usize; 2],
        row_offsets: &[u8],
        columns: &[u8],
    ) -> PyResult<Self> {
        let seen = host_pattern(shape, row_offsets, columns)?;
        Self::of(attention::Mask::blocks(size[0], size[1], block, seen))
    }
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value, reason = "Python's lists come as vectors")]
    fn global_tokens(size: [usize; 2], queries: Vec<usize>, keys: Vec<usize>) -> PyResult<Self> {
        Self::of(attention::Mask::global(size[0], size[1], &queries, &keys))
    }
    /// Any pattern on the host.
    #[staticmethod]
    fn of_pattern(shape: [usize; 2], row_offsets: &[u8], columns: &[u8]) -> PyResult<Self> {
        Ok(Self { inner: attention::Mask::from_pattern(host_pattern(shape, row_offsets, columns)?) })
    }
    fn both(&self, other: &Self) -> PyResult<Self> {
        Self::of(self.inner.and(&other.inner))
    }
    fn either(&self, other: &Self) -> PyResult<Self> {
        Self::of(self.inner.or(&other.inner))
    }
    /// Queries and keys.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.inner.queries(), self.inner.keys())
    }
    /// Row offsets and columns of the pattern, in 32 bits each.
    fn to_csr<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let pattern = py.detach(|| self.inner.to_pattern()).map_err(|error| raise(&error))?;
        let bytes = |numbers: &[u32]| PyBytes::new(py, bytemuck::cast_slice(numbers));
        Ok((bytes(pattern.row_offsets()), bytes(pattern.col_indices())))
    }
}

/// The pattern of host arrays of 64 bits.
fn host_pattern([rows, cols]: [usize; 2], row_offsets: &[u8], columns: &[u8]) -> PyResult<HostPattern> {
    let [row_offsets, columns] = [row_offsets, columns].map(numbers::<i64>);
    let values = vec![0.0_f32; columns.len()];
    let host = Csr::from_signed(rows, cols, &row_offsets, &columns, values).map_err(Into::into);
    host.map(|host| HostPattern::clone(host.pattern())).map_err(|error: lacuna::Error| raise(&error))
}
