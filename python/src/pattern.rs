//! Patterns, and values in the order of their transposed ones.
use std::sync::Arc;

use lacuna::{CsrMatrix, Error, ForeignIndex, Index, Slice, SliceMut, Stream, Value};
use pyo3::prelude::*;

use crate::device::{Device, Dtype, stream, with_type};
use crate::error::{input, raise};
use crate::plans::Plans;
use crate::torch::direct;

/// Where the nonzeros of a matrix are, on a device: with column indices of 32 bits or of 16.
#[pyclass(frozen)]
pub(crate) struct Pattern {
    pub(crate) of: Indexed,
}

pub(crate) enum Indexed {
    U32(PatternOf<u32>),
    U16(PatternOf<u16>),
}

/// Calls a block with a name for the pattern of whichever index.
macro_rules! with_pattern {
    ($pattern:expr, $of:ident => $body:expr) => {
        match &$pattern.of {
            $crate::pattern::Indexed::U32($of) => $body,
            $crate::pattern::Indexed::U16($of) => $body,
        }
    };
}
pub(crate) use with_pattern;

/// The same with indices of one type.
pub(crate) struct PatternOf<I: Index> {
    /// Of a batch of none.
    pub(crate) matrix: CsrMatrix<f32, I>,
    pub(crate) plans: Plans,
    /// The number of its GPU; none on a simulator.
    pub(crate) index: Option<i32>,
    /// The pattern that this is the transposed of.
    source: Option<Arc<CsrMatrix<f32, I>>>,
}

/// Index arrays on a device.
struct Arrays {
    /// Rows and columns of the matrix.
    shape: [usize; 2],
    nnz: usize,
    /// Where rows start, or the row of each nonzero.
    rows: u64,
    columns: u64,
    /// Of an index of theirs.
    bits: u32,
    /// What tells the rows.
    form: Form,
}

/// How rows are given: by their offsets, one for each nonzero, or as lists of as many columns, of which a row keeps those up to its
/// number and this more.
enum Form {
    Csr,
    Coo,
    Lists(Option<i64>),
}

impl<'py> FromPyObject<'_, 'py> for Arrays {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (shape, nnz, rows, columns, bits, form, diagonal) = object.extract()?;
        let form = match form {
            0_u8 => Form::Csr,
            1 => Form::Coo,
            _ => Form::Lists(diagonal),
        };
        Ok(Self { shape, nnz, rows, columns, bits, form })
    }
}

impl Arrays {
    /// # Safety
    /// The addresses are of arrays of that many indices on the stream's device, which stay until this returns.
    unsafe fn import<S: ForeignIndex, I: Index>(&self, stream: &Stream) -> lacuna::Result<CsrMatrix<f32, I>> {
        let (device, &Self { shape, nnz, .. }) = (stream.device(), self);
        // SAFETY: as promised by the caller.
        unsafe {
            let columns = Slice::<S>::from_raw(device, self.columns, nnz)?;
            match self.form {
                Form::Coo => {
                    CsrMatrix::from_coo(stream, shape, Slice::<S>::from_raw(device, self.rows, nnz)?, columns)
                }
                Form::Csr => {
                    let row_offsets = Slice::<S>::from_raw(device, self.rows, shape[0] + 1)?;
                    CsrMatrix::from_indices(stream, shape, row_offsets, columns)
                }
                Form::Lists(diagonal) => {
                    let length = nnz.checked_div(shape[0]).unwrap_or(0);
                    CsrMatrix::from_lists(stream, shape, columns, length, diagonal)
                }
            }
        }
    }

    fn pattern<I: Index>(&self, py: Python<'_>, device: &Device, handle: usize) -> PyResult<PatternOf<I>> {
        let made = py.detach(|| {
            // SAFETY: the Python files pass the current stream of a device, and the addresses of arrays that they hold and have
            // checked the type and length of; the call waits for what reads them.
            unsafe {
                let stream = stream(&device.inner, handle)?;
                match self.bits {
                    32 => self.import::<i32, I>(&stream),
                    _ => self.import::<i64, I>(&stream),
                }
            }
        });
        let matrix = made.map_err(|error| raise(&error))?;
        Ok(PatternOf { matrix, plans: Plans::default(), index: device.index, source: None })
    }
}

#[pymethods]
impl Pattern {
    /// The pattern of index arrays that are on the device, with indices of `index_bits` of its own.
    #[new]
    fn new(
        py: Python<'_>,
        device: &Device,
        stream_handle: usize,
        arrays: Arrays,
        index_bits: u32,
    ) -> PyResult<Self> {
        let of = match index_bits {
            32 => Indexed::U32(arrays.pattern(py, device, stream_handle)?),
            16 => Indexed::U16(arrays.pattern(py, device, stream_handle)?),
            other => return Err(input(format!("index_bits is {other}, but it must be 32 or 16"))),
        };
        Ok(Self { of })
    }

    /// Rows, columns, nonzeros, and elements from the values of one matrix of a batch to those of the next.
    #[getter]
    fn sizes(&self) -> (usize, usize, usize, usize) {
        with_pattern!(self, of => {
            let PatternOf { matrix, .. } = of;
            (matrix.rows(), matrix.cols(), matrix.nnz(), matrix.values_stride())
        })
    }

    /// Bits of a column index.
    #[getter]
    fn index_bits(&self) -> u32 {
        match self.of {
            Indexed::U32(_) => 32,
            Indexed::U16(_) => 16,
        }
    }

    /// The transposed pattern. The first call works it out, and waits.
    fn transposed(&self, py: Python<'_>, stream_handle: usize) -> PyResult<Self> {
        let of = match &self.of {
            Indexed::U32(of) => Indexed::U32(of.transposed(py, stream_handle)?),
            Indexed::U16(of) => Indexed::U16(of.transposed(py, stream_handle)?),
        };
        Ok(Self { of })
    }

    /// Writes values of the pattern that this is the transposed of, `batch` times one a nonzero, in this one's order.
    fn gather(&self, py: Python<'_>, gather: Gather) -> PyResult<()> {
        with_pattern!(self, of => of.gather(py, &gather))
    }

    /// The same for tensors, past PyTorch's dispatcher: see [`direct`].
    fn gather_direct<'py>(&self, py: Python<'py>, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        with_pattern!(self, of => of.gather_direct(py, values))
    }
}

/// Values to bring in another order: the stream, their type and addresses, and how many matrices they are of.
struct Gather {
    stream: usize,
    dtype: Dtype,
    from: u64,
    to: u64,
    batch: usize,
}

impl<'py> FromPyObject<'_, 'py> for Gather {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (stream, dtype, from, to, batch) = object.extract()?;
        Ok(Self { stream, dtype, from, to, batch })
    }
}

impl<I: Index> PatternOf<I> {
    /// Nonzeros, and elements from the values of one matrix of a batch to those of the next.
    pub(crate) fn nnz_and_stride(&self) -> [usize; 2] {
        [self.matrix.nnz(), self.matrix.values_stride()]
    }

    fn transposed(&self, py: Python<'_>, stream_handle: usize) -> PyResult<Self> {
        let made = py.detach(|| {
            // SAFETY: the stream is the caller's current one.
            let stream = unsafe { stream(self.matrix.device(), stream_handle)? };
            Ok((self.matrix.transposed(&stream)?, self.matrix.with_zeros(0)?))
        });
        let (matrix, source) = made.map_err(|error: Error| raise(&error))?;
        Ok(Self { matrix, plans: Plans::default(), index: self.index, source: Some(Arc::new(source)) })
    }

    fn gather(&self, py: Python<'_>, gather: &Gather) -> PyResult<()> {
        let source = self.source.as_ref().ok_or_else(|| input("the pattern is not a transposed one"))?;
        let work = || with_type!(gather.dtype, T => self.gather_of::<T>(source, gather));
        py.detach(work).map_err(|error| raise(&error))
    }

    fn gather_of<T: Value>(&self, source: &CsrMatrix<f32, I>, gather: &Gather) -> lacuna::Result<()> {
        // SAFETY: the Python files and `Call` pass addresses of tensors with room for `batch` times the stride, which stay until the
        // stream has come to this, by the rules of their allocator.
        unsafe {
            let stream = stream(source.device(), gather.stream)?;
            let from = source.with_foreign_values::<T>(gather.batch, gather.from)?;
            self.matrix.with_foreign_values::<T>(gather.batch, gather.to)?.update_from(&stream, &from)
        }
    }

    fn gather_direct<'py>(&self, py: Python<'py>, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        direct(py, self.index, &[values], |call| {
            let Some((from, matrices)) = call.values(values, self.nnz_and_stride())? else { return Ok(None) };
            let Some((out, to)) = call.empty_values(matrices, self.nnz_and_stride(), from.dtype)? else {
                return Ok(None);
            };
            let (dtype, batch) = (from.dtype, matrices.unwrap_or(1));
            self.gather(py, &Gather { stream: call.stream, dtype, from: from.address, to, batch })?;
            Ok(Some(out))
        })
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
