//! A sparse tensor.
use lacuna_matrix::{Csr, FormatError, PatternStats};
use thiserror::Error;

use super::Tensor;

/// Rows that a tensor without elements may have.
const FREE_ROWS: usize = 1 << 22;
/// Elements that a dense tensor may have whatever its nonzeros; see [`SparseTensor::to_dense`].
const FREE_ELEMENTS: usize = 1 << 24;
/// Beyond these, elements that it may have for each of its nonzeros.
const ELEMENTS_A_NONZERO: usize = 1 << 12;

/// Parts that are no sparse tensor, or a sparse tensor that cannot be made dense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SparseError {
    /// The shape is not that of the matrix.
    #[error(
        "a sparse tensor of shape {shape:?} and a matrix of {rows} × {cols}: expected the first dimension's rows, and all \
         others as columns"
    )]
    Shape {
        /// The tensor's shape.
        shape: Vec<usize>,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
    },
    /// The matrix cannot be made.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Almost all of the tensor is zero, so that a small file could ask for all memory.
    #[error(
        "{nnz} nonzeros in a tensor of shape {shape:?}: too few to be made dense; use it as it is, sparse"
    )]
    MostlyEmpty {
        /// The tensor's shape.
        shape: Vec<usize>,
        /// Its nonzeros.
        nnz: usize,
    },
    /// A dense tensor has no rows, or far too many without elements.
    #[error(
        "a tensor of shape {shape:?} is no matrix: expected one dimension or more, and elements in its rows"
    )]
    NoMatrix {
        /// The tensor's shape.
        shape: Vec<usize>,
    },
}

/// A sparse tensor: a matrix with the first dimension's rows, and all other dimensions as columns, the last one's elements side by
/// side. The filters of a convolution, [outputs, inputs, height, width], so have an output a row.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseTensor {
    shape: Vec<usize>,
    matrix: Csr<f32>,
}

/// Rows and columns of a tensor as a matrix. None without dimensions, where the columns cannot be counted, and where very many rows are
/// empty: each takes an offset, and nothing in a file stands for them.
pub(crate) fn matrix_size(shape: &[usize]) -> Option<(usize, usize)> {
    let (&rows, others) = shape.split_first()?;
    let cols = others.iter().try_fold(1, |product: usize, &extent| product.checked_mul(extent))?;
    (cols > 0 || rows <= FREE_ROWS).then_some((rows, cols))
}

/// Whether a sparse tensor may be made dense: memory grows with its nonzeros.
pub(crate) fn fits_dense(elements: usize, nnz: usize) -> bool {
    elements <= FREE_ELEMENTS || elements / ELEMENTS_A_NONZERO <= nnz
}

impl SparseTensor {
    /// A tensor of this shape and matrix.
    ///
    /// # Errors
    /// [`SparseError::Shape`] where the matrix has another size.
    pub fn new(shape: Vec<usize>, matrix: Csr<f32>) -> Result<Self, SparseError> {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        if matrix_size(&shape) != Some((rows, cols)) {
            return Err(SparseError::Shape { shape, rows, cols });
        }
        Ok(Self { shape, matrix })
    }

    /// The values of a dense tensor that are not zero. NaN is not.
    ///
    /// # Errors
    /// [`SparseError::NoMatrix`], and [`SparseError::Format`] where rows, columns or nonzeros do not fit 32 bits.
    pub fn from_dense(tensor: &Tensor) -> Result<Self, SparseError> {
        let (rows, cols) = matrix_size(tensor.shape())
            .ok_or_else(|| SparseError::NoMatrix { shape: tensor.shape().to_vec() })?;
        Ok(Self { shape: tensor.shape().to_vec(), matrix: Csr::from_dense(rows, cols, tensor.values())? })
    }

    /// The dense tensor.
    ///
    /// # Errors
    /// [`SparseError::MostlyEmpty`] where it has more than 2²⁴ elements, and more than 4,096 for each nonzero; [`SparseError::Format`]
    /// where there is no memory.
    pub fn to_dense(&self) -> Result<Tensor, SparseError> {
        let (elements, nnz) = (self.matrix.rows().saturating_mul(self.matrix.cols()), self.matrix.nnz());
        if !fits_dense(elements, nnz) {
            return Err(SparseError::MostlyEmpty { shape: self.shape.clone(), nnz });
        }
        Ok(Tensor::from_parts(self.shape.clone(), self.matrix.to_dense()?))
    }

    /// Its shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its matrix.
    pub fn matrix(&self) -> &Csr<f32> {
        &self.matrix
    }

    /// What SC 2020, Fig. 2, tells of its matrix.
    pub fn stats(&self) -> PatternStats {
        self.matrix.pattern().stats()
    }
}
