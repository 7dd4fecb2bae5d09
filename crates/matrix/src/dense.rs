//! A dense matrix, row-major.

use crate::error::{FormatError, expect_length};

/// A dense matrix: element (i, j) stands at `values[i * cols + j]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense<V> {
    rows: usize,
    cols: usize,
    values: Vec<V>,
}

impl<V> Dense<V> {
    /// A matrix of these elements, row-major.
    ///
    /// # Errors
    /// If `values` has not `rows × cols` elements.
    pub fn new(rows: usize, cols: usize, values: Vec<V>) -> Result<Self, FormatError> {
        expect_length("dense matrix", rows as u128 * cols as u128, values.len())?;
        Ok(Self { rows, cols, values })
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The elements, row-major: `rows × cols` of them.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// The elements, without a copy.
    pub fn into_values(self) -> Vec<V> {
        self.values
    }
}
