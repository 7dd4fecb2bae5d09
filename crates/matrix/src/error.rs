//! What can be wrong with the parts of a matrix.

use thiserror::Error;

/// The parts given to a constructor do not make up a matrix.
///
/// Rows, columns and positions count from 0. A position is an index into the arrays of nonzeros.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Rows, columns or nonzeros do not fit 32 bits.
    #[error("{what}: expected at most {max}, got {got}; the kernels index with 32 bits, so split the matrix", max = u32::MAX)]
    TooLarge {
        /// What is too large: `rows`, `columns` or `nonzeros`.
        what: &'static str,
        /// How many there are.
        got: u64,
    },
    /// The memory for a conversion is not to be had.
    #[error(
        "no memory for {elements} elements of {bytes} bytes each; use a smaller matrix or a sparse format"
    )]
    OutOfMemory {
        /// Elements asked for.
        elements: u128,
        /// Bytes of one element.
        bytes: usize,
    },
    /// An array has the wrong length.
    #[error("{what}: expected {expected} elements, got {got}")]
    Length {
        /// Which array.
        what: &'static str,
        /// The length it must have.
        expected: u128,
        /// The length it has.
        got: usize,
    },
    /// The first row offset is not 0.
    #[error("row offsets: expected 0 at the start, got {got}")]
    OffsetsStart {
        /// The first offset.
        got: u32,
    },
    /// A row ends before it starts.
    #[error("row offsets: expected row {row} to end at {start} or later, where it starts; got {end}")]
    OffsetsDecrease {
        /// The row.
        row: usize,
        /// Where it starts.
        start: u32,
        /// Where it claims to end.
        end: u32,
    },
    /// The last row offset is not the number of column indices.
    #[error("row offsets: expected the last to be the number of column indices, {expected}, got {got}")]
    OffsetsEnd {
        /// The number of column indices.
        expected: usize,
        /// The last offset.
        got: u32,
    },
    /// An index is negative.
    #[error("{what}: expected no negative number, got {got} at position {position}")]
    Negative {
        /// Which array.
        what: &'static str,
        /// Where in the array.
        position: usize,
        /// The number found.
        got: i64,
    },
    /// A row index reaches past the last row.
    #[error("row index at position {position}: expected less than {rows}, got {row}")]
    RowOutOfRange {
        /// Where in the array of row indices.
        position: usize,
        /// The index found.
        row: u64,
        /// Rows of the matrix.
        rows: usize,
    },
    /// The elements do not stand row by row.
    #[error(
        "row index at position {position}: expected {previous}, the one before, or more, got {row}; sort the elements by \
         rows and then by columns (PyTorch: `x.coalesce()`)"
    )]
    UnsortedRows {
        /// Where in the array of row indices.
        position: usize,
        /// The row before.
        previous: u64,
        /// The row found.
        row: u64,
    },
    /// A column index reaches past the last column.
    #[error("column index of row {row} at position {position}: expected less than {cols}, got {column}")]
    ColumnOutOfRange {
        /// The row.
        row: usize,
        /// Where in the array of column indices.
        position: usize,
        /// The index found.
        column: u64,
        /// Columns of the matrix.
        cols: usize,
    },
    /// The columns of a row do not ascend.
    #[error(
        "row {row} at position {position}: expected a column above {previous}, the one before, got {column}; \
         sort the row, or build it as a `Coo`"
    )]
    UnsortedColumns {
        /// The row.
        row: usize,
        /// Where in the array of column indices.
        position: usize,
        /// The column before.
        previous: u32,
        /// The column found.
        column: u32,
    },
    /// An element is given twice.
    #[error(
        "row {row} at position {position}: column {column} was given before; give each element once, or sum the \
         duplicates with `Coo::to_csr_summing`"
    )]
    Duplicate {
        /// The row.
        row: usize,
        /// The column.
        column: u32,
        /// Where the second of them stands.
        position: usize,
    },
}

/// `got` as `u32`, or an error that names what does not fit.
pub(crate) fn fit_u32(what: &'static str, got: usize) -> Result<u32, FormatError> {
    u32::try_from(got).map_err(|_| FormatError::TooLarge { what, got: got as u64 })
}

/// An error unless the array `what` has `expected` elements.
pub(crate) fn expect_length(what: &'static str, expected: u128, got: usize) -> Result<(), FormatError> {
    if got as u128 == expected { Ok(()) } else { Err(FormatError::Length { what, expected, got }) }
}

/// A vector of `len` copies of `value`, or an error where memory runs out.
pub(crate) fn try_filled<T: Clone>(len: u128, value: T) -> Result<Vec<T>, FormatError> {
    let no_memory = FormatError::OutOfMemory { elements: len, bytes: size_of::<T>() };
    let Ok(len) = usize::try_from(len) else { return Err(no_memory) };
    let mut filled = Vec::new();
    filled.try_reserve_exact(len).map_err(|_| no_memory)?;
    filled.resize(len, value);
    Ok(filled)
}
