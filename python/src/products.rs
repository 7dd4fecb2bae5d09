//! SpMM: of values that change, and of packed weights.
use half::{bf16, f16};
use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Index, Slice, Spmm, Value, spmm};
use pyo3::prelude::*;

use crate::device::{Device, Dtype, stream, with_type};
use crate::error::{input, raise};
use crate::pattern::{Pattern, PatternOf, output, precision, with_pattern};
use crate::plans::{CallStream, Key, Operation, Plans};
use crate::torch::{Call, direct};

/// A product: sizes, and where operands are. Address, elements from row to row, and elements from matrix to matrix.
pub(crate) struct Product {
    pub(crate) stream: CallStream,
    pub(crate) dtype: Dtype,
    pub(crate) n: usize,
    pub(crate) batch: usize,
    pub(crate) b: (u64, usize, usize),
    pub(crate) c: (u64, usize, usize),
    pub(crate) bias: Option<u64>,
    pub(crate) relu: bool,
    pub(crate) precise: bool,
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
    /// The key of its plan, of those of a stream.
    pub(crate) fn key(&self, stream: usize) -> Key {
        let Self { dtype, n, batch, b, c, relu, precise, .. } = *self;
        let numbers = [n, batch, b.1, b.2, c.1, c.2, relu.into(), precise.into(), 0];
        Key { operation: Operation::Spmm, dtype, stream, numbers: numbers.map(|number| number as u64) }
    }

    fn plan<T: Value, I: Index>(&self, a: &CsrMatrix<T, I>) -> lacuna::Result<Spmm<T, I>> {
        let Self { n, batch, relu, precise, .. } = *self;
        let ((_, b_stride, b_batch), (_, c_stride, c_batch)) = (self.b, self.c);
        let options = spmm::Options::default().batch(batch).b_stride(b_stride).c_stride(c_stride);
        let options = options.b_batch_stride(b_batch).c_batch_stride(c_batch).precision(precision(precise));
        Spmm::plan_with(a, n, if relu { options.relu() } else { options })
    }

    /// # Safety
    /// The addresses are of live tensors of these sizes, which stay until the stream has come to this.
    pub(crate) unsafe fn run<T: Value, I: Index>(
        &self,
        plan: &Spmm<T, I>,
        a: &CsrMatrix<T, I>,
    ) -> lacuna::Result<()> {
        let device = a.device();
        // SAFETY: as promised by the caller; the lengths follow from the sizes.
        unsafe {
            let stream = stream(device, self.stream.0)?;
            let b = Slice::from_raw(device, self.b.0, plan.input_len())?;
            let c = output(device, self.c.0, plan.output_len())?;
            let bias = self.bias.map(|bias| Slice::from_raw(device, bias, a.rows())).transpose()?;
            plan.run_with(&stream, spmm::Operands { a, b, c, bias })
        }
    }

    /// Plans first, where there is no plan yet.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn plan_and_run<T: Value, I: Index>(
        &self,
        a: &CsrMatrix<T, I>,
        plans: &Plans,
    ) -> lacuna::Result<()> {
        let plan = plans.get_or_make(self.key(self.stream.0), self.stream.1, || self.plan(a))?;
        // SAFETY: as promised by the caller.
        unsafe { self.run(&plan, a) }
    }
}

#[pymethods]
impl Pattern {
    /// C = A·B for `values` of A, those of `value_batch` matrices.
    fn spmm(&self, py: Python<'_>, values: u64, value_batch: usize, product: Product) -> PyResult<()> {
        with_pattern!(self, of => of.spmm(py, values, value_batch, &product))
    }

    /// The same for tensors, past PyTorch's dispatcher: see [`direct`].
    fn spmm_direct<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        bias: Option<&Bound<'py, PyAny>>,
        relu: bool,
        precise: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        with_pattern!(self, of => of.spmm_direct(py, [values, b], bias, [relu, precise]))
    }
}

impl<I: Index> PatternOf<I> {
    fn spmm(&self, py: Python<'_>, values: u64, value_batch: usize, product: &Product) -> PyResult<()> {
        let work = || {
            with_type!(product.dtype, T => {
                // SAFETY: the Python files pass addresses of tensors that they hold, of the shapes that they have checked, on the
                // current stream.
                unsafe {
                    let a = self.matrix.with_foreign_values::<T>(value_batch, values)?;
                    product.plan_and_run(&a, &self.plans)
                }
            })
        };
        py.detach(work).map_err(|error| raise(&error))
    }

    fn spmm_direct<'py>(
        &self,
        py: Python<'py>,
        [values, b]: [&Bound<'py, PyAny>; 2],
        bias: Option<&Bound<'py, PyAny>>,
        [relu, precise]: [bool; 2],
    ) -> PyResult<Bound<'py, PyAny>> {
        let tensors = [values, b, bias.unwrap_or(b)];
        direct(py, self.index, &tensors, |call| {
            let (rows, cols) = (self.matrix.rows(), self.matrix.cols());
            let Some((values, value_batch)) = call.values(values, self.nnz_and_stride())? else {
                return Ok(None);
            };
            let Some(made) = call.product(b, bias, [rows, cols], relu, precise)? else {
                return Ok(None);
            };
            let (mut product, shape) = made;
            let has_all = value_batch.is_none_or(|batch| shape.first() == Some(&batch) && shape.len() == 3);
            if product.dtype != values.dtype || !has_all {
                return Ok(None);
            }
            with_type!(product.dtype, T => {
                let Some(plan) = self.plans.get::<Spmm<T, I>>(&product.key(call.stream)) else {
                    return Ok(None);
                };
                let Some((tensor, c)) = call.empty(&shape, product.dtype)? else { return Ok(None) };
                product.c.0 = c;
                let work = || {
                    // SAFETY: `call` has looked at the tensors, which Python holds, and at their shapes.
                    unsafe {
                        let a = self.matrix.with_foreign_values::<T>(value_batch.unwrap_or(1), values.address)?;
                        product.run(&plan, &a)
                    }
                };
                py.detach(work).map_err(|error| raise(&error))?;
                Ok(Some(tensor))
            })
        })
    }
}

impl<'py> Call<'py> {
    /// A product of a matrix of these rows and columns, without the place of its result, and the result's shape; if B and the bias
    /// are such operands.
    fn product(
        &self,
        b: &Bound<'py, PyAny>,
        bias: Option<&Bound<'py, PyAny>>,
        [rows, cols]: [usize; 2],
        relu: bool,
        precise: bool,
    ) -> PyResult<Option<(Product, Vec<usize>)>> {
        let Some(b) = self.operand(b)? else { return Ok(None) };
        let (Some(matrices), Some(&n)) = (b.matrices(), b.shape().last()) else { return Ok(None) };
        let Some(b_rows) = b.rows(matrices, cols, n) else { return Ok(None) };
        let bias = match bias {
            None => None,
            Some(bias) => match self.operand(bias)? {
                Some(bias)
                    if bias.dtype == b.dtype
                        && bias.shape() == [rows]
                        && (rows <= 1 || bias.strides() == [1]) =>
                {
                    Some(bias.address)
                }
                _ => return Ok(None),
            },
        };
        let shape = matrices.into_iter().chain([rows, n]).collect();
        let (stream, batch) = (CallStream(self.stream, false), matrices.unwrap_or(1));
        let c = (0, n, rows * n);
        let product = Product { stream, dtype: b.dtype, n, batch, b: b_rows, c, bias, relu, precise };
        Ok(Some((product, shape)))
    }
}

/// Weights in 16 bits that do not change, in the order that kernels want.
#[pyclass(frozen)]
pub(crate) struct Packed {
    weights: Weights,
    plans: Plans,
    /// The number of its GPU; none on a simulator.
    index: Option<i32>,
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
        Ok(Self { weights, plans: Plans::default(), index: device.index })
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
                Weights::F16(a) => product.plan_and_run(a, &self.plans),
                Weights::Bf16(a) => product.plan_and_run(a, &self.plans),
            }
        })
        .map_err(|error| raise(&error))
    }

    /// The same for tensors, past PyTorch's dispatcher: see [`direct`].
    fn spmm_direct<'py>(
        &self,
        py: Python<'py>,
        b: &Bound<'py, PyAny>,
        bias: Option<&Bound<'py, PyAny>>,
        relu: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (rows, cols) = match &self.weights {
            Weights::F16(a) => (a.rows(), a.cols()),
            Weights::Bf16(a) => (a.rows(), a.cols()),
        };
        direct(py, self.index, &[b, bias.unwrap_or(b)], |call| {
            let Some(product) = call.product(b, bias, [rows, cols], relu, false)? else {
                return Ok(None);
            };
            match (&self.weights, product.0.dtype) {
                (Weights::F16(a), Dtype::F16) => self.run_direct(call, a, product),
                (Weights::Bf16(a), Dtype::Bf16) => self.run_direct(call, a, product),
                _ => Ok(None),
            }
        })
    }
}

impl Packed {
    fn run_direct<'py, T: Value>(
        &self,
        call: &Call<'py>,
        a: &CsrMatrix<T>,
        (mut product, shape): (Product, Vec<usize>),
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(plan) = self.plans.get::<Spmm<T>>(&product.key(call.stream)) else { return Ok(None) };
        let Some((tensor, c)) = call.empty(&shape, product.dtype)? else { return Ok(None) };
        product.c.0 = c;
        // SAFETY: `call` has looked at the tensors, which Python holds, and at their shapes.
        call.py.detach(|| unsafe { product.run(&plan, a) }).map_err(|error| raise(&error))?;
        Ok(Some(tensor))
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
