//! Where the nonzeros of a matrix stand.

use crate::error::{FormatError, expect_length, fit_u32};
use std::ops::Range;

/// The positions of the nonzeros of a sparse matrix, in compressed sparse rows.
///
/// The nonzeros of row `i` stand at the positions `row_offsets[i] .. row_offsets[i + 1]`, their columns strictly
/// ascending. Values stand apart ([`Csr`](crate::Csr)): training changes them, and seldom the pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    rows: usize,
    cols: usize,
    row_offsets: Vec<u32>,
    col_indices: Vec<u32>,
}

impl Pattern {
    /// Checks the parts and makes a pattern of them.
    ///
    /// # Errors
    /// - `rows`, `cols` or the number of nonzeros does not fit `u32`;
    /// - `row_offsets` has not `rows + 1` elements, does not start at 0, decreases, or does not end at
    ///   `col_indices.len()`;
    /// - the columns of a row are not below `cols`, not in order, or not distinct.
    pub fn new(
        rows: usize,
        cols: usize,
        row_offsets: Vec<u32>,
        col_indices: Vec<u32>,
    ) -> Result<Self, FormatError> {
        check_offsets(rows, cols, &row_offsets, &col_indices)?;
        let pattern = Self { rows, cols, row_offsets, col_indices };
        // What is wrong with a row is looked for only where something is.
        match (0..rows).find(|&row| !pattern.is_good_row(row)) {
            Some(row) => Err(pattern.fault_of_row(row)),
            None => Ok(pattern),
        }
    }

    /// Like [`Pattern::new`], with the columns of a row in any order.
    ///
    /// # Errors
    /// As [`Pattern::new`], but for the order.
    pub fn from_unsorted(
        rows: usize,
        cols: usize,
        row_offsets: Vec<u32>,
        mut col_indices: Vec<u32>,
    ) -> Result<Self, FormatError> {
        check_offsets(rows, cols, &row_offsets, &col_indices)?;
        for ends in row_offsets.windows(2) {
            let row = &mut col_indices[ends[0] as usize..ends[1] as usize];
            if !row.is_sorted() {
                row.sort_unstable();
            }
        }
        Self::new(rows, cols, row_offsets, col_indices)
    }

    /// The pattern in which each row has these columns, ascending.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub fn of_rows<R: AsRef<[u32]>>(
        cols: usize,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Self, FormatError> {
        let (mut row_offsets, mut col_indices) = (vec![0], Vec::new());
        for row in rows {
            col_indices.extend_from_slice(row.as_ref());
            row_offsets.push(fit_u32("nonzeros", col_indices.len())?);
        }
        Self::new(row_offsets.len() - 1, cols, row_offsets, col_indices)
    }

    /// A pattern from parts that are well formed by construction.
    pub(crate) fn from_parts(rows: usize, cols: usize, row_offsets: Vec<u32>, col_indices: Vec<u32>) -> Self {
        debug_assert!(Self::new(rows, cols, row_offsets.clone(), col_indices.clone()).is_ok());
        Self { rows, cols, row_offsets, col_indices }
    }

    /// Whether a row's columns ascend and are below `cols`. Compilers make vectors of a pass without branches.
    fn is_good_row(&self, row: usize) -> bool {
        let columns = self.row_columns(row);
        let ascend = columns.windows(2).fold(true, |good, pair| good & (pair[0] < pair[1]));
        ascend && columns.last().is_none_or(|&last| (last as usize) < self.cols)
    }

    /// What is wrong with the first wrong column of a row that has one.
    fn fault_of_row(&self, row: usize) -> FormatError {
        let mut previous = None;
        for position in self.row_range(row) {
            let column = self.col_indices[position];
            if column as usize >= self.cols {
                let column = u64::from(column);
                return FormatError::ColumnOutOfRange { row, position, column, cols: self.cols };
            }
            match previous {
                Some(previous) if column == previous => {
                    return FormatError::Duplicate { row, column, position };
                }
                Some(previous) if column < previous => {
                    return FormatError::UnsortedColumns { row, position, previous, column };
                }
                _ => previous = Some(column),
            }
        }
        unreachable!("a row is good, or one of its columns is not")
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Nonzeros of the matrix. An element of the pattern counts, whatever its value.
    pub fn nnz(&self) -> usize {
        self.col_indices.len()
    }

    /// Where each row starts, and after the last one the number of nonzeros: `rows + 1` elements.
    pub fn row_offsets(&self) -> &[u32] {
        &self.row_offsets
    }

    /// The column of each nonzero, row by row: `nnz` elements.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// The positions of the nonzeros of a row.
    ///
    /// # Panics
    /// If `row` is not below [`rows`](Self::rows), as indexing a slice does.
    pub fn row_range(&self, row: usize) -> Range<usize> {
        self.row_offsets[row] as usize..self.row_offsets[row + 1] as usize
    }

    /// The columns of the nonzeros of a row, ascending.
    ///
    /// # Panics
    /// If `row` is not below [`rows`](Self::rows), as indexing a slice does.
    pub fn row_columns(&self, row: usize) -> &[u32] {
        &self.col_indices[self.row_range(row)]
    }

    /// The pattern of these rows alone, in this order; a row may be there more than once.
    ///
    /// # Errors
    /// If the nonzeros, or the rows, do not fit `u32`.
    ///
    /// # Panics
    /// If a row is not below [`rows`](Self::rows), as indexing a slice does.
    pub fn select_rows(&self, rows: impl IntoIterator<Item = usize>) -> Result<Self, FormatError> {
        Self::of_rows(self.cols, rows.into_iter().map(|row| self.row_columns(row)))
    }

    /// The nonzeros of each row, in the order of the rows.
    pub fn row_lengths(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.row_offsets.windows(2).map(|ends| ends[1] - ends[0])
    }

    /// The rows by decreasing length; rows of one length keep their order.
    ///
    /// This is the row swizzle of *Sparse GPU Kernels for Deep Learning* (SC20): blocks that take the rows in
    /// this order start the long ones first and hold rows of like length.
    pub fn rows_by_length(&self) -> Vec<u32> {
        rows_by_length(&self.row_offsets)
    }

    /// The pattern of the transposed matrix.
    pub fn transpose(&self) -> Self {
        self.transpose_with_order().0
    }

    /// The transposed pattern, and for each of its nonzeros the position of that nonzero in `self`.
    ///
    /// So the values of the transposed matrix are `order.iter().map(|&position| values[position as usize])`.
    pub fn transpose_with_order(&self) -> (Self, Vec<u32>) {
        let mut row_offsets = vec![0u32; self.cols + 1];
        for &column in &self.col_indices {
            row_offsets[column as usize + 1] += 1;
        }
        for column in 0..self.cols {
            row_offsets[column + 1] += row_offsets[column];
        }
        let mut next = row_offsets.clone();
        let mut col_indices = vec![0u32; self.nnz()];
        let mut order = vec![0u32; self.nnz()];
        // Rows are taken in ascending order, so each new row comes out sorted.
        for row in 0..self.rows {
            for position in self.row_range(row) {
                let slot = &mut next[self.col_indices[position] as usize];
                col_indices[*slot as usize] = row as u32;
                order[*slot as usize] = position as u32;
                *slot += 1;
            }
        }
        (Self::from_parts(self.cols, self.rows, row_offsets, col_indices), order)
    }
}

/// The rows by decreasing length, as [`Pattern::rows_by_length`], from the row offsets alone.
pub fn rows_by_length(row_offsets: &[u32]) -> Vec<u32> {
    let lengths = || row_offsets.windows(2).map(|ends| ends[1] - ends[0]);
    // By counting: a pass to count, one to put rows in place. Rows of `MOST_COUNTED` and more are one class, and few: they
    // are sorted afterwards.
    let longest = lengths().max().unwrap_or(0).min(MOST_COUNTED);
    let class = |length: u32| (longest - length.min(longest)) as usize;
    let mut next = vec![0_u32; longest as usize + 1];
    lengths().for_each(|length| next[class(length)] += 1);
    let long = next[0] as usize;
    let mut start = 0;
    for next in &mut next {
        start += std::mem::replace(next, start);
    }
    let mut order = vec![0_u32; start as usize];
    for (row, length) in lengths().enumerate() {
        let next = &mut next[class(length)];
        order[*next as usize] = row as u32;
        *next += 1;
    }
    let length = |row: usize| row_offsets[row + 1] - row_offsets[row];
    order[..long].sort_by_key(|&row| std::cmp::Reverse(length(row as usize)));
    order
}

/// The greatest length of rows that has a counter of its own when rows are sorted by length.
const MOST_COUNTED: u32 = 1 << 14;

/// Checks all that can be checked without looking at a column.
fn check_offsets(
    rows: usize,
    cols: usize,
    row_offsets: &[u32],
    col_indices: &[u32],
) -> Result<(), FormatError> {
    fit_u32("rows", rows)?;
    fit_u32("columns", cols)?;
    fit_u32("nonzeros", col_indices.len())?;
    expect_length("row offsets", rows as u128 + 1, row_offsets.len())?;
    if row_offsets[0] != 0 {
        return Err(FormatError::OffsetsStart { got: row_offsets[0] });
    }
    for (row, ends) in row_offsets.windows(2).enumerate() {
        if ends[1] < ends[0] {
            return Err(FormatError::OffsetsDecrease { row, start: ends[0], end: ends[1] });
        }
    }
    match row_offsets[rows] {
        end if end as usize == col_indices.len() => Ok(()),
        end => Err(FormatError::OffsetsEnd { expected: col_indices.len(), got: end }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_longer_than_counters_reach_are_sorted_too() {
        let lengths =
            [3, MOST_COUNTED, 0, 2 * MOST_COUNTED, 3, MOST_COUNTED + 7, MOST_COUNTED - 1, 2 * MOST_COUNTED];
        let ends = lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        let offsets: Vec<u32> = std::iter::once(0).chain(ends).collect();
        assert_eq!(rows_by_length(&offsets), [3, 7, 5, 1, 6, 0, 4, 2]);
        assert_eq!((rows_by_length(&[]), rows_by_length(&[0, 0])), (vec![], vec![0]));
    }
}
