//! Patterns from lists of columns, one a row.
use lacuna_kernels::entries;
use lacuna_kernels::import::{CopyLists, CopyListsArgs, MAX_LIST, SortLists, SortListsArgs};
use lacuna_kernels::transpose::{ScanArgs, ScanColumns};
use lacuna_matrix::FormatError;

use super::{ForeignIndex, OPERATION, first_wrong, nameable};
use crate::op::{MAX_GRID_X, launch_kernel};
use crate::ops::transpose;
use crate::pattern::{DevicePattern, RowOrder, padded};
use crate::{CsrMatrix, Error, Index, Result, Slice, Stream, Value};

impl<T: Value, I: Index> CsrMatrix<T, I> {
    /// As [`from_indices`](CsrMatrix::from_indices), of as many columns a row, in any order: `lists` has `length` elements for each of
    /// `rows` rows, as [`TopN`](crate::TopN) leaves them. So it is the mask of attention in which an indexer names the keys of each
    /// token. A column that a list has more than once counts once; −1, or all bits set, stands for none.
    ///
    /// Row i keeps columns up to i + `diagonal`: with `Some(0)` lists are masked causally, as `torch.tril` does it. `None` keeps all.
    ///
    /// The lists are sorted and checked on the device. They are read when `stream` comes to this, and not kept; the call waits for the
    /// device.
    ///
    /// ```
    /// use lacuna::{CsrMatrix, Device};
    ///
    /// # fn main() -> lacuna::Result<()> {
    /// let device = Device::simulator();
    /// let stream = device.stream()?;
    /// let lists = device.upload(&[4_i32, 0, 2, 1, -1, 1])?;
    /// let all = CsrMatrix::<f32>::from_lists(&stream, [2, 5], lists.as_slice(), 3, None)?;
    /// // Row 0 has 0, 2 and 4, row 1 has 1.
    /// assert_eq!(all.nnz(), 4);
    /// let causal = CsrMatrix::<f32>::from_lists(&stream, [2, 5], lists.as_slice(), 3, Some(0))?;
    /// // Row 0 has 0, row 1 has 1.
    /// assert_eq!(causal.nnz(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Format`] for a column that the matrix has not, or a negative one but −1; [`Error::Length`] for lists of other lengths;
    /// [`Error::TooLarge`] for a `length` above 4,096 or 2³¹ rows, and as for `from_indices`, of all elements of the lists;
    /// [`Error::OtherDevice`], [`Error::OutOfMemory`], or what the driver says.
    pub fn from_lists<S: ForeignIndex>(
        stream: &Stream,
        [rows, cols]: [usize; 2],
        lists: Slice<'_, S>,
        length: usize,
        diagonal: Option<i64>,
    ) -> Result<Self> {
        let device = stream.device();
        Error::expect_at_most("the elements of a list", MAX_LIST as usize, length)?;
        let elements = rows.saturating_mul(length);
        Self::expect_sizes([rows, cols], elements)?;
        // A thread block a row.
        Error::expect_at_most("the number of rows", MAX_GRID_X, rows)?;
        let shape = || format!("{rows}×{length}");
        device.expect_operand(OPERATION, "the lists", lists, shape, elements)?;
        if rows == 0 {
            let pattern =
                DevicePattern::of_columns(cols, &[0], device.zeros(padded(0))?, RowOrder::default())?;
            return Ok(Self::of_pattern_alone(device, pattern.into()));
        }

        let mut sorted = device.uninitialized::<u32>(elements)?;
        let mut offsets = device.uninitialized::<u32>(rows + 1)?;
        let mut verdict = device.zeros::<u32>(1)?;
        let sort = SortListsArgs::<S::Device> {
            source: lists.pointer(),
            sorted: sorted.as_slice_mut().pointer(),
            counts: offsets.as_slice_mut().pointer(),
            verdict: verdict.as_slice_mut().pointer(),
            diagonal: diagonal.unwrap_or(i64::MAX),
            cols: nameable::<S>(cols) as u32,
            length: length as u32,
            padded: length.next_power_of_two() as u32,
        };
        let by_row = |_: &_| [rows as u32, 1, 1];
        launch_kernel::<SortLists<S::Device>>(stream, entries::import(), by_row, &sort)?;
        if let Some(position) = first_wrong(stream, &verdict)? {
            return Err(wrong(stream, lists, [position, length, cols])?.into());
        }
        // The scan along columns looks at no counters.
        let scan = ScanArgs { counters: sort.counts, offsets: sort.counts, chunks: 1, cols: rows as u32 };
        transpose::launch::<ScanColumns>(stream, scan.cols, 1, &scan)?;
        let row_offsets = offsets.download(stream)?;
        let mut columns = device.zeros::<I>(padded(row_offsets[rows] as usize))?;
        let copy = CopyListsArgs::<I::Device> {
            sorted: sorted.as_slice().pointer(),
            row_offsets: offsets.as_slice().pointer(),
            columns: columns.as_slice_mut().pointer(),
            length: length as u32,
        };
        launch_kernel::<CopyLists<I::Device>>(stream, entries::import(), by_row, &copy)?;
        let pattern = DevicePattern::of_columns(cols, &row_offsets, columns, RowOrder::default())?;
        // So that others may use the pattern at once, and the lists may go.
        stream.synchronize()?;
        Ok(Self::of_pattern_alone(device, pattern.into()))
    }
}

/// What is wrong with the element at this position of lists.
fn wrong<S: ForeignIndex>(
    stream: &Stream,
    lists: Slice<'_, S>,
    [position, length, cols]: [usize; 3],
) -> Result<FormatError> {
    let column = lists.part(position..=position)?.download(stream)?[0];
    Ok(match column.to_unsigned() {
        None => FormatError::Negative { what: "columns of the lists", position, got: column.to_signed() },
        Some(column) => FormatError::ColumnOutOfRange { row: position / length, position, column, cols },
    })
}
