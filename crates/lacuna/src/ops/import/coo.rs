//! Patterns from the row and the column of each nonzero.
use lacuna_kernels::entries;
use lacuna_kernels::import::{Rows, RowsArgs};
use lacuna_matrix::FormatError;

use super::{ForeignIndex, OPERATION, first_wrong, grid};
use crate::op::launch_kernel;
use crate::{CsrMatrix, Error, Index, Result, Slice, Stream, Value};

impl<T: Value, I: Index> CsrMatrix<T, I> {
    /// As [`from_indices`](CsrMatrix::from_indices), of a matrix (rows × cols) that another program has by coordinates (COO): the row
    /// and the column of each nonzero, row by row and in each row by ascending columns. So they are in a coalesced tensor of
    /// PyTorch's. The row indices are checked on the device, which also works out where rows start.
    ///
    /// ```
    /// use lacuna::{CsrMatrix, Device};
    ///
    /// # fn main() -> lacuna::Result<()> {
    /// let device = Device::simulator();
    /// let stream = device.stream()?;
    /// let (rows, columns) = (device.upload(&[0_i64, 0, 2])?, device.upload(&[0_i64, 4, 1])?);
    /// let pattern = CsrMatrix::<f32>::from_coo(&stream, [3, 5], rows.as_slice(), columns.as_slice())?;
    /// assert_eq!((pattern.rows(), pattern.nnz()), (3, 3));
    ///
    /// let rows = device.upload(&[0_i64, 2, 0])?;
    /// let error = CsrMatrix::<f32>::from_coo(&stream, [3, 5], rows.as_slice(), columns.as_slice()).unwrap_err();
    /// assert!(error.to_string().starts_with("row index at position 2: expected 2, the one before, or more, got 0"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for `from_indices`; [`Error::Format`](crate::Error::Format) also for rows that do not rise, or are not there;
    /// [`Error::Length`](crate::Error::Length) where there are not as many rows as columns.
    pub fn from_coo<S: ForeignIndex>(
        stream: &Stream,
        [rows, cols]: [usize; 2],
        row_indices: Slice<'_, S>,
        columns: Slice<'_, S>,
    ) -> Result<Self> {
        let (device, nnz) = (stream.device(), columns.len());
        Self::expect_sizes([rows, cols], nnz)?;
        // A negative row is then past the last.
        Error::expect_at_most("the number of rows that such indices count", S::END as usize, rows)?;
        let shape = || "one a nonzero, as of the columns".into();
        device.expect_operand(OPERATION, "the row indices", row_indices, shape, nnz)?;
        device.expect_same(OPERATION, "the columns", columns.device())?;

        let mut row_offsets = device.uninitialized::<u32>(rows + 1)?;
        let mut verdict = device.zeros::<u32>(1)?;
        let args = RowsArgs::<S::Device> {
            source: row_indices.pointer(),
            row_offsets: row_offsets.as_slice_mut().pointer(),
            verdict: verdict.as_slice_mut().pointer(),
            rows: rows as u32,
            nnz: nnz as u32,
        };
        launch_kernel::<Rows<S::Device>>(
            stream,
            entries::import(),
            grid(args.nnz.max(args.rows + 1)),
            &args,
        )?;
        if let Some(position) = first_wrong(stream, &verdict)? {
            return Err(wrong(stream, row_indices, position, rows)?.into());
        }
        let host_offsets = row_offsets.download(stream)?;
        Self::of_rows(stream, cols, &host_offsets, row_offsets.as_slice(), columns)
    }
}

/// What is wrong with the row at this position.
fn wrong<S: ForeignIndex>(
    stream: &Stream,
    row_indices: Slice<'_, S>,
    position: usize,
    rows: usize,
) -> Result<FormatError> {
    let found = row_indices.part(position.saturating_sub(1)..=position)?.download(stream)?;
    let (before, row) = (found[0], found[found.len() - 1]);
    Ok(match row.to_unsigned() {
        None => FormatError::Negative { what: "row indices", position, got: row.to_signed() },
        Some(row) if row >= rows as u64 => FormatError::RowOutOfRange { position, row, rows },
        Some(row) => {
            FormatError::UnsortedRows { position, previous: before.to_unsigned().unwrap_or(u64::MAX), row }
        }
    })
}
