//! Sparse matrices on a device.
use std::sync::Arc;

use lacuna_kernels::spmm::{QUAD, RowRecord};
use lacuna_matrix::{Csr, Pattern, PatternStats};

use crate::{Buffer, Device, Error, Result, SliceMut};

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
        let offsets = pattern.row_offsets();
        let table: Vec<[u32; RowRecord::WORDS]> = pattern
            .rows_by_length()
            .into_iter()
            .map(|row| {
                let (start, end) = (offsets[row as usize], offsets[row as usize + 1]);
                RowRecord { row, start, end }.to_words()
            })
            .collect();
        let mut columns = device.zeros(padded(nnz))?;
        columns.slice_mut(..nnz)?.upload(pattern.col_indices())?;
        Ok(Self {
            rows: pattern.rows(),
            cols: pattern.cols(),
            nnz,
            stats: pattern.stats(),
            row_table: device.upload(table.as_flattened())?,
            columns,
        })
    }
}

/// Elements of an array whose last quad is whole.
fn padded(nnz: usize) -> usize {
    nnz.next_multiple_of(QUAD as usize)
}
