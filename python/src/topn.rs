//! Softmax and top-N of dense rows.
use lacuna::{Slice, TopN, Value, topn};
use pyo3::prelude::*;

use crate::device::{Device, Dtype, stream, with_type};
use crate::error::{input, raise};
use crate::pattern::output;
use crate::plans::{CallStream, Key, Operation};
use crate::torch::direct;

/// Rows of logits, and where operands are.
struct Rows {
    stream: CallStream,
    dtype: Dtype,
    /// Rows, columns, elements from row to row, and how many are wanted of each.
    sizes: [usize; 4],
    /// 0 for probabilities, 1 for their logarithms, 2 for logits.
    form: u8,
    temperature: f32,
    logits: u64,
    values: u64,
    indices: u64,
}

impl<'py> FromPyObject<'_, 'py> for Rows {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (stream, dtype, sizes, form, temperature, logits, values, indices) = object.extract()?;
        if form > 2 {
            return Err(input(format!("there is no form {form} of results")));
        }
        Ok(Self { stream, dtype, sizes, form, temperature, logits, values, indices })
    }
}

#[pymethods]
impl Device {
    /// Writes the `n` greatest of each row, and their indices.
    fn topn(&self, py: Python<'_>, rows: Rows) -> PyResult<()> {
        py.detach(|| with_type!(rows.dtype, T => self.topn_of::<T>(&rows))).map_err(|error| raise(&error))
    }

    /// The same for a tensor, past PyTorch's dispatcher: see [`direct`]. Gives values and indices.
    fn topn_direct<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        n: usize,
        form: u8,
        temperature: f32,
    ) -> PyResult<Bound<'py, PyAny>> {
        direct(py, self.index, &[logits], |call| {
            let Some(found) = call.operand(logits)? else { return Ok(None) };
            let (&[count, columns], dtype) = (found.shape(), found.dtype) else { return Ok(None) };
            let Some((logits, row_stride, _)) = found.rows(None, count, columns) else { return Ok(None) };
            let sizes = [count, columns, row_stride, n];
            let stream = CallStream(call.stream, false);
            let mut rows = Rows { stream, dtype, sizes, form, temperature, logits, values: 0, indices: 0 };
            with_type!(dtype, T => {
                let Some(plan) = self.plans.get::<TopN<T>>(&rows.key(call.stream)) else { return Ok(None) };
                let Some((values, address)) = call.empty(&[count, n], Dtype::F32)? else { return Ok(None) };
                let (indices, of_indices) = call.empty_indices(&[count, n])?;
                (rows.values, rows.indices) = (address, of_indices);
                // SAFETY: `call` has looked at the tensors, which Python holds, and at their shapes.
                py.detach(|| unsafe { rows.run(&self.inner, &plan) }).map_err(|error| raise(&error))?;
                Ok(Some((values, indices).into_pyobject(py)?.into_any()))
            })
        })
    }
}

impl Rows {
    /// The key of its plan, of those of a stream: a plan has memory of its own.
    fn key(&self, stream: usize) -> Key {
        let [count, columns, row_stride, n] = self.sizes;
        let temperature = self.temperature.to_bits() as usize;
        let numbers = [count, columns, row_stride, n, self.form.into(), temperature, 0, 0, 0];
        let numbers = numbers.map(|number| number as u64);
        Key { operation: Operation::TopN, dtype: self.dtype, stream, numbers }
    }

    /// # Safety
    /// The addresses are of live tensors of these sizes, which stay until the stream has come to this.
    unsafe fn run<T: Value>(&self, device: &lacuna::Device, plan: &TopN<T>) -> lacuna::Result<()> {
        // SAFETY: as promised by the caller.
        unsafe {
            let stream = stream(device, self.stream.0)?;
            let logits = Slice::from_raw(device, self.logits, plan.input_len())?;
            let values = output(device, self.values, plan.output_len())?;
            plan.run(&stream, logits, values, output(device, self.indices, plan.output_len())?)
        }
    }
}

impl Device {
    fn topn_of<T: Value>(&self, rows: &Rows) -> lacuna::Result<()> {
        let [count, columns, row_stride, n] = rows.sizes;
        let plan = self.plans.get_or_make(rows.key(rows.stream.0), rows.stream.1, || {
            let form = match rows.form {
                0 => topn::Output::Probabilities,
                1 => topn::Output::LogProbabilities,
                _ => topn::Output::Logits,
            };
            let options =
                topn::Options::default().output(form).temperature(rows.temperature).row_stride(row_stride);
            TopN::<T>::plan_with(&self.inner, count, columns, n, options)
        })?;
        // SAFETY: the Python files pass addresses of tensors that they hold, of the shapes that they have checked, on the
        // current stream.
        unsafe { rows.run(&self.inner, &plan) }
    }
}
