//! What pruned tensors look like.
use lacuna_matrix::{FormatError, PatternStats};

use super::PruneError;
use crate::weights::{Tensor, matrix_size};

/// What SC 2020, Fig. 2, tells of a tensor as a matrix: sparsity, mean row length and the coefficient of variation of row lengths. The
/// matrix has the first dimension's rows, and all other dimensions as columns; a tensor without dimensions is one number.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerStats {
    /// The tensor's name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The numbers.
    pub stats: PatternStats,
}

impl LayerStats {
    /// Measures a tensor.
    ///
    /// # Errors
    /// [`PruneError::Format`] where rows, columns or nonzeros do not fit 32 bits.
    pub fn of(name: &str, tensor: &Tensor) -> Result<Self, PruneError> {
        let failed = |what, got: usize| {
            let source = FormatError::TooLarge { what, got: got as u64 };
            PruneError::Format { tensor: name.to_owned(), source }
        };
        let fit = |what, got| u32::try_from(got).map_err(|_| failed(what, got));
        // Columns that cannot be counted are possible where there are no rows.
        let size = if tensor.shape().is_empty() { Some((1, 1)) } else { matrix_size(tensor.shape()) };
        let (rows, cols) = size.ok_or_else(|| failed("columns", usize::MAX))?;
        fit("rows", rows)?;
        fit("columns", cols)?;
        let (mut row_offsets, mut nnz) = (vec![0], 0);
        for row in 0..rows {
            let values = &tensor.values()[row * cols..(row + 1) * cols];
            nnz += values.iter().filter(|&&value| value != 0.0).count();
            row_offsets.push(fit("nonzeros", nnz)?);
        }
        let stats = PatternStats::of_rows(cols, &row_offsets);
        Ok(Self { name: name.to_owned(), shape: tensor.shape().to_vec(), stats })
    }
}
