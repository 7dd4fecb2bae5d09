//! Sparse matrices on a device.
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use lacuna_kernels::IndexType;
use lacuna_kernels::{ALIGNED, RowRecord, SPARE};
use lacuna_matrix::{Csr, Pattern, PatternStats, rows_by_length};

use crate::attention::Quads;
use crate::masks::Masks;
use crate::packs::Packs;
use crate::softmax::RowLengths;
use crate::{Buffer, Device, Error, Index, Result, Slice, SliceMut, TransposedPattern, Value};

/// A CSR matrix on a device, or a batch of them with one pattern. The pattern, with what was worked out from it once, is
/// apart from the values: matrices made by [`with_values`](CsrMatrix::with_values) and
/// [`with_value_batch`](CsrMatrix::with_value_batch) share it, and plans are made for it.
#[derive(Debug)]
pub struct CsrMatrix<T: Value = f32, I: Index = u32> {
    pattern: Arc<DevicePattern<I>>,
    batch: usize,
    /// The values of each matrix, then zeros to spare.
    values: Buffer<T>,
    /// Whether values stay as they are.
    is_packed: bool,
    /// The same once more in packs, where the device has kernels for them.
    packs: Option<Packs>,
}

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
    /// The columns, then zeros to spare.
    pub(crate) columns: Buffer<I>,
    /// What kernels by tiles read, made when the first plan wants it.
    pub(crate) masks: OnceLock<Masks>,
    /// What attention by quads of queries reads, made when the first plan wants it.
    pub(crate) quads: OnceLock<Quads>,
    /// The row of each nonzero, made when the first plan of SDDMM wants it.
    pub(crate) row_indices: OnceLock<Buffer<u32>>,
    /// The order in which SDDMM takes tiles of nonzeros, made when the first plan wants it.
    pub(crate) tile_order: OnceLock<Buffer<u32>>,
    /// The transposed pattern, once it was asked for.
    pub(crate) transposed: OnceLock<TransposedPattern<I>>,
}

/// The order in which kernels that go row by row take the rows. Results do not depend on it; times do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowOrder {
    /// Longest row first, so that rows worked on together are of about one length.
    #[default]
    LongestFirst,
    /// As they stand in the matrix: for measuring what [`LongestFirst`](RowOrder::LongestFirst) brings.
    Natural,
}

/// What errors call this.
const OPERATION: &str = "a sparse matrix";

/// The most nonzeros: the kernels' 32-bit indices run up to one block's stage past the last.
const MAX_NNZ: usize = u32::MAX as usize - 4096;

impl<T: Value> CsrMatrix<T> {
    /// Puts a matrix on a device, with 32-bit column indices.
    ///
    /// # Errors
    /// [`Error::TooLarge`] above 2³² − 4097 nonzeros, [`Error::OutOfMemory`], or what the driver says.
    pub fn new(device: &Device, matrix: &Csr<T>) -> Result<Self> {
        Self::with_index(device, matrix)
    }
}

impl<T: Value, I: Index> CsrMatrix<T, I> {
    /// Puts a matrix on a device, with column indices of type `I`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let a = lacuna::matrix::Csr::new(1, 300, vec![0, 2], vec![7, 299], vec![1.0, 2.0])?;
    /// let device = lacuna::Device::simulator();
    /// let a = lacuna::CsrMatrix::<f32, u16>::with_index(&device, &a)?;
    /// assert_eq!((a.cols(), a.nnz()), (300, 2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`] above 2³² − 4097 nonzeros, or above 65,535 columns with `u16`; [`Error::OutOfMemory`], or
    /// what the driver says.
    pub fn with_index(device: &Device, matrix: &Csr<T>) -> Result<Self> {
        Self::with_row_order(device, matrix, RowOrder::default())
    }

    /// Puts a matrix on a device whose values will stay as they are, as those of a trained network do. 16-bit values for compute
    /// capability 9.0 lie there twice, the second time in the order in which tensor cores take them, for which SpMM has faster
    /// kernels: 4 bytes more for each nonzero, and somewhat more where A is very sparse (if it were more than four times the
    /// memory of the nonzeros, they are left as they are). What would change the values is refused with [`Error::Packed`]. A plan
    /// for this matrix is for it alone, and not for others of its pattern.
    ///
    /// The host packs, once.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use half::f16;
    /// # use lacuna::matrix::{Csr, generate};
    /// # let pattern = generate::uniform(64, 256, 0.9, 1)?;
    /// # let values = generate::random_values(pattern.nnz(), 2);
    /// # let weights = Csr::with_values(pattern, values)?.map_values(f16::from_f32);
    /// let device = lacuna::Device::best()?;
    /// let a = lacuna::CsrMatrix::<f16>::packed(&device, &weights)?;
    /// let plan = lacuna::Spmm::plan(&a, 32)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As `with_index`.
    pub fn packed(device: &Device, matrix: &Csr<T>) -> Result<Self> {
        let unpacked = Self::with_index(device, matrix)?;
        Ok(Self { is_packed: true, packs: Packs::new(device, matrix)?, ..unpacked })
    }

    /// As [`with_index`](CsrMatrix::with_index), with the rows worked on in this order: for measurements. The transposed
    /// of the matrix has the default order whatever this is.
    ///
    /// # Errors
    /// As `with_index`.
    pub fn with_row_order(device: &Device, matrix: &Csr<T>, order: RowOrder) -> Result<Self> {
        let pattern = Arc::new(DevicePattern::new(device, matrix.pattern(), order)?);
        Self::of_pattern(device, pattern, 1, matrix.values())
    }

    /// A matrix of the same pattern with other values, row by row.
    ///
    /// # Errors
    /// [`Error::Length`] where `values` are not as many as nonzeros; [`Error::OutOfMemory`].
    pub fn with_values(&self, values: &[T]) -> Result<Self> {
        self.with_value_batch(1, values)
    }

    /// `batch` matrices of the same pattern, whose values may be of another type: `values` are those of the first, row
    /// by row, then those of the second, and so on. A plan with as large a batch multiplies them in one launch.
    ///
    /// # Errors
    /// [`Error::Length`] where `values` are not `batch` times as many as nonzeros; [`Error::TooLarge`] where no buffer
    /// can hold them; [`Error::OutOfMemory`].
    pub fn with_value_batch<U: Value>(&self, batch: usize, values: &[U]) -> Result<CsrMatrix<U, I>> {
        CsrMatrix::of_pattern(self.device(), Arc::clone(&self.pattern), batch, values)
    }

    /// `batch` matrices of the same pattern whose values, of any type, are zeros: room for results.
    ///
    /// # Errors
    /// [`Error::TooLarge`] where no buffer can hold them; [`Error::OutOfMemory`].
    pub fn with_zeros<U: Value>(&self, batch: usize) -> Result<CsrMatrix<U, I>> {
        let too_large = Error::TooLarge {
            what: "the batch",
            limit: (isize::MAX as usize / padded(self.nnz())) as u64,
            got: batch as u64,
        };
        let len = padded(self.nnz()).checked_mul(batch).ok_or(too_large)?;
        let values = self.device().zeros(len)?;
        Ok(CsrMatrix { pattern: Arc::clone(&self.pattern), batch, values, is_packed: false, packs: None })
    }

    fn of_pattern(
        device: &Device,
        pattern: Arc<DevicePattern<I>>,
        batch: usize,
        values: &[T],
    ) -> Result<Self> {
        let nnz = pattern.nnz;
        let too_large =
            Error::TooLarge { what: "the number of values", limit: isize::MAX as u64, got: u64::MAX };
        let padded_len = padded(nnz).checked_mul(batch);
        let padded_len =
            padded_len.filter(|&len| len <= isize::MAX as usize / size_of::<T>()).ok_or(too_large)?;
        if values.len() != nnz * batch {
            return Err(Error::Length {
                operation: OPERATION,
                what: "the slice of values",
                shape: if batch == 1 {
                    format!("{nnz} nonzeros")
                } else {
                    format!("{batch} matrices of {nnz} nonzeros")
                },
                expected: nnz * batch,
                got: values.len(),
            });
        }
        let room = |_| Error::OutOfMemory {
            device: "this machine".into(),
            asked: (padded_len * size_of::<T>()) as u64,
            free: 0,
            total: 0,
        };
        let mut contents = Vec::new();
        contents.try_reserve_exact(padded_len).map_err(room)?;
        contents.resize(padded_len, T::zeroed());
        for (place, values) in contents.chunks_mut(padded(nnz)).zip(values.chunks(nnz.max(1))) {
            place[..nnz].copy_from_slice(values);
        }
        let values = device.upload(&contents)?;
        Ok(Self { pattern, batch, values, is_packed: false, packs: None })
    }

    /// The values, row by row, to replace: plans for this matrix stay good. Those of the first of a batch.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a batch of none; [`Error::Packed`].
    pub fn values_mut(&mut self) -> Result<SliceMut<'_, T>> {
        self.batch_values_mut(0)
    }

    /// The values of matrix `which` of the batch, row by row, to replace.
    ///
    /// # Errors
    /// [`Error::Parameter`] where the batch has no such matrix; [`Error::Packed`].
    pub fn batch_values_mut(&mut self, which: usize) -> Result<SliceMut<'_, T>> {
        self.expect_unpacked(OPERATION)?;
        let range = self.values_range(which)?;
        self.values.slice_mut(range)
    }

    /// The values, row by row. Those of the first of a batch.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a batch of none.
    pub fn values(&self) -> Result<Slice<'_, T>> {
        self.batch_values(0)
    }

    /// The values of matrix `which` of the batch, row by row.
    ///
    /// # Errors
    /// [`Error::Parameter`] where the batch has no such matrix.
    pub fn batch_values(&self, which: usize) -> Result<Slice<'_, T>> {
        self.values.slice(self.values_range(which)?)
    }

    /// Where the values of a matrix of the batch are.
    fn values_range(&self, which: usize) -> Result<Range<usize>> {
        if which >= self.batch {
            return Err(Error::Parameter {
                operation: OPERATION,
                what: "the matrix of the batch",
                expected: format!("below {}, the matrices there are", self.batch),
                got: which.to_string(),
            });
        }
        let start = which * self.values_stride();
        Ok(start..start + self.pattern.nnz)
    }

    /// As many matrices of this pattern as `batch`, which is that of a matrix with as many nonzeros. Their values are still
    /// to be written, with the zeros after them.
    pub(crate) fn unfilled(pattern: Arc<DevicePattern<I>>, batch: usize, device: &Device) -> Result<Self> {
        let values = device.uninitialized(padded(pattern.nnz) * batch)?;
        Ok(Self { pattern, batch, values, is_packed: false, packs: None })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.pattern.rows
    }
    /// Columns.
    pub fn cols(&self) -> usize {
        self.pattern.cols
    }
    /// Nonzeros: stored elements of one matrix.
    pub fn nnz(&self) -> usize {
        self.pattern.nnz
    }
    /// Matrices of this pattern: 1 unless made by [`with_value_batch`](CsrMatrix::with_value_batch).
    pub fn batch(&self) -> usize {
        self.batch
    }
    /// What the pattern looks like.
    pub fn stats(&self) -> &PatternStats {
        &self.pattern.stats
    }
    /// The device that holds it.
    pub fn device(&self) -> &Device {
        self.values.device()
    }

    pub(crate) fn pattern(&self) -> &Arc<DevicePattern<I>> {
        &self.pattern
    }
    pub(crate) fn values_address(&self) -> u64 {
        self.values.as_slice().address()
    }
    /// Elements from the values of one matrix to those of the next.
    pub(crate) fn values_stride(&self) -> usize {
        padded(self.pattern.nnz)
    }
    /// The values of all matrices, and the zeros after each, for `operation` to write.
    pub(crate) fn padded_values_mut(&mut self, operation: &'static str) -> Result<SliceMut<'_, T>> {
        self.expect_unpacked(operation)?;
        Ok(self.values.as_slice_mut())
    }
    fn expect_unpacked(&self, operation: &'static str) -> Result<()> {
        if self.is_packed { Err(Error::Packed { operation }) } else { Ok(()) }
    }
    /// The matrix in packs, if it is packed and the device has kernels for that.
    pub(crate) fn packs(&self) -> Option<&Packs> {
        self.packs.as_ref()
    }
}

impl<I: Index> DevicePattern<I> {
    fn new(device: &Device, pattern: &Pattern, order: RowOrder) -> Result<Self> {
        let nnz = pattern.nnz();
        expect_at_most("the number of nonzeros", MAX_NNZ, nnz)?;
        let columns_what = match I::TYPE {
            IndexType::U32 => "the number of columns",
            IndexType::U16 => "the number of columns with 16-bit indices",
        };
        expect_at_most(columns_what, I::TYPE.max_columns() as usize, pattern.cols())?;
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
            masks: OnceLock::new(),
            quads: OnceLock::new(),
            row_indices: OnceLock::new(),
            tile_order: OnceLock::new(),
            transposed: OnceLock::new(),
        })
    }
}

pub(crate) fn expect_at_most(what: &'static str, limit: usize, got: usize) -> Result<()> {
    if got <= limit {
        return Ok(());
    }
    Err(Error::TooLarge { what, limit: limit as u64, got: got as u64 })
}

/// The [`RowRecord`]s of rows that start and end at these offsets.
pub(crate) fn row_table(row_offsets: &[u32], order: RowOrder) -> Vec<[u32; RowRecord::WORDS]> {
    let record = |row: u32| {
        let (start, end) = (row_offsets[row as usize], row_offsets[row as usize + 1]);
        RowRecord { row, start, end }.to_words()
    };
    match order {
        RowOrder::LongestFirst => rows_by_length(row_offsets).into_iter().map(record).collect(),
        RowOrder::Natural => (0..(row_offsets.len() - 1) as u32).map(record).collect(),
    }
}

/// Elements of an array of as many nonzeros as kernels want it: some to spare, and the last group whole.
pub(crate) fn padded(nnz: usize) -> usize {
    (nnz + SPARE).next_multiple_of(ALIGNED)
}
