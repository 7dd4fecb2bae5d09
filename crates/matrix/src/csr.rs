//! Compressed sparse rows: a pattern and a value for each of its nonzeros.

use crate::error::{FormatError, expect_length, fit_u32, try_filled};
use crate::{Coo, Pattern};
use std::sync::Arc;

/// A sparse matrix in compressed sparse rows.
///
/// The pattern is shared, so that matrices which differ only in their values hold it once.
#[derive(Debug, Clone, PartialEq)]
pub struct Csr<V> {
    pattern: Arc<Pattern>,
    values: Vec<V>,
}

impl<V> Csr<V> {
    /// Checks the parts and makes a matrix of them.
    ///
    /// # Errors
    /// As [`Pattern::new`], and if `values` has not one element a nonzero.
    pub fn new(
        rows: usize,
        cols: usize,
        row_offsets: Vec<u32>,
        col_indices: Vec<u32>,
        values: Vec<V>,
    ) -> Result<Self, FormatError> {
        Self::with_values(Pattern::new(rows, cols, row_offsets, col_indices)?, values)
    }

    /// Like [`Csr::new`], from the signed indices that other programs use.
    ///
    /// # Errors
    /// As [`Csr::new`], and if an index is negative or does not fit `u32`.
    pub fn from_signed(
        rows: usize,
        cols: usize,
        row_offsets: &[i64],
        col_indices: &[i64],
        values: Vec<V>,
    ) -> Result<Self, FormatError> {
        let row_offsets =
            unsigned("row offsets", row_offsets, |_, got| FormatError::TooLarge { what: "nonzeros", got })?;
        let col_indices = unsigned("column indices", col_indices, |position, column| {
            // The row is the last one that starts at or before the position.
            let row = row_offsets.partition_point(|&start| start as usize <= position).saturating_sub(1);
            FormatError::ColumnOutOfRange { row, position, column, cols }
        })?;
        Self::new(rows, cols, row_offsets, col_indices, values)
    }

    /// A matrix of this pattern and these values, one a nonzero.
    ///
    /// # Errors
    /// If `values` has not `pattern.nnz()` elements.
    pub fn with_values(pattern: impl Into<Arc<Pattern>>, values: Vec<V>) -> Result<Self, FormatError> {
        let pattern = pattern.into();
        expect_length("values", pattern.nnz() as u128, values.len())?;
        Ok(Self { pattern, values })
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.pattern.rows()
    }

    /// Columns of the matrix.
    pub fn cols(&self) -> usize {
        self.pattern.cols()
    }

    /// Nonzeros of the matrix. An element of the pattern counts, whatever its value.
    pub fn nnz(&self) -> usize {
        self.pattern.nnz()
    }

    /// The positions of the nonzeros. Clone the `Arc` to share them.
    pub fn pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// Where each row starts, and after the last one the number of nonzeros: `rows + 1` elements.
    pub fn row_offsets(&self) -> &[u32] {
        self.pattern.row_offsets()
    }

    /// The column of each nonzero, row by row: `nnz` elements.
    pub fn col_indices(&self) -> &[u32] {
        self.pattern.col_indices()
    }

    /// The value of each nonzero, row by row: `nnz` elements.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// The values, to be changed in place.
    pub fn values_mut(&mut self) -> &mut [V] {
        &mut self.values
    }

    /// The nonzeros of each row, in the order of the rows.
    pub fn row_lengths(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.pattern.row_lengths()
    }

    /// The columns and values of a row, columns ascending.
    ///
    /// # Panics
    /// If `row` is not below [`rows`](Self::rows), as indexing a slice does.
    pub fn row(&self, row: usize) -> (&[u32], &[V]) {
        let range = self.pattern.row_range(row);
        (&self.col_indices()[range.clone()], &self.values[range])
    }
}

impl<V: Copy> Csr<V> {
    /// The matrix of the same pattern, which is shared, with each value converted: `a.map_values(f16::from_f32)`.
    pub fn map_values<U>(&self, convert: impl FnMut(V) -> U) -> Csr<U> {
        Csr { pattern: self.pattern.clone(), values: self.values.iter().copied().map(convert).collect() }
    }

    /// The matrix of these rows alone, as [`Pattern::select_rows`].
    ///
    /// # Errors
    /// If the nonzeros, or the rows, do not fit `u32`.
    ///
    /// # Panics
    /// If a row is not below [`rows`](Self::rows), as indexing a slice does.
    pub fn select_rows(&self, rows: impl IntoIterator<Item = usize> + Clone) -> Result<Self, FormatError> {
        let pattern = self.pattern.select_rows(rows.clone())?;
        let values = rows.into_iter().flat_map(|row| self.row(row).1).copied().collect();
        Self::with_values(pattern, values)
    }

    /// The transposed matrix.
    pub fn transpose(&self) -> Self {
        let (pattern, order) = self.pattern.transpose_with_order();
        let values = order.iter().map(|&position| self.values[position as usize]).collect();
        Self { pattern: Arc::new(pattern), values }
    }

    /// The same elements with a row index each, in the order of the rows.
    pub fn to_coo(&self) -> Coo<V> {
        let row_indices = (0..self.rows())
            .flat_map(|row| std::iter::repeat_n(row as u32, self.pattern.row_range(row).len()))
            .collect();
        let (cols, values) = (self.col_indices().to_vec(), self.values.clone());
        Coo::from_parts(self.rows(), self.cols(), row_indices, cols, values)
    }
}

impl<V: Copy + Default> Csr<V> {
    /// The whole matrix, row-major: `rows × cols` elements, `V::default()` where there is no nonzero.
    ///
    /// # Errors
    /// If there is no memory for so many elements.
    pub fn to_dense(&self) -> Result<Vec<V>, FormatError> {
        let mut dense = try_filled(self.rows() as u128 * self.cols() as u128, V::default())?;
        for row in 0..self.rows() {
            let (columns, values) = self.row(row);
            for (&column, &value) in columns.iter().zip(values) {
                dense[row * self.cols() + column as usize] = value;
            }
        }
        Ok(dense)
    }
}

impl<V: Copy + Default + PartialEq> Csr<V> {
    /// The elements of a row-major `rows × cols` matrix that differ from `V::default()`. NaN does.
    ///
    /// # Errors
    /// If `dense` has not `rows × cols` elements, or if rows, columns or nonzeros do not fit `u32`.
    pub fn from_dense(rows: usize, cols: usize, dense: &[V]) -> Result<Self, FormatError> {
        fit_u32("rows", rows)?;
        fit_u32("columns", cols)?;
        expect_length("dense matrix", rows as u128 * cols as u128, dense.len())?;
        let mut row_offsets = try_filled(rows as u128 + 1, 0u32)?;
        let (mut col_indices, mut values) = (Vec::new(), Vec::new());
        for row in 0..rows {
            for (column, &value) in dense[row * cols..(row + 1) * cols].iter().enumerate() {
                if value != V::default() {
                    col_indices.push(column as u32);
                    values.push(value);
                }
            }
            row_offsets[row + 1] = fit_u32("nonzeros", values.len())?;
        }
        Self::with_values(Pattern::from_parts(rows, cols, row_offsets, col_indices), values)
    }
}

/// Signed indices as `u32`; `too_large` makes the error for one that does not fit.
fn unsigned(
    what: &'static str,
    signed: &[i64],
    too_large: impl Fn(usize, u64) -> FormatError,
) -> Result<Vec<u32>, FormatError> {
    let convert = |(position, &got): (usize, &i64)| match u64::try_from(got) {
        Err(_) => Err(FormatError::Negative { what, position, got }),
        Ok(index) => u32::try_from(index).map_err(|_| too_large(position, index)),
    };
    signed.iter().enumerate().map(convert).collect()
}
