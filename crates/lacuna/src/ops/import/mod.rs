//! Patterns and bags from index arrays of another program's that are on the device already.
mod bags;
mod coo;
mod indices;
mod lists;

use std::sync::Arc;

use lacuna_kernels::import::{Columns, ColumnsArgs, Tile};
use lacuna_kernels::{Entry, IndexType, entries};
use lacuna_matrix::FormatError;

pub use self::indices::ForeignIndex;
use self::indices::{nameable, offsets};
use crate::op::launch_kernel;
use crate::pattern::{DevicePattern, MAX_NNZ, RowOrder, padded};
use crate::{Buffer, CsrMatrix, Error, Index, Result, Slice, Stream, Value};

const OPERATION: &str = "import";
/// Rows that kernels can count, a thread each.
pub(in crate::ops) const MAX_ROWS: usize = MAX_NNZ;

impl<T: Value, I: Index> CsrMatrix<T, I> {
    /// The pattern of a matrix (rows × cols) whose index arrays are on the device already, in another program's form: `row_offsets`
    /// (rows + 1), and `columns`, one a nonzero, which ascend in each row; both of 32 or 64 bits, with a sign or without. The
    /// result has no values, and a batch of 0: [`with_values`](CsrMatrix::with_values), [`with_zeros`](CsrMatrix::with_zeros) and
    /// [`with_foreign_values`](CsrMatrix::with_foreign_values) make matrices of it.
    ///
    /// The arrays are read when `stream` comes to this, and not kept. The row offsets are copied to the host, which sorts the rows
    /// by length; the columns stay on the device, where a kernel checks and copies them. The call waits for the device.
    ///
    /// ```
    /// use lacuna::{CsrMatrix, Device};
    ///
    /// # fn main() -> lacuna::Result<()> {
    /// let device = Device::simulator();
    /// let stream = device.stream()?;
    /// let (offsets, columns) = (device.upload(&[0_i64, 2, 3])?, device.upload(&[0_i64, 4, 1])?);
    /// let pattern = CsrMatrix::<f32>::from_indices(&stream, [2, 5], offsets.as_slice(), columns.as_slice())?;
    /// assert_eq!((pattern.nnz(), pattern.batch()), (3, 0));
    ///
    /// // The second row has no column 5.
    /// let columns = device.upload(&[0_i64, 4, 5])?;
    /// let error = CsrMatrix::<f32>::from_indices(&stream, [2, 5], offsets.as_slice(), columns.as_slice()).unwrap_err();
    /// assert_eq!(error.to_string(), "column index of row 1 at position 2: expected less than 5, got 5");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Format`] for arrays that are no pattern, with the first row or element that is wrong; [`Error::Length`] for row
    /// offsets that are not rows + 1; [`Error::TooLarge`] above 2³² − 4097 nonzeros or rows, or the columns that `I` can
    /// index; [`Error::OtherDevice`], [`Error::OutOfMemory`], or what the driver says.
    pub fn from_indices<S: ForeignIndex>(
        stream: &Stream,
        [rows, cols]: [usize; 2],
        row_offsets: Slice<'_, S>,
        columns: Slice<'_, S>,
    ) -> Result<Self> {
        let device = stream.device();
        Self::expect_sizes([rows, cols], columns.len())?;
        let shape = || "one a row, and the end of the last".into();
        device.expect_operand(OPERATION, "the row offsets", row_offsets, shape, rows + 1)?;
        device.expect_same(OPERATION, "the columns", columns.device())?;

        let host_offsets = offsets(&row_offsets.download(stream)?, columns.len())?;
        let checked_offsets = device.upload(&host_offsets)?;
        Self::of_rows(stream, cols, &host_offsets, checked_offsets.as_slice(), columns)
    }

    /// Whether kernels can index so many rows, columns and nonzeros.
    fn expect_sizes([rows, cols]: [usize; 2], nnz: usize) -> Result<()> {
        Error::expect_at_most("the number of nonzeros", MAX_NNZ, nnz)?;
        Error::expect_at_most("the number of rows", MAX_ROWS, rows)?;
        let columns_what = match I::TYPE {
            IndexType::U32 => "the number of columns",
            IndexType::U16 => "the number of columns with 16-bit indices",
        };
        Error::expect_at_most(columns_what, I::TYPE.max_columns() as usize, cols)
    }

    /// The pattern of rows that start at these offsets, which are the same on the host and the device, once its columns are checked.
    fn of_rows<S: ForeignIndex>(
        stream: &Stream,
        cols: usize,
        host_offsets: &[u32],
        row_offsets: Slice<'_, u32>,
        columns: Slice<'_, S>,
    ) -> Result<Self> {
        let (device, nnz) = (stream.device(), columns.len());
        let mut copied = device.uninitialized::<I>(padded(nnz))?;
        let mut verdict = device.zeros::<u32>(1)?;
        let args = ColumnsArgs::<S::Device, I::Device> {
            source: columns.pointer(),
            row_offsets: row_offsets.pointer(),
            columns: copied.as_slice_mut().pointer(),
            verdict: verdict.as_slice_mut().pointer(),
            rows: host_offsets.len() as u32 - 1,
            cols: nameable::<S>(cols) as u32,
            nnz: nnz as u32,
            len: copied.len() as u32,
        };
        launch_kernel::<Columns<S::Device, I::Device>>(stream, entries::import(), grid(args.len), &args)?;
        // This waits for the stream, so that others may use the pattern at once.
        if let Some(position) = first_wrong(stream, &verdict)? {
            return Err(wrong(stream, columns, host_offsets, position, cols)?.into());
        }
        let pattern = DevicePattern::of_columns(cols, host_offsets, copied, RowOrder::default())?;
        Ok(Self::of_pattern_alone(device, Arc::new(pattern)))
    }
}

/// Blocks for so many elements.
pub(in crate::ops) fn grid(items: u32) -> impl FnOnce(&Entry<Tile>) -> [u32; 3] {
    move |entry| [items.div_ceil(entry.tile.block_items), 1, 1]
}

/// The position of the first wrong element, if a kernel found one. Waits for it.
fn first_wrong(stream: &Stream, verdict: &Buffer<u32>) -> Result<Option<usize>> {
    let verdict = verdict.download(stream)?[0];
    Ok((verdict > 0).then(|| (u32::MAX - verdict) as usize))
}

/// What is wrong with the column at this position.
fn wrong<S: ForeignIndex>(
    stream: &Stream,
    columns: Slice<'_, S>,
    row_offsets: &[u32],
    position: usize,
    cols: usize,
) -> Result<FormatError> {
    // The row is the last one that starts at or before the position.
    let row = row_offsets.partition_point(|&start| start as usize <= position) - 1;
    let found = columns.part(position.saturating_sub(1)..=position)?.download(stream)?;
    let (before, column) = (found[0], found[found.len() - 1]);
    Ok(match column.to_unsigned() {
        None => FormatError::Negative { what: "column indices", position, got: column.to_signed() },
        Some(column) if column >= cols as u64 => {
            FormatError::ColumnOutOfRange { row, position, column, cols }
        }
        Some(column) if before.to_unsigned() == Some(column) => {
            FormatError::Duplicate { row, column: column as u32, position }
        }
        Some(column) => FormatError::UnsortedColumns {
            row,
            position,
            previous: before.to_unsigned().unwrap_or(u64::MAX).min(u32::MAX.into()) as u32,
            column: column as u32,
        },
    })
}

#[cfg(test)]
mod tests;
