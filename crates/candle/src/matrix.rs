//! Sparse matrices whose values stay.
use std::any::Any;
use std::sync::{Arc, OnceLock};

use candle_core::{CustomOp1, DType, Layout, Result, Shape, Tensor, bail};
use lacuna::matrix::Csr;
use lacuna::spmm::{Operands, Options};
use lacuna::{CsrMatrix, Slice, SliceMut, Spmm, Stream};

use crate::dense::Dense;
use crate::frame::{Contents, Operation, forward, wrap};
use crate::plans::Plans;
use crate::{Backend, Element};

/// A sparse matrix A (M×K) whose values do not change, such as weights for inference; they may be *prepacked*, in the order that
/// kernels on tensor cores want. It is a [`CustomOp1`]: `b.apply_op1(a.clone())` is [`a.matmul(&b)`](Self::matmul). Clones are the
/// same matrix.
///
/// ```
/// use candle_core::{Device, Tensor};
/// use lacuna::matrix::Csr;
/// use lacuna_candle::{Backend, SparseMatrix};
///
/// # fn main() -> candle_core::Result<()> {
/// let host = Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 2], vec![1.0_f32, 2.0, 3.0]).expect("a matrix");
/// let a = SparseMatrix::new(&Backend::simulator(), &host)?;
/// let b = Tensor::new(&[[1.0_f32], [2.0], [3.0]], &Device::Cpu)?;
/// assert_eq!(a.matmul(&b)?.to_vec2::<f32>()?, [[7.0], [9.0]]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SparseMatrix<T: Element> {
    inner: Arc<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T: Element> {
    backend: Backend,
    matrix: CsrMatrix<T>,
    plans: Plans,
    transposed: OnceLock<SparseMatrix<T>>,
}

impl<T: Element> SparseMatrix<T> {
    /// Puts a matrix on a device.
    ///
    /// # Errors
    /// Above 2³² − 4097 nonzeros; where there is no memory; what the driver says.
    pub fn new(backend: &Backend, host: &Csr<T>) -> Result<Self> {
        Ok(Self::of(backend, CsrMatrix::new(backend.lacuna(), host).map_err(wrap)?))
    }

    /// As [`new`](Self::new), with the values packed for tensor cores, too, where there are kernels for it: see
    /// [`CsrMatrix::prepacked`].
    ///
    /// # Errors
    /// As for `new`.
    pub fn prepacked(backend: &Backend, host: &Csr<T>) -> Result<Self> {
        Ok(Self::of(backend, CsrMatrix::prepacked(backend.lacuna(), host).map_err(wrap)?))
    }

    fn of(backend: &Backend, matrix: CsrMatrix<T>) -> Self {
        let (plans, transposed) = (Plans::default(), OnceLock::new());
        Self { inner: Arc::new(Inner { backend: backend.clone(), matrix, plans, transposed }) }
    }

    /// The matrix as Lacuna has it.
    pub fn csr(&self) -> &CsrMatrix<T> {
        &self.inner.matrix
    }

    /// C = A·B. B is (K, N) or (batch, K, N), of the matrix's type, its rows without gaps within; C is (M, N) or (batch, M, N). Gradients
    /// flow to B: the first of them works out Aᵀ on the device, and waits.
    ///
    /// # Errors
    /// For tensors of other shapes, types or devices, or with gaps; from 2³⁰ columns on; what the driver says.
    pub fn matmul(&self, b: &Tensor) -> Result<Tensor> {
        b.apply_op1(self.clone())
    }

    fn transposed(&self) -> Result<Self> {
        if let Some(known) = self.inner.transposed.get() {
            return Ok(known.clone());
        }
        let stream = self.inner.backend.stream()?;
        let transposed = self.inner.matrix.transposed(&stream).map_err(wrap)?;
        // Tensors may be on another stream of the GPU.
        stream.synchronize().map_err(wrap)?;
        let made = Self::of(&self.inner.backend, transposed);
        Ok(self.inner.transposed.get_or_init(|| made).clone())
    }
}

impl<T: Element> Operation<1> for SparseMatrix<T> {
    const NAME: &'static str = "lacuna-matmul";

    fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    fn result(&self, dtype: DType, [b]: [&Layout; 1]) -> Result<(Shape, Contents)> {
        if dtype != T::DTYPE {
            bail!("{}: the matrix is of {:?}, but B is of {dtype:?}; call to_dtype()", Self::NAME, T::DTYPE)
        }
        let b = Dense::of(Self::NAME, "B", b)?;
        b.expect(Self::NAME, "B", [self.csr().cols(), b.cols])?;
        let dims: Vec<usize> = b.batch.into_iter().chain([self.csr().rows(), b.cols]).collect();
        Ok((dims.into(), Contents::Any))
    }

    unsafe fn launch<U: Element>(
        &self,
        stream: &Stream,
        [(b, layout)]: [(u64, &Layout); 1],
        c: u64,
    ) -> lacuna::Result<()> {
        let matrix: &dyn Any = &self.inner.matrix;
        let a: &CsrMatrix<U> = matrix.downcast_ref().expect("the types were checked");
        let lies = Dense::of(Self::NAME, "B", layout).expect("it was checked");
        let numbers = [lies.cols, lies.count(), lies.stride, lies.batch_stride];
        let plan = self.inner.plans.get_or_make::<U, _>(Self::NAME, stream, &numbers, || {
            let options = Options::default().batch(lies.count());
            Spmm::plan_with(a, lies.cols, options.b_stride(lies.stride).b_batch_stride(lies.batch_stride))
        })?;
        // SAFETY: as promised by the caller.
        let (b, c) = unsafe {
            let b = Slice::from_raw(stream.device(), b, plan.input_len())?;
            (b, SliceMut::from_raw(stream.device(), c, plan.output_len())?)
        };
        plan.run_with(stream, Operands { a, b, c, bias: None })
    }
}

impl<T: Element> CustomOp1 for SparseMatrix<T> {
    forward!(b layout);

    fn bwd(&self, _: &Tensor, _: &Tensor, c: &Tensor) -> Result<Option<Tensor>> {
        self.transposed()?.matmul(&c.contiguous()?).map(Some)
    }
}
