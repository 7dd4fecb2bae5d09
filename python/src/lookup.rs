//! Few-hot lookup: sums of the rows of a table that bags of indices name.
use lacuna::{NHot, Slice, Value, nhot};
use pyo3::prelude::*;

use crate::device::{Device, Dtype, stream, with_type};
use crate::error::{input, raise};
use crate::pattern::output;
use crate::plans::{Key, Operation, Plans};
use crate::products::numbers;

/// Bags of indices of a table's rows, on a device.
#[pyclass(frozen)]
pub(crate) struct Bags {
    inner: lacuna::Bags,
    plans: Plans,
}

/// A lookup, or its gradient: sizes, and where operands are.
pub(crate) struct Lookup {
    stream: usize,
    dtype: Dtype,
    columns: usize,
    is_mean: bool,
    table: (u64, usize),
    out: u64,
}

impl<'py> FromPyObject<'_, 'py> for Lookup {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (stream, dtype, columns, is_mean, table, out) = object.extract()?;
        Ok(Self { stream, dtype, columns, is_mean, table, out })
    }
}

#[pymethods]
impl Bags {
    /// Bags of host indices of 64 bits; weights in `f32`, or none.
    #[new]
    fn new(
        py: Python<'_>,
        device: &Device,
        table_rows: usize,
        offsets: &[u8],
        indices: &[u8],
        weights: Option<&[u8]>,
    ) -> PyResult<Self> {
        let [offsets, indices] = [offsets, indices].map(numbers::<i64>);
        let weights = weights.map(numbers::<f32>);
        let offsets: Vec<usize> = unsigned("offset", &offsets)?;
        let indices: Vec<u32> = unsigned("index", &indices)?;
        let inner = py.detach(|| {
            let bags = lacuna::Bags::new(&device.inner, table_rows, &offsets, &indices)?;
            match weights {
                Some(weights) => bags.with_weights(&weights),
                None => Ok(bags),
            }
        });
        Ok(Self { inner: inner.map_err(|error: lacuna::Error| raise(&error))?, plans: Plans::default() })
    }

    /// How many bags, and rows of the table.
    #[getter]
    fn sizes(&self) -> (usize, usize) {
        (self.inner.bags(), self.inner.table_rows())
    }

    /// Writes a row for each bag.
    fn lookup(&self, py: Python<'_>, lookup: Lookup) -> PyResult<()> {
        let work = || with_type!(lookup.dtype, T => self.run::<T>(&lookup, false));
        py.detach(work).map_err(|error| raise(&error))
    }

    /// Writes the gradient of the table (`out`, without gaps) from that of the result (in the table's place).
    fn backward(&self, py: Python<'_>, lookup: Lookup) -> PyResult<()> {
        let work = || with_type!(lookup.dtype, T => self.run::<T>(&lookup, true));
        py.detach(work).map_err(|error| raise(&error))
    }
}

impl Bags {
    fn run<T: Value>(&self, lookup: &Lookup, is_backward: bool) -> lacuna::Result<()> {
        let Lookup { dtype, columns, is_mean, table: (from, stride), .. } = *lookup;
        let stride = if is_backward { columns } else { stride };
        let numbers =
            [columns, is_mean.into(), stride, 0, 0, 0, 0, 0, 0, 0].map(|number: usize| number as u64);
        let plan = self.plans.get_or_make(Key { operation: Operation::Lookup, dtype, numbers }, || {
            let mode = if is_mean { nhot::Mode::Mean } else { nhot::Mode::Sum };
            let options = nhot::Options::default().mode(mode).table_stride(stride);
            NHot::<T>::plan_with(&self.inner, columns, options)
        })?;
        let device = self.inner.device();
        // SAFETY: the Python files pass addresses of tensors that they hold, of the shapes that they have checked, on the
        // current stream.
        unsafe {
            let stream = stream(device, lookup.stream)?;
            if is_backward {
                let gradient = output(device, lookup.out, plan.table_len())?;
                return plan.backward_table(
                    &stream,
                    &self.inner,
                    Slice::from_raw(device, from, plan.output_len())?,
                    gradient,
                );
            }
            let out = output(device, lookup.out, plan.output_len())?;
            plan.run(&stream, &self.inner, Slice::from_raw(device, from, plan.table_len())?, out)
        }
    }
}

/// Numbers of Python's, none of them negative or too large.
fn unsigned<N: TryFrom<i64>>(what: &str, numbers: &[i64]) -> PyResult<Vec<N>> {
    let number = |(place, &number): (usize, &i64)| {
        let wrong = |_| input(format!("bags: {what} {place} is {number}, but it must be from 0 to 2^32 - 1"));
        N::try_from(number).map_err(wrong)
    };
    numbers.iter().enumerate().map(number).collect()
}
