//! Softmax and top-N of dense rows.
use lacuna::{Slice, TopN, Value, topn};
use pyo3::prelude::*;

use crate::device::{Device, Dtype, stream, with_type};
use crate::error::{input, raise};
use crate::pattern::output;
use crate::plans::{CallStream, Key, Operation};

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
}

impl Device {
    fn topn_of<T: Value>(&self, rows: &Rows) -> lacuna::Result<()> {
        let [count, columns, stride, n] = rows.sizes;
        let temperature = rows.temperature.to_bits() as usize;
        // A plan has memory of its own: one a stream.
        let stream_of_plan = self.plans.stream_of(rows.stream);
        let numbers = [stream_of_plan, count, columns, stride, n, rows.form.into(), temperature, 0, 0, 0];
        let numbers = numbers.map(|number| number as u64);
        let key = Key { operation: Operation::TopN, dtype: rows.dtype, numbers };
        let plan = self.plans.get_or_make(key, || {
            let form = match rows.form {
                0 => topn::Output::Probabilities,
                1 => topn::Output::LogProbabilities,
                _ => topn::Output::Logits,
            };
            let options =
                topn::Options::default().output(form).temperature(rows.temperature).row_stride(stride);
            TopN::<T>::plan_with(&self.inner, count, columns, n, options)
        })?;
        // SAFETY: the Python files pass addresses of tensors that they hold, of the shapes that they have checked, on the
        // current stream.
        unsafe {
            let stream = stream(&self.inner, rows.stream.0)?;
            let logits = Slice::from_raw(&self.inner, rows.logits, plan.input_len())?;
            let values = output(&self.inner, rows.values, plan.output_len())?;
            plan.run(&stream, logits, values, output(&self.inner, rows.indices, plan.output_len())?)
        }
    }
}
