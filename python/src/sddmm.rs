//! SDDMM: products at the nonzeros of a pattern.
use lacuna::{Index, Sddmm, Slice, Value, sddmm};
use pyo3::prelude::*;

use crate::device::{Dtype, stream, with_type};
use crate::error::raise;
use crate::pattern::{Pattern, PatternOf, precision, with_pattern};
use crate::plans::{CallStream, Key, Operation};
use crate::torch::direct;

/// A product at nonzeros: sizes, and where operands are. Address, elements from row to row, and elements from matrix to matrix.
struct Sampled {
    stream: CallStream,
    dtype: Dtype,
    k: usize,
    batch: usize,
    a: (u64, usize, usize),
    b: (u64, usize, usize),
    d: u64,
    precise: bool,
}

impl<'py> FromPyObject<'_, 'py> for Sampled {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (stream, dtype, k, batch, a, b, d, precise) = object.extract()?;
        Ok(Self { stream, dtype, k, batch, a, b, d, precise })
    }
}

impl Sampled {
    fn key(&self, stream: usize) -> Key {
        let Self { dtype, k, batch, a, b, precise, .. } = *self;
        let numbers = [k, batch, a.1, a.2, b.1, b.2, precise.into(), 0, 0];
        Key { operation: Operation::Sddmm, dtype, stream, numbers: numbers.map(|number| number as u64) }
    }

    fn plan<T: Value, I: Index>(&self, pattern: &PatternOf<I>) -> lacuna::Result<Sddmm<T, I>> {
        let Self { k, batch, a: (_, a_stride, a_batch), b: (_, b_stride, b_batch), precise, .. } = *self;
        let options = sddmm::Options::default().batch(batch).a_stride(a_stride).b_stride(b_stride);
        let options = options.a_batch_stride(a_batch).b_batch_stride(b_batch).precision(precision(precise));
        Sddmm::plan_with(&pattern.matrix.with_zeros::<T>(0)?, k, options)
    }

    /// # Safety
    /// The addresses are of live tensors of these sizes, which stay until the stream has come to this; those of results have room.
    unsafe fn run<T: Value, I: Index>(
        &self,
        plan: &Sddmm<T, I>,
        pattern: &PatternOf<I>,
    ) -> lacuna::Result<()> {
        let device = pattern.matrix.device();
        // SAFETY: as promised by the caller; the lengths follow from the sizes.
        unsafe {
            let stream = stream(device, self.stream.0)?;
            let a = Slice::from_raw(device, self.a.0, plan.a_len())?;
            let b = Slice::from_raw(device, self.b.0, plan.b_len())?;
            plan.run(&stream, a, b, &mut pattern.matrix.with_foreign_values::<T>(self.batch, self.d)?)
        }
    }
}

#[pymethods]
impl Pattern {
    /// D = (A·Bᵀ) at the nonzeros, with A rows×k and B columns×k.
    fn sddmm(&self, py: Python<'_>, sampled: Sampled) -> PyResult<()> {
        with_pattern!(self, of => of.sddmm(py, &sampled))
    }

    /// The same for tensors, past PyTorch's dispatcher: see [`direct`].
    fn sddmm_direct<'py>(
        &self,
        py: Python<'py>,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        precise: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        with_pattern!(self, of => of.sddmm_direct(py, [a, b], precise))
    }
}

impl<I: Index> PatternOf<I> {
    fn sddmm(&self, py: Python<'_>, sampled: &Sampled) -> PyResult<()> {
        let work = || {
            with_type!(sampled.dtype, T => {
                let key = sampled.key(sampled.stream.0);
                let plan = self.plans.get_or_make(key, sampled.stream.1, || sampled.plan::<T, I>(self))?;
                // SAFETY: the Python files pass addresses of tensors that they hold, of the shapes that they have checked, on the
                // current stream.
                unsafe { sampled.run(&plan, self) }
            })
        };
        py.detach(work).map_err(|error| raise(&error))
    }

    fn sddmm_direct<'py>(
        &self,
        py: Python<'py>,
        [a, b]: [&Bound<'py, PyAny>; 2],
        precise: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        direct(py, self.index, &[a, b], |call| {
            let (Some(a), Some(b)) = (call.operand(a)?, call.operand(b)?) else { return Ok(None) };
            let (Some(matrices), Some(&k)) = (a.matrices(), a.shape().last()) else { return Ok(None) };
            let (rows, cols, dtype) = (self.matrix.rows(), self.matrix.cols(), a.dtype);
            let (Some(a), Some(b_rows)) = (a.rows(matrices, rows, k), b.rows(matrices, cols, k)) else {
                return Ok(None);
            };
            if b.dtype != dtype {
                return Ok(None);
            }
            let (stream, batch) = (CallStream(call.stream, false), matrices.unwrap_or(1));
            let mut sampled = Sampled { stream, dtype, k, batch, a, b: b_rows, d: 0, precise };
            with_type!(dtype, T => {
                let Some(plan) = self.plans.get::<Sddmm<T, I>>(&sampled.key(call.stream)) else {
                    return Ok(None);
                };
                let Some((values, d)) = call.empty_values(matrices, self.nnz_and_stride(), dtype)? else {
                    return Ok(None);
                };
                sampled.d = d;
                // SAFETY: `call` has looked at the tensors, which Python holds, and at their shapes.
                py.detach(|| unsafe { sampled.run(&plan, self) }).map_err(|error| raise(&error))?;
                Ok(Some(values))
            })
        })
    }
}
