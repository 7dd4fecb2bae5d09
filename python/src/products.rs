//! SpMM: of values that change, and of packed weights.
use half::{bf16, f16};
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Slice, Spmm, Value, spmm};
use pyo3::prelude::*;

use crate::device::{Device, Dtype, stream, with_type};
use crate::error::{input, raise};
use crate::pattern::{Pattern, output, precision};
use crate::plans::{Key, Operation, Plans, Streams};

/// A product: sizes, and where operands are. Address, elements from row to row, and elements from matrix to matrix.
pub(crate) struct Product {
    stream: Streams,
    dtype: Dtype,
    n: usize,
    batch: usize,
    b: (u64, usize, usize),
    c: (u64, usize, usize),
    bias: Option<u64>,
    relu: bool,
    precise: bool,
}

impl<'py> FromPyObject<'_, 'py> for Product {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // A tuple: attributes of an object would each be looked up by name.
        let (stream, dtype, n, batch, b, c, bias, relu, precise) = object.extract()?;
        Ok(Self { stream, dtype, n, batch, b, c, bias, relu, precise })
    }
}

impl Product {
    /// # Safety
    /// The addresses are of live tensors of these sizes, which stay until the stream has come to this.
    unsafe fn run<T: Value>(&self, a: &CsrMatrix<T>, plans: &Plans) -> lacuna::Result<()> {
        let Self { dtype, n, batch, relu, precise, .. } = *self;
        let ((b, b_stride, b_batch), (c, c_stride, c_batch)) = (self.b, self.c);
        let device = a.device();
        let Streams(stream_handle, of_plan) = self.stream;
        let numbers =
            [n, batch, b_stride, b_batch, c_stride, c_batch, relu.into(), precise.into(), of_plan, 0];
        let key = Key { operation: Operation::Spmm, dtype, numbers: numbers.map(|number| number as u64) };
        let plan = plans.get_or_make(key, || {
            let options = spmm::Options::default().batch(batch).b_stride(b_stride).c_stride(c_stride);
            let options =
                options.b_batch_stride(b_batch).c_batch_stride(c_batch).precision(precision(precise));
            Spmm::plan_with(a, n, if relu { options.relu() } else { options })
        })?;
        // SAFETY: as promised by the caller; the lengths follow from the sizes.
        unsafe {
            let stream = stream(device, stream_handle)?;
            let b = Slice::from_raw(device, b, plan.input_len())?;
            let c = output(device, c, plan.output_len())?;
            let bias = self.bias.map(|bias| Slice::from_raw(device, bias, a.rows())).transpose()?;
            plan.run_with(&stream, spmm::Operands { a, b, c, bias })
        }
    }
}

#[pymethods]
impl Pattern {
    /// C = A·B for `values` of A, those of `value_batch` matrices.
    fn spmm(&self, py: Python<'_>, values: u64, value_batch: usize, product: Product) -> PyResult<()> {
        py.detach(|| {
            with_type!(product.dtype, T => {
                // SAFETY: the Python files pass addresses of tensors that they hold, of the shapes that they have checked, on the
                // current stream.
                unsafe {
                    let a = self.matrix.with_foreign_values::<T>(value_batch, values)?;
                    product.run(&a, &self.plans)
                }
            })
        })
        .map_err(|error| raise(&error))
    }
}

/// Weights in 16 bits that do not change, in the order that kernels want.
#[pyclass(frozen)]
pub(crate) struct Packed {
    weights: Weights,
    plans: Plans,
}

enum Weights {
    F16(CsrMatrix<f16>),
    Bf16(CsrMatrix<bf16>),
}

#[pymethods]
impl Packed {
    /// Packs a host matrix: offsets and columns of 64 bits, values of 16.
    #[new]
    fn new(
        py: Python<'_>,
        device: &Device,
        shape: [usize; 2],
        dtype: Dtype,
        row_offsets: &[u8],
        columns: &[u8],
        values: &[u8],
    ) -> PyResult<Self> {
        let [row_offsets, columns] = [row_offsets, columns].map(numbers::<i64>);
        let weights = match dtype {
            Dtype::F32 => {
                return Err(input("weights are packed in float16 or bfloat16, but they are float32"));
            }
            Dtype::F16 => pack(py, device, shape, &row_offsets, &columns, values).map(Weights::F16),
            Dtype::Bf16 => pack(py, device, shape, &row_offsets, &columns, values).map(Weights::Bf16),
        }?;
        Ok(Self { weights, plans: Plans::default() })
    }

    /// C = A·B.
    fn spmm(&self, py: Python<'_>, product: Product) -> PyResult<()> {
        let wanted = match self.weights {
            Weights::F16(_) => Dtype::F16,
            Weights::Bf16(_) => Dtype::Bf16,
        };
        if wanted != product.dtype {
            return Err(input(format!("the weights are {wanted:?}, but B is {:?}", product.dtype)));
        }
        // SAFETY: as for `Pattern::spmm`.
        py.detach(|| unsafe {
            match &self.weights {
                Weights::F16(a) => product.run(a, &self.plans),
                Weights::Bf16(a) => product.run(a, &self.plans),
            }
        })
        .map_err(|error| raise(&error))
    }
}

/// The numbers that Python's bytes hold, wherever they begin.
pub(crate) fn numbers<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

fn pack<T: Value>(
    py: Python<'_>,
    device: &Device,
    [rows, cols]: [usize; 2],
    row_offsets: &[i64],
    columns: &[i64],
    values: &[u8],
) -> PyResult<CsrMatrix<T>> {
    let made = py.detach(|| {
        let values = numbers::<T>(values);
        let host = Csr::from_signed(rows, cols, row_offsets, columns, values)?;
        CsrMatrix::prepacked(&device.inner, &host)
    });
    made.map_err(|error: lacuna::Error| raise(&error))
}
