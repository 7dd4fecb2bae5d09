//! Where the nonzeros of a matrix are: on a device, with what was worked out from that. It knows no operation.
mod derived;
mod lengths;

use lacuna_gpu::GlobalPtr;
use lacuna_kernels::{ALIGNED, IndexType, PADDING, RowRecord};
use lacuna_matrix::{Pattern, PatternStats, rows_by_length};

pub(crate) use self::derived::Derived;
pub(crate) use self::lengths::LengthClass;
pub use self::lengths::RowLengths;
use crate::{Buffer, Device, Error, Index, Result};

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

    pub(crate) fn new(device: &Device, pattern: &Pattern, order: RowOrder) -> Result<Self> {
        let nnz = pattern.nnz();
        Error::expect_at_most("the number of nonzeros", MAX_NNZ, nnz)?;
        let columns_what = match I::TYPE {
            IndexType::U32 => "the number of columns",
            IndexType::U16 => "the number of columns with 16-bit indices",
        };
        Error::expect_at_most(columns_what, I::TYPE.max_columns() as usize, pattern.cols())?;
        let mut columns: Vec<I> =
            pattern.col_indices().iter().map(|&column| I::from_column(column)).collect();
        columns.resize(padded(nnz), I::zeroed());
        Self::of_columns(pattern.cols(), pattern.row_offsets(), device.upload(&columns)?, order)
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

/// Elements of an array of as many nonzeros as kernels want it: some to spare, and the last group whole.
pub(crate) fn padded(nnz: usize) -> usize {
    (nnz + PADDING).next_multiple_of(ALIGNED)
}
