//! Few-hot lookup: sums of the rows of a table that bags of indices name.
use lacuna::{ForeignIndex, NHot, Slice, Stream, Value, nhot};
use pyo3::prelude::*;

use crate::device::{Device, Dtype, stream, with_type};
use crate::error::raise;
use crate::pattern::output;
use crate::plans::{Key, Operation, Plans};
use crate::products::numbers;
use crate::torch::direct;

/// Bags of indices of a table's rows, on a device.
#[pyclass(frozen)]
pub(crate) struct Bags {
    inner: lacuna::Bags,
    plans: Plans,
    is_mean: bool,
    /// The number of its GPU; none on a simulator.
    index: Option<i32>,
}

/// Offsets and indices on a device: the address and the number of elements of each, and their bits.
struct Arrays {
    offsets: (u64, usize),
    indices: (u64, usize),
    bits: u32,
}

impl<'py> FromPyObject<'_, 'py> for Arrays {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (offsets, indices, bits) = object.extract()?;
        Ok(Self { offsets, indices, bits })
    }
}

impl Arrays {
    /// # Safety
    /// The addresses are of arrays of that many indices on the stream's device, which stay until this returns.
    unsafe fn import<S: ForeignIndex>(
        &self,
        stream: &Stream,
        table_rows: usize,
    ) -> lacuna::Result<lacuna::Bags> {
        // SAFETY: as promised by the caller.
        let slice = |(address, len)| unsafe { Slice::<S>::from_raw(stream.device(), address, len) };
        lacuna::Bags::from_indices(stream, table_rows, slice(self.offsets)?, slice(self.indices)?)
    }
}

/// A lookup, or its gradient: sizes, and where operands are.
#[derive(Clone, Copy)]
pub(crate) struct Lookup {
    stream: usize,
    dtype: Dtype,
    columns: usize,
    table: (u64, usize),
    out: u64,
}

impl<'py> FromPyObject<'_, 'py> for Lookup {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (stream, dtype, columns, table, out) = object.extract()?;
        Ok(Self { stream, dtype, columns, table, out })
    }
}

#[pymethods]
impl Bags {
    /// Bags of arrays on the device, read on the stream; weights in `f32`, in the host's memory, or none.
    #[new]
    fn new(
        py: Python<'_>,
        device: &Device,
        of_call: usize,
        table_rows: usize,
        arrays: Arrays,
        weights: Option<&[u8]>,
        is_mean: bool,
    ) -> PyResult<Self> {
        let weights = weights.map(numbers::<f32>);
        let inner = py.detach(|| {
            // SAFETY: the Python files pass addresses of arrays that they hold, and the current stream.
            let bags = unsafe {
                let stream = stream(&device.inner, of_call)?;
                match arrays.bits {
                    32 => arrays.import::<i32>(&stream, table_rows),
                    _ => arrays.import::<i64>(&stream, table_rows),
                }
            }?;
            match weights {
                Some(weights) => bags.with_weights(&weights),
                None => Ok(bags),
            }
        });
        let inner = inner.map_err(|error: lacuna::Error| raise(&error))?;
        Ok(Self { inner, plans: Plans::default(), is_mean, index: device.index })
    }

    /// How many bags, and rows of the table.
    #[getter]
    fn sizes(&self) -> (usize, usize) {
        (self.inner.bags(), self.inner.table_rows())
    }

    /// Writes a row for each bag.
    fn lookup(&self, py: Python<'_>, lookup: Lookup) -> PyResult<()> {
        self.give(py, &lookup, false)
    }

    /// Writes the gradient of the table (`out`, without gaps) from that of the result (in the table's place).
    fn backward(&self, py: Python<'_>, lookup: Lookup) -> PyResult<()> {
        self.give(py, &lookup, true)
    }

    /// A row for each bag of a tensor, past PyTorch's dispatcher: see [`direct`].
    fn lookup_direct<'py>(&self, py: Python<'py>, table: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.give_direct(py, table, [self.inner.table_rows(), self.inner.bags()], false)
    }

    /// The gradient of the table, past PyTorch's dispatcher.
    fn backward_direct<'py>(
        &self,
        py: Python<'py>,
        gradient: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.give_direct(py, gradient, [self.inner.bags(), self.inner.table_rows()], true)
    }
}

impl Bags {
    fn give(&self, py: Python<'_>, lookup: &Lookup, is_backward: bool) -> PyResult<()> {
        let work = || with_type!(lookup.dtype, T => self.run::<T>(lookup, is_backward));
        py.detach(work).map_err(|error| raise(&error))
    }

    /// What a tensor of so many rows gives, as many rows as the second number.
    fn give_direct<'py>(
        &self,
        py: Python<'py>,
        tensor: &Bound<'py, PyAny>,
        [rows, out_rows]: [usize; 2],
        is_backward: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        direct(py, self.index, &[tensor], |call| {
            let Some(found) = call.operand(tensor)? else { return Ok(None) };
            let (&[_, columns], dtype) = (found.shape(), found.dtype) else { return Ok(None) };
            let Some((address, stride, _)) = found.rows(None, rows, columns) else { return Ok(None) };
            if is_backward && stride != columns {
                return Ok(None);
            }
            let Some((result, out)) = call.empty(&[out_rows, columns], dtype)? else { return Ok(None) };
            let lookup = Lookup { stream: call.stream, dtype, columns, table: (address, stride), out };
            self.give(py, &lookup, is_backward)?;
            Ok(Some(result))
        })
    }

    fn run<T: Value>(&self, lookup: &Lookup, is_backward: bool) -> lacuna::Result<()> {
        let (Lookup { dtype, columns, table: (from, stride), .. }, is_mean) = (*lookup, self.is_mean);
        let stride = if is_backward { columns } else { stride };
        let numbers = [columns, is_mean.into(), stride, 0, 0, 0, 0, 0, 0].map(|number: usize| number as u64);
        let key = Key { operation: Operation::Lookup, dtype, stream: 0, numbers };
        let plan = self.plans.get_or_make(key, false, || {
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
