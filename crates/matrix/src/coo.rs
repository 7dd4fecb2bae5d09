//! Coordinate form: each element with its row and column, in any order.

use crate::error::{FormatError, expect_length, fit_u32, try_filled};
use crate::{Csr, Pattern};
use std::ops::Add;

/// A sparse matrix as a list of elements in any order; a place may be given more than once.
///
/// It is the form in which files and programs give matrices. [`Coo::to_csr`] makes it fit for computation.
#[derive(Debug, Clone, PartialEq)]
pub struct Coo<V> {
    rows: usize,
    cols: usize,
    row_indices: Vec<u32>,
    col_indices: Vec<u32>,
    values: Vec<V>,
}

impl<V> Coo<V> {
    /// Checks the parts and makes a matrix of them: element `e` stands in row `row_indices[e]` and column
    /// `col_indices[e]`.
    ///
    /// # Errors
    /// - `rows`, `cols` or the number of elements does not fit `u32`;
    /// - the three arrays differ in length;
    /// - an index is not below `rows` or `cols`.
    pub fn new(
        rows: usize,
        cols: usize,
        row_indices: Vec<u32>,
        col_indices: Vec<u32>,
        values: Vec<V>,
    ) -> Result<Self, FormatError> {
        fit_u32("rows", rows)?;
        fit_u32("columns", cols)?;
        fit_u32("nonzeros", row_indices.len())?;
        expect_length("column indices", row_indices.len() as u128, col_indices.len())?;
        expect_length("values", row_indices.len() as u128, values.len())?;
        for (position, (&row, &column)) in row_indices.iter().zip(&col_indices).enumerate() {
            if row as usize >= rows {
                return Err(FormatError::RowOutOfRange { position, row: row.into(), rows });
            }
            if column as usize >= cols {
                let (row, column) = (row as usize, column.into());
                return Err(FormatError::ColumnOutOfRange { row, position, column, cols });
            }
        }
        Ok(Self { rows, cols, row_indices, col_indices, values })
    }

    /// A matrix from parts that are well formed by construction.
    pub(crate) fn from_parts(
        rows: usize,
        cols: usize,
        row_indices: Vec<u32>,
        col_indices: Vec<u32>,
        values: Vec<V>,
    ) -> Self {
        debug_assert!(row_indices.len() == col_indices.len() && col_indices.len() == values.len());
        Self { rows, cols, row_indices, col_indices, values }
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Elements of the list; a place given twice counts twice.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// The row of each element.
    pub fn row_indices(&self) -> &[u32] {
        &self.row_indices
    }

    /// The column of each element.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// The value of each element.
    pub fn values(&self) -> &[V] {
        &self.values
    }
}

impl<V: Copy> Coo<V> {
    /// The matrix in compressed sparse rows, sorted.
    ///
    /// # Errors
    /// If a place is given twice, or if there is no memory for an offset a row.
    pub fn to_csr(&self) -> Result<Csr<V>, FormatError> {
        let (row_offsets, order) = self.sorted()?;
        let col_indices = order.iter().map(|&e| self.col_indices[e as usize]).collect();
        let values = order.iter().map(|&e| self.values[e as usize]).collect();
        Csr::new(self.rows, self.cols, row_offsets, col_indices, values)
    }

    /// Like [`Coo::to_csr`], with the values of a place that is given more than once summed in the order of
    /// the list.
    ///
    /// # Errors
    /// If there is no memory for an offset a row.
    pub fn to_csr_summing(&self) -> Result<Csr<V>, FormatError>
    where
        V: Add<Output = V>,
    {
        let (mut row_offsets, order) = self.sorted()?;
        let mut col_indices: Vec<u32> = Vec::with_capacity(order.len());
        let mut values: Vec<V> = Vec::with_capacity(order.len());
        let mut start = 0;
        for row in 0..self.rows {
            let end = row_offsets[row + 1] as usize;
            let first = values.len();
            for &e in &order[start..end] {
                let (column, value) = (self.col_indices[e as usize], self.values[e as usize]);
                match values.last_mut() {
                    Some(sum) if col_indices.len() > first && col_indices.last() == Some(&column) => {
                        *sum = *sum + value;
                    }
                    _ => {
                        col_indices.push(column);
                        values.push(value);
                    }
                }
            }
            start = end;
            row_offsets[row + 1] = values.len() as u32;
        }
        Csr::with_values(Pattern::from_parts(self.rows, self.cols, row_offsets, col_indices), values)
    }

    /// The row offsets, and the elements by row and column; those of one place keep their order.
    fn sorted(&self) -> Result<(Vec<u32>, Vec<u32>), FormatError> {
        let mut row_offsets = try_filled(self.rows as u128 + 1, 0u32)?;
        for &row in &self.row_indices {
            row_offsets[row as usize + 1] += 1;
        }
        for row in 0..self.rows {
            row_offsets[row + 1] += row_offsets[row];
        }
        // A counting sort by row, then a sort of each row by column.
        let mut next = row_offsets.clone();
        let mut order = vec![0u32; self.nnz()];
        for (e, &row) in self.row_indices.iter().enumerate() {
            order[next[row as usize] as usize] = e as u32;
            next[row as usize] += 1;
        }
        for ends in row_offsets.windows(2) {
            order[ends[0] as usize..ends[1] as usize].sort_by_key(|&e| self.col_indices[e as usize]);
        }
        Ok((row_offsets, order))
    }
}
