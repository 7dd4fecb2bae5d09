//! Patterns, and values in the order of their transposed ones.
use std::sync::Arc;

use lacuna::{CsrMatrix, Error, Slice, SliceMut, Stream};
use pyo3::prelude::*;

use crate::device::{Device, Dtype, stream, with_type};
use crate::error::{input, raise};
use crate::plans::Plans;
use crate::torch::direct;

/// Where the nonzeros of a matrix are, on a device.
#[pyclass(frozen)]
pub(crate) struct Pattern {
    /// Of a batch of none.
    pub(crate) matrix: CsrMatrix<f32>,
    pub(crate) plans: Plans,
    /// The number of its GPU; none on a simulator.
    pub(crate) index: Option<i32>,
    /// The pattern that this is the transposed of.
    source: Option<Arc<CsrMatrix<f32>>>,
}

#[pymethods]
impl Pattern {
    /// The pattern of index arrays that are on the device, of `bits` bits each.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "they are the parts of a sparse tensor")]
    fn new(
        py: Python<'_>,
        device: &Device,
        stream_handle: usize,
        shape: [usize; 2],
        nnz: usize,
        row_offsets: u64,
        columns: u64,
        bits: u32,
    ) -> PyResult<Self> {
        let (index, device) = (device.index, &device.inner);
        let made = py.detach(|| {
            // SAFETY: the Python files pass the current stream of a device, and the addresses of arrays that they hold and have
            // checked the type and length of; the call waits for what reads them.
            unsafe {
                let stream = stream(device, stream_handle)?;
                match bits {
                    32 => import::<i32>(&stream, shape, nnz, row_offsets, columns),
                    _ => import::<i64>(&stream, shape, nnz, row_offsets, columns),
                }
            }
        });
        let matrix = made.map_err(|error| raise(&error))?;
        Ok(Self { matrix, plans: Plans::default(), index, source: None })
    }

    /// Rows, columns, nonzeros, and elements from the values of one matrix of a batch to those of the next.
    #[getter]
    fn sizes(&self) -> (usize, usize, usize, usize) {
        let Self { matrix, .. } = self;
        (matrix.rows(), matrix.cols(), matrix.nnz(), matrix.values_stride())
    }

    /// The transposed pattern. The first call works it out, and waits.
    fn transposed(&self, py: Python<'_>, stream_handle: usize) -> PyResult<Self> {
        let made = py.detach(|| {
            // SAFETY: the stream is the caller's current one.
            let stream = unsafe { stream(self.matrix.device(), stream_handle)? };
            Ok((self.matrix.transposed(&stream)?, self.matrix.with_zeros(0)?))
        });
        let (matrix, source) = made.map_err(|error: Error| raise(&error))?;
        let index = self.index;
        Ok(Self { matrix, plans: Plans::default(), index, source: Some(Arc::new(source)) })
    }

    /// Writes values of the pattern that this is the transposed of, `batch` times one a nonzero, in this one's order.
    fn gather(
        &self,
        py: Python<'_>,
        stream_handle: usize,
        dtype: Dtype,
        values: u64,
        out: u64,
        batch: usize,
    ) -> PyResult<()> {
        let source = self.source.as_ref().ok_or_else(|| input("the pattern is not a transposed one"))?;
        py.detach(|| {
            // SAFETY: the Python files pass addresses of tensors with room for `batch` times the stride, which stay until the
            // stream has come to this, by the rules of their allocator.
            unsafe {
                let stream = stream(source.device(), stream_handle)?;
                with_type!(dtype, T => {
                    let from = source.with_foreign_values::<T>(batch, values)?;
                    self.matrix.with_foreign_values::<T>(batch, out)?.update_from(&stream, &from)
                })
            }
        })
        .map_err(|error| raise(&error))
    }

    /// As `gather` for tensors, past PyTorch's dispatcher: see [`direct`].
    fn gather_direct<'py>(&self, py: Python<'py>, values: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        direct(py, self.index, &[&values], |call| {
            let Some((from, batch)) = call.values(&values, self.nnz_and_stride())? else { return Ok(None) };
            let Some((out, to)) = call.empty_values(batch, self.nnz_and_stride(), from.dtype)? else {
                return Ok(None);
            };
            self.gather(py, call.stream, from.dtype, from.address, to, batch.unwrap_or(1))?;
            Ok(Some(out))
        })
    }
}

/// # Safety
/// The addresses are of arrays of `S` on the stream's device: one more than rows, and `nnz`.
unsafe fn import<S: lacuna::ForeignIndex>(
    stream: &Stream,
    shape: [usize; 2],
    nnz: usize,
    row_offsets: u64,
    columns: u64,
) -> lacuna::Result<CsrMatrix<f32>> {
    let device = stream.device();
    // SAFETY: as promised by the caller.
    unsafe {
        let row_offsets = Slice::<S>::from_raw(device, row_offsets, shape[0] + 1)?;
        CsrMatrix::from_indices(stream, shape, row_offsets, Slice::<S>::from_raw(device, columns, nnz)?)
    }
}

impl Pattern {
    /// Nonzeros, and elements from the values of one matrix of a batch to those of the next.
    pub(crate) fn nnz_and_stride(&self) -> [usize; 2] {
        [self.matrix.nnz(), self.matrix.values_stride()]
    }
}

/// How exactly products are computed: by fused multiply-adds alone, or by the library's choice.
pub(crate) fn precision(is_precise: bool) -> lacuna::Precision {
    if is_precise { lacuna::Precision::Fma } else { lacuna::Precision::Single }
}

/// `len` elements to write at an address that the Python files passed.
///
/// # Safety
/// As for [`SliceMut::from_raw`].
pub(crate) unsafe fn output<T: lacuna::Element>(
    device: &lacuna::Device,
    address: u64,
    len: usize,
) -> lacuna::Result<SliceMut<'_, T>> {
    // SAFETY: as promised by the caller.
    unsafe { SliceMut::from_raw(device, address, len) }
}
