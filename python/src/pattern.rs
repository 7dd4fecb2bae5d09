//! Patterns, and what is done with values at their nonzeros.
use std::sync::Arc;

use lacuna::{CsrMatrix, Error, Sddmm, Slice, SliceMut, SparseSoftmax, Stream, Value, sddmm, softmax};
use pyo3::prelude::*;

use crate::device::{Device, Dtype, stream, with_type};
use crate::error::{input, raise};
use crate::plans::{Key, Operation, Plans, Streams};

/// Where the nonzeros of a matrix are, on a device.
#[pyclass(frozen)]
pub(crate) struct Pattern {
    /// Of a batch of none.
    pub(crate) matrix: CsrMatrix<f32>,
    pub(crate) plans: Plans,
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
        let device = &device.inner;
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
        Ok(Self { matrix, plans: Plans::default(), source: None })
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
        Ok(Self { matrix, plans: Plans::default(), source: Some(Arc::new(source)) })
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

    /// D = (A·Bᵀ) at the nonzeros, with A rows×k and B columns×k.
    #[allow(clippy::too_many_arguments, reason = "they are the operands with their strides")]
    fn sddmm(
        &self,
        py: Python<'_>,
        streams: Streams,
        dtype: Dtype,
        k: usize,
        batch: usize,
        a: (u64, usize, usize),
        b: (u64, usize, usize),
        d: u64,
        precise: bool,
    ) -> PyResult<()> {
        let work = || with_type!(dtype, T => self.sddmm_of::<T>(streams, dtype, k, batch, a, b, d, precise));
        py.detach(work).map_err(|error| raise(&error))
    }

    /// y = softmax(scale·x) of each row.
    #[allow(clippy::too_many_arguments, reason = "they are the operands")]
    fn softmax(
        &self,
        py: Python<'_>,
        stream_handle: usize,
        dtype: Dtype,
        batch: usize,
        scale: f32,
        x: u64,
        y: u64,
    ) -> PyResult<()> {
        py.detach(|| {
            with_type!(dtype, T => {
                let plan = self.softmax_plan::<T>(dtype, batch, scale)?;
                // SAFETY: as for `gather`.
                unsafe {
                    let stream = stream(self.matrix.device(), stream_handle)?;
                    let x = self.matrix.with_foreign_values::<T>(batch, x)?;
                    plan.run(&stream, &x, &mut self.matrix.with_foreign_values::<T>(batch, y)?)
                }
            })
        })
        .map_err(|error| raise(&error))
    }

    /// The gradient of x from the softmax `y` and its gradient `dy`.
    #[allow(clippy::too_many_arguments, reason = "they are the operands")]
    fn softmax_backward(
        &self,
        py: Python<'_>,
        stream_handle: usize,
        dtype: Dtype,
        batch: usize,
        scale: f32,
        y: u64,
        dy: u64,
        dx: u64,
    ) -> PyResult<()> {
        py.detach(|| {
            with_type!(dtype, T => {
                let plan = self.softmax_plan::<T>(dtype, batch, scale)?;
                // SAFETY: as for `gather`.
                unsafe {
                    let stream = stream(self.matrix.device(), stream_handle)?;
                    let y = self.matrix.with_foreign_values::<T>(batch, y)?;
                    let dy = self.matrix.with_foreign_values::<T>(batch, dy)?;
                    plan.backward(&stream, &y, &dy, &mut self.matrix.with_foreign_values::<T>(batch, dx)?)
                }
            })
        })
        .map_err(|error| raise(&error))
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
    fn softmax_plan<T: Value>(
        &self,
        dtype: Dtype,
        batch: usize,
        scale: f32,
    ) -> lacuna::Result<Arc<SparseSoftmax<T>>> {
        let numbers = [batch as u64, scale.to_bits().into(), 0, 0, 0, 0, 0, 0, 0, 0];
        self.plans.get_or_make(Key { operation: Operation::Softmax, dtype, numbers }, || {
            let options = softmax::Options::default().batch(batch).scale(scale);
            SparseSoftmax::plan_with(&self.matrix.with_zeros::<T>(0)?, options)
        })
    }

    #[allow(clippy::too_many_arguments, reason = "they are the operands with their strides")]
    fn sddmm_of<T: Value>(
        &self,
        Streams(stream_handle, of_plan): Streams,
        dtype: Dtype,
        k: usize,
        batch: usize,
        (a, a_stride, a_batch): (u64, usize, usize),
        (b, b_stride, b_batch): (u64, usize, usize),
        d: u64,
        precise: bool,
    ) -> lacuna::Result<()> {
        let device = self.matrix.device();
        let numbers = [k, batch, a_stride, a_batch, b_stride, b_batch, of_plan, precise.into(), 0, 0];
        let key = Key { operation: Operation::Sddmm, dtype, numbers: numbers.map(|number| number as u64) };
        let plan = self.plans.get_or_make(key, || {
            let options = sddmm::Options::default().batch(batch).a_stride(a_stride).b_stride(b_stride);
            let options =
                options.a_batch_stride(a_batch).b_batch_stride(b_batch).precision(precision(precise));
            Sddmm::plan_with(&self.matrix.with_zeros::<T>(0)?, k, options)
        })?;
        // SAFETY: as for `gather`; the Python files have checked the shapes that the lengths follow from.
        unsafe {
            let stream = stream(device, stream_handle)?;
            let a = Slice::from_raw(device, a, plan.a_len())?;
            let b = Slice::from_raw(device, b, plan.b_len())?;
            plan.run(&stream, a, b, &mut self.matrix.with_foreign_values::<T>(batch, d)?)
        }
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
