//! Where nonzeros are.
use std::sync::{Arc, OnceLock};

use candle_core::{D, Layout, Result, Tensor, bail};
use lacuna::CsrMatrix;
use lacuna::matrix::{self, Csr};

use crate::frame::wrap;
use crate::plans::Plans;
use crate::{Backend, Element};

/// Where the nonzeros of a sparse matrix (rows × columns) are, on one device. Its values are a tensor, so that they can be trained. Clones
/// are the same pattern.
///
/// *Tensors of values* have [`values_len`](Self::values_len) elements: one for each nonzero, row by row, and then some to spare, which
/// kernels may read and whose contents do not matter. [`values`](Self::values) and [`with_room`](Self::with_room) make such tensors,
/// and [`without_room`](Self::without_room) is the part that counts. A batch of them is (batch, `values_len`). Types are `f32`, `f16`
/// and `bf16`; all operands of a call have one type.
///
/// What operations work out for a pattern (plans, the transposed pattern) stays with it; the first call of each kind may wait for
/// the device, and later ones do not.
#[derive(Clone, Debug)]
pub struct Pattern {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    backend: Backend,
    /// A batch of none: the pattern alone.
    matrix: CsrMatrix<f32>,
    plans: Plans,
    transposed: OnceLock<Pattern>,
}

impl Pattern {
    /// Puts a pattern on a device.
    ///
    /// # Errors
    /// Above 2³² − 4097 nonzeros; where there is no memory; what the driver says.
    pub fn new(backend: &Backend, pattern: impl Into<Arc<matrix::Pattern>>) -> Result<Self> {
        let pattern = pattern.into();
        let zeros = vec![0.0_f32; pattern.nnz()];
        let host = Csr::with_values(pattern, zeros).map_err(candle_core::Error::wrap)?;
        let matrix = CsrMatrix::new(backend.lacuna(), &host).map_err(wrap)?;
        Self::of(backend, matrix.with_zeros(0).map_err(wrap)?)
    }

    fn of(backend: &Backend, matrix: CsrMatrix<f32>) -> Result<Self> {
        let (plans, transposed) = (Plans::default(), OnceLock::new());
        Ok(Self { inner: Arc::new(Inner { backend: backend.clone(), matrix, plans, transposed }) })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.inner.matrix.rows()
    }
    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.inner.matrix.cols()
    }
    /// The number of nonzeros.
    pub fn nnz(&self) -> usize {
        self.inner.matrix.nnz()
    }
    /// Elements of a tensor of values: the nonzeros, and 16 to 23 to spare.
    pub fn values_len(&self) -> usize {
        self.inner.matrix.values_stride()
    }
    /// Where it is.
    pub fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    /// A tensor of these values, one for each nonzero, row by row; what is to spare is zeros.
    ///
    /// # Errors
    /// Where there are not as many values as nonzeros; where there is no memory.
    pub fn values<T: Element>(&self, values: &[T]) -> Result<Tensor> {
        if values.len() != self.nnz() {
            bail!("there are {} values, but {} are expected, one for each nonzero", values.len(), self.nnz())
        }
        let mut values = values.to_vec();
        values.resize(self.values_len(), T::from_f32(0.0));
        Tensor::from_vec(values, self.values_len(), self.backend().device())
    }

    /// A copy of values, (nnz) or (batch, nnz), with zeros to spare after them. Gradients flow through it.
    ///
    /// # Errors
    /// For other shapes.
    pub fn with_room(&self, values: &Tensor) -> Result<Tensor> {
        if !matches!(values.rank(), 1 | 2) || values.dim(D::Minus1)? != self.nnz() {
            bail!(
                "values have shape {:?}, but ({nnz}) or (batch, {nnz}) is expected: one for each nonzero",
                values.dims(),
                nnz = self.nnz()
            )
        }
        values.pad_with_zeros(D::Minus1, 0, self.values_len() - self.nnz())?.contiguous()
    }

    /// The values alone, (nnz) or (batch, nnz), of a tensor of values: a view.
    ///
    /// # Errors
    /// For other shapes.
    pub fn without_room(&self, values: &Tensor) -> Result<Tensor> {
        values.narrow(D::Minus1, 0, self.nnz())
    }

    /// The transposed pattern: the first call works it out on the device, and waits.
    ///
    /// # Errors
    /// Where there is no memory; what the driver says.
    pub fn transposed(&self) -> Result<Self> {
        if let Some(known) = self.inner.transposed.get() {
            return Ok(known.clone());
        }
        let transposed = self.inner.matrix.transposed(&self.backend().stream()?).map_err(wrap)?;
        let made = Self::of(self.backend(), transposed)?;
        Ok(self.inner.transposed.get_or_init(|| made).clone())
    }

    /// A batch of none of this pattern.
    pub(crate) fn matrix(&self) -> &CsrMatrix<f32> {
        &self.inner.matrix
    }
    pub(crate) fn plans(&self) -> &Plans {
        &self.inner.plans
    }

    /// How many matrices a tensor of values is of, if it is of a batch; once it is checked.
    pub(crate) fn batch_of(&self, operation: &str, layout: &Layout) -> Result<Option<usize>> {
        let (batch, len) = match *layout.dims() {
            [len] => (None, len),
            [batch, len] => (Some(batch), len),
            _ => (None, usize::MAX),
        };
        if len != self.values_len() {
            bail!(
                "{operation}: values have shape {:?}, but ({len}) or (batch, {len}) is expected: {} nonzeros and room to spare; \
                 Pattern::with_room makes it",
                layout.dims(),
                self.nnz(),
                len = self.values_len()
            )
        }
        if !layout.is_contiguous() {
            bail!(
                "{operation}: values have strides {:?}, but no gaps are expected; call contiguous()",
                layout.stride()
            )
        }
        Ok(batch)
    }

    /// The shape of a tensor of values, or of a batch of them.
    pub(crate) fn values_shape(&self, batch: Option<usize>) -> Vec<usize> {
        batch.into_iter().chain([self.values_len()]).collect()
    }
}
