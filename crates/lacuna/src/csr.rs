//! Sparse matrices on a device.
use std::sync::{Arc, OnceLock};

use lacuna_kernels::spmm::{QUAD, RowRecord};
use lacuna_matrix::{Csr, Pattern, PatternStats, rows_by_length};

use crate::{Buffer, Device, Error, Result, Slice, SliceMut, TransposedPattern};

/// A CSR matrix on a device. The pattern, with what was worked out from it once, is apart from the values: clones made
/// by [`with_values`](CsrMatrix::with_values) share it, and plans are made for it.
#[derive(Debug)]
pub struct CsrMatrix {
    pattern: Arc<DevicePattern>,
    /// The values, then zeros up to whole quads.
    values: Buffer<f32>,
}

/// Where the nonzeros of a matrix are.
#[derive(Debug)]
pub(crate) struct DevicePattern {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) nnz: usize,
    pub(crate) stats: PatternStats,
    /// [`RowRecord`]s, longest row first.
    pub(crate) row_table: Buffer<u32>,
    /// The columns, then zeros up to whole quads.
    pub(crate) columns: Buffer<u32>,
    /// The transposed pattern, once it was asked for.
    pub(crate) transposed: OnceLock<TransposedPattern>,
}

/// The most nonzeros: the kernels' 32-bit indices run up to one block's stage past the last.
const MAX_NNZ: usize = u32::MAX as usize - 4096;

impl CsrMatrix {
    /// Puts a matrix on a device.
    ///
    /// # Errors
    /// [`Error::TooLarge`] above 2³² − 4097 nonzeros, [`Error::OutOfMemory`], or what the driver says.
    pub fn new(device: &Device, matrix: &Csr<f32>) -> Result<Self> {
        let pattern = Arc::new(DevicePattern::new(device, matrix.pattern())?);
        let mut values = device.zeros(padded(matrix.nnz()))?;
        values.slice_mut(..matrix.nnz())?.upload(matrix.values())?;
        Ok(Self { pattern, values })
    }

    /// A matrix of the same pattern with other values, row by row.
    ///
    /// # Errors
    /// [`Error::Length`] where `values` are not as many as nonzeros; [`Error::OutOfMemory`].
    pub fn with_values(&self, values: &[f32]) -> Result<Self> {
        let buffer = self.device().zeros(padded(self.nnz()))?;
        let mut matrix = Self { pattern: Arc::clone(&self.pattern), values: buffer };
        matrix.values_mut()?.upload(values)?;
        Ok(matrix)
    }

    /// The values, row by row, to replace: plans for this matrix stay good.
    ///
    /// # Errors
    /// None that a matrix made by this library can cause.
    pub fn values_mut(&mut self) -> Result<SliceMut<'_, f32>> {
        self.values.slice_mut(..self.pattern.nnz)
    }

    /// The values, row by row: nnz elements.
    pub fn values(&self) -> Slice<'_, f32> {
        self.values.slice(..self.pattern.nnz).expect("there are as many values as nonzeros")
    }

    /// A matrix of this pattern whose values are still to be written, with the zeros after them.
    pub(crate) fn unfilled(pattern: Arc<DevicePattern>, device: &Device) -> Result<Self> {
        let values = device.uninitialized(padded(pattern.nnz))?;
        Ok(Self { pattern, values })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.pattern.rows
    }
    /// Columns.
    pub fn cols(&self) -> usize {
        self.pattern.cols
    }
    /// Nonzeros: stored elements.
    pub fn nnz(&self) -> usize {
        self.pattern.nnz
    }
    /// What the pattern looks like.
    pub fn stats(&self) -> &PatternStats {
        &self.pattern.stats
    }
    /// The device that holds it.
    pub fn device(&self) -> &Device {
        self.values.device()
    }

    pub(crate) fn pattern(&self) -> &Arc<DevicePattern> {
        &self.pattern
    }
    pub(crate) fn values_address(&self) -> u64 {
        self.values.as_slice().address()
    }
    /// The values, and the zeros after them.
    pub(crate) fn padded_values(&self) -> Slice<'_, f32> {
        self.values.as_slice()
    }
}

impl DevicePattern {
    fn new(device: &Device, pattern: &Pattern) -> Result<Self> {
        let nnz = pattern.nnz();
        if nnz > MAX_NNZ {
            return Err(Error::TooLarge {
                what: "the number of nonzeros",
                limit: MAX_NNZ as u64,
                got: nnz as u64,
            });
        }
        let mut columns = device.zeros(padded(nnz))?;
        columns.slice_mut(..nnz)?.upload(pattern.col_indices())?;
        Self::of_columns(pattern.cols(), pattern.row_offsets(), columns)
    }

    /// The pattern with these row offsets, and `columns`, padded, on a device already.
    pub(crate) fn of_columns(cols: usize, row_offsets: &[u32], columns: Buffer<u32>) -> Result<Self> {
        let stats = PatternStats::of_rows(cols, row_offsets);
        Ok(Self {
            rows: stats.rows,
            cols,
            nnz: stats.nnz,
            stats,
            row_table: columns.device().upload(row_table(row_offsets).as_flattened())?,
            columns,
            transposed: OnceLock::new(),
        })
    }
}

/// The [`RowRecord`]s of rows that start and end at these offsets, longest row first.
pub(crate) fn row_table(row_offsets: &[u32]) -> Vec<[u32; RowRecord::WORDS]> {
    let record = |row: u32| {
        let (start, end) = (row_offsets[row as usize], row_offsets[row as usize + 1]);
        RowRecord { row, start, end }.to_words()
    };
    rows_by_length(row_offsets).into_iter().map(record).collect()
}

/// Elements of an array whose last quad is whole.
pub(crate) fn padded(nnz: usize) -> usize {
    nnz.next_multiple_of(QUAD as usize)
}
