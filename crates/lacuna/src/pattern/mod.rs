//! Where the nonzeros of a matrix are: on a device, with what was worked out from that. It knows no operation.
mod derived;
mod lengths;

use std::sync::{Arc, Weak};

use lacuna_gpu::GlobalPtr;
use lacuna_kernels::{ALIGNED, IndexType, PADDING, RowRecord};
use lacuna_matrix::{Pattern, PatternStats, rows_by_length};

pub(crate) use self::derived::Derived;
pub(crate) use self::lengths::LengthClass;
pub use self::lengths::RowLengths;
use crate::{Buffer, Device, Element, Error, Index, Result};

/// Where the nonzeros of a matrix are.
#[derive(Debug)]
pub(crate) struct DevicePattern<I: Index> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) nnz: usize,
    pub(crate) stats: PatternStats,
    pub(crate) lengths: RowLengths,
    /// [`RowRecord`]s, in this order.
    pub(crate) row_table: Buffer<u32>,
    pub(crate) row_order: RowOrder,
    /// The columns, then zeros as padding.
    pub(crate) columns: Buffer<I>,
    /// What it was made of, as long as somebody else has it.
    host: Weak<Pattern>,
    /// What operations derived from it, each when its first plan needed it.
    pub(crate) derived: Derived,
}

/// The order in which kernels that go row by row take the rows. Results do not depend on it; times do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowOrder {
    /// Longest row first, so that rows worked on together are of about one length.
    #[default]
    LongestFirst,
    /// As they stand in the matrix: for measuring what [`LongestFirst`](RowOrder::LongestFirst) brings.
    Unsorted,
}

/// The most nonzeros: the kernels' 32-bit indices run up to one block's stage past the last.
pub(crate) const MAX_NNZ: usize = u32::MAX as usize - 4096;

impl<I: Index> DevicePattern<I> {
    /// The row records, as kernels take them.
    pub(crate) fn row_table_pointer(&self) -> GlobalPtr<u32> {
        self.row_table.as_slice().pointer()
    }

    /// The columns, as kernels take them.
    pub(crate) fn columns_pointer(&self) -> GlobalPtr<I::Device> {
        self.columns.as_slice().pointer()
    }

    /// Puts a pattern on a device.
    pub(crate) fn new(device: &Device, pattern: &Arc<Pattern>, order: RowOrder) -> Result<Self> {
        let nnz = pattern.nnz();
        Error::expect_at_most("the number of nonzeros", MAX_NNZ, nnz)?;
        let columns_what = match I::TYPE {
            IndexType::U32 => "the number of columns",
            IndexType::U16 => "the number of columns with 16-bit indices",
        };
        Error::expect_at_most(columns_what, I::TYPE.max_columns() as usize, pattern.cols())?;
        let columns = pattern.col_indices();
        let columns = match I::TYPE {
            // They are what is uploaded.
            IndexType::U32 => upload_padded::<I>(device, bytemuck::cast_slice(columns), padded(nnz))?,
            IndexType::U16 => {
                let columns: Vec<I> = columns.iter().map(|&column| I::from_column(column)).collect();
                upload_padded(device, &columns, padded(nnz))?
            }
        };
        let of_columns = Self::of_columns(pattern.cols(), pattern.row_offsets(), columns, order)?;
        Ok(Self { host: Arc::downgrade(pattern), ..of_columns })
    }

    /// The pattern on the host: what it was made of, if somebody still has that. Else it is read from the device, which is waited
    /// for.
    pub(crate) fn on_host(&self) -> Result<Arc<Pattern>> {
        if let Some(pattern) = self.host.upgrade() {
            return Ok(pattern);
        }
        let stream = self.row_table.device().stream()?;
        let columns = self.columns.slice(..self.nnz)?.download(&stream)?;
        let mut row_offsets = vec![self.nnz as u32; self.rows + 1];
        for record in self.row_table.download(&stream)?.as_chunks().0 {
            let RowRecord { row, start, .. } = RowRecord::from_words(*record);
            row_offsets[row as usize] = start;
        }
        let columns = columns.into_iter().map(Index::to_column).collect();
        Ok(Arc::new(Pattern::new(self.rows, self.cols, row_offsets, columns)?))
    }

    /// The pattern with these row offsets, and `columns`, padded, on a device already.
    pub(crate) fn of_columns(
        cols: usize,
        row_offsets: &[u32],
        columns: Buffer<I>,
        order: RowOrder,
    ) -> Result<Self> {
        let stats = PatternStats::of_rows(cols, row_offsets);
        Ok(Self {
            rows: stats.rows,
            cols,
            nnz: stats.nnz,
            stats,
            lengths: RowLengths::of(row_offsets),
            row_table: columns.device().upload(row_table(row_offsets, order).as_flattened())?,
            row_order: order,
            columns,
            host: Weak::new(),
            derived: Derived::default(),
        })
    }
}

/// The [`RowRecord`]s of rows that start and end at these offsets.
pub(crate) fn row_table(row_offsets: &[u32], order: RowOrder) -> Vec<[u32; RowRecord::WORDS]> {
    let record = |row: u32| {
        let (start, end) = (row_offsets[row as usize], row_offsets[row as usize + 1]);
        RowRecord { row, start, end }.to_words()
    };
    match order {
        RowOrder::LongestFirst => rows_by_length(row_offsets).into_iter().map(record).collect(),
        RowOrder::Unsorted => (0..(row_offsets.len() - 1) as u32).map(record).collect(),
    }
}

/// Bytes up to which a copy on the host takes less time than a second call of the driver.
const FEW_BYTES: usize = 1 << 16;

/// A new buffer of `len` elements: `contents`, and then zeros. Large ones are not copied on the host.
pub(crate) fn upload_padded<E: Element>(device: &Device, contents: &[E], len: usize) -> Result<Buffer<E>> {
    if size_of_val(contents) <= FEW_BYTES {
        let mut padded = contents.to_vec();
        padded.resize(len, E::zeroed());
        return device.upload(&padded);
    }
    let mut buffer = device.uninitialized(len)?;
    let (mut first, mut rest) = buffer.as_slice_mut().split_at(contents.len())?;
    first.upload(contents)?;
    rest.fill_zero()?;
    Ok(buffer)
}

/// Elements of an array of as many nonzeros as kernels want it: some to spare, and the last group whole.
pub(crate) fn padded(nnz: usize) -> usize {
    (nnz + PADDING).next_multiple_of(ALIGNED)
}

#[cfg(test)]
mod tests {
    use lacuna_matrix::generate;

    use super::*;

    #[test]
    fn zeros_follow_what_is_uploaded() {
        let device = Device::simulator();
        let stream = device.stream().unwrap();
        for count in [0, 5, FEW_BYTES / 4, FEW_BYTES / 4 + 1] {
            let contents: Vec<u32> = (1..=count as u32).collect();
            let got = upload_padded(&device, &contents, count + 3).unwrap().download(&stream).unwrap();
            assert_eq!((&got[..count], &got[count..]), (&contents[..], &[0; 3][..]));
        }
    }

    #[test]
    fn what_somebody_has_is_not_read_back() {
        let device = Device::simulator();
        let host = Arc::new(generate::power_law(50, 300, 9.0, 2.1, 1).unwrap());
        let pattern = DevicePattern::<u16>::new(&device, &host, RowOrder::default()).unwrap();
        assert!(Arc::ptr_eq(&pattern.on_host().unwrap(), &host));
        let expected = (*host).clone();
        drop(host);
        assert_eq!(*pattern.on_host().unwrap(), expected);
    }
}
