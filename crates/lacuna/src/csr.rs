//! Sparse matrices on a device.
use std::ops::Range;
use std::sync::Arc;

use lacuna_matrix::{Csr, PatternStats};

use crate::pattern::{Derived, DevicePattern, RowLengths, RowOrder, padded, upload_padded};
use crate::{Buffer, Device, Element, Error, Index, Result, Slice, SliceMut, Value};

/// A CSR matrix on a device, or a batch of them with one pattern. The pattern, with what was worked out from it once, is
/// apart from the values: matrices made by [`with_values`](CsrMatrix::with_values) and
/// [`with_value_batch`](CsrMatrix::with_value_batch) share it, and plans are made for it.
#[derive(Debug)]
pub struct CsrMatrix<T: Value = f32, I: Index = u32> {
    pattern: Arc<DevicePattern<I>>,
    batch: usize,
    /// The values of each matrix, then some to spare: zeros, but for foreign ones.
    values: Values<T>,
    /// Where the values will not change: what was derived from them.
    fixed: Option<Derived>,
}

/// Where values are.
#[derive(Debug)]
enum Values<T: Element> {
    Own(Buffer<T>),
    /// Memory of another library's.
    Foreign {
        device: Device,
        address: u64,
        len: usize,
    },
}

impl<T: Element> Values<T> {
    fn device(&self) -> &Device {
        match self {
            Self::Own(buffer) => buffer.device(),
            Self::Foreign { device, .. } => device,
        }
    }
    fn as_slice(&self) -> Slice<'_, T> {
        match self {
            Self::Own(buffer) => buffer.as_slice(),
            Self::Foreign { device, address, len } => Slice::of_checked(device, *address, *len),
        }
    }
    fn as_slice_mut(&mut self) -> SliceMut<'_, T> {
        match self {
            Self::Own(buffer) => buffer.as_slice_mut(),
            Self::Foreign { device, address, len } => SliceMut::of_checked(device, *address, *len),
        }
    }
}

/// What errors call this.
const OPERATION: &str = "a sparse matrix";

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
        let stride = self.values_stride();
        let too_large = || Error::too_large("the batch", isize::MAX as usize / stride, batch);
        let values = self.device().zeros(stride.checked_mul(batch).ok_or_else(too_large)?)?;
        Ok(CsrMatrix { pattern: Arc::clone(&self.pattern), batch, values: Values::Own(values), fixed: None })
    }

    /// `batch` matrices of the same pattern whose values are another library's: they are neither copied nor freed. At `address`
    /// stand the values of the first matrix, row by row, then some to spare up to [`values_stride`](CsrMatrix::values_stride)
    /// elements, then those of the second, and so on. Kernels may read what is to spare, and its contents do not matter; only
    /// [`update_from`](CsrMatrix::update_from) writes it. This makes no work for the device, and can be done for each run.
    ///
    /// ```
    /// # use lacuna::matrix::Csr;
    /// # use lacuna::{CsrMatrix, Device, Spmm};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Device::simulator();
    /// let stream = device.stream()?;
    /// let a = CsrMatrix::new(&device, &Csr::new(1, 2, vec![0, 1], vec![1], vec![3.0])?)?;
    /// // Another library's memory, here of the simulator.
    /// let mut others = device.zeros::<f32>(a.values_stride())?;
    /// others.slice_mut(..1)?.upload(&[5.0])?;
    /// // SAFETY: the buffer is as long as it must be, and stays as long as the matrix; nobody else writes it.
    /// let a = unsafe { a.with_foreign_values::<f32>(1, others.as_slice().address())? };
    /// let (b, mut c) = (device.upload(&[1.0, 2.0])?, device.zeros(1)?);
    /// Spmm::plan(&a, 1)?.run(&stream, &a, b.as_slice(), c.as_slice_mut())?;
    /// assert_eq!(c.download(&stream)?, [10.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// As for [`SliceMut::from_raw`](crate::SliceMut::from_raw), of `batch` times [`values_stride`](CsrMatrix::values_stride)
    /// elements, as long as the matrix is used. Where the matrix is only read, so may the memory be.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an address that is not a multiple of 16 bytes, or 0; [`Error::TooLarge`] where no memory can hold
    /// so many.
    pub unsafe fn with_foreign_values<U: Value>(
        &self,
        batch: usize,
        address: u64,
    ) -> Result<CsrMatrix<U, I>> {
        let (device, stride) = (self.device().clone(), self.values_stride());
        let too_large = || Error::too_large("the batch", isize::MAX as usize / stride, batch);
        let len = stride.checked_mul(batch).ok_or_else(too_large)?;
        let expected = || "a multiple of 16 bytes, for whole vectors";
        let is_aligned = address.is_multiple_of(16);
        Error::expect(
            is_aligned,
            OPERATION,
            "the address of the values",
            expected,
            format_args!("{address:#x}"),
        )?;
        // SAFETY: as promised by the caller.
        let address = unsafe { Slice::<U>::from_raw(&device, address, len)? }.address();
        let values = Values::Foreign { device, address, len };
        Ok(CsrMatrix { pattern: Arc::clone(&self.pattern), batch, values, fixed: None })
    }

    /// No matrix of this pattern yet: what [`with_values`](CsrMatrix::with_values) and its like give some to.
    pub(crate) fn of_pattern_alone(device: &Device, pattern: Arc<DevicePattern<I>>) -> Self {
        let values = Values::Foreign { device: device.clone(), address: 256, len: 0 };
        Self { pattern, batch: 0, values, fixed: None }
    }

    fn of_pattern(
        device: &Device,
        pattern: Arc<DevicePattern<I>>,
        batch: usize,
        values: &[T],
    ) -> Result<Self> {
        let nnz = pattern.nnz;
        let limit = isize::MAX as usize;
        let padded_len = padded(nnz).checked_mul(batch).filter(|&len| len <= limit / size_of::<T>());
        let too_large = || Error::too_large("the number of values", limit, usize::MAX);
        let padded_len = padded_len.ok_or_else(too_large)?;
        let shape = || match batch {
            1 => format!("{nnz} nonzeros"),
            _ => format!("{batch} matrices of {nnz} nonzeros"),
        };
        Error::expect_len(OPERATION, "the slice of values", shape, nnz * batch, values.len())?;
        if batch == 1 {
            let values = Values::Own(upload_padded(device, values, padded_len)?);
            return Ok(Self { pattern, batch, values, fixed: None });
        }
        let mut contents = Vec::new();
        let reserved = contents.try_reserve_exact(padded_len);
        reserved.map_err(|_| Error::no_room_on_host(padded_len * size_of::<T>()))?;
        contents.resize(padded_len, T::zeroed());
        for (place, values) in contents.chunks_mut(padded(nnz)).zip(values.chunks(nnz.max(1))) {
            place[..nnz].copy_from_slice(values);
        }
        let values = Values::Own(device.upload(&contents)?);
        Ok(Self { pattern, batch, values, fixed: None })
    }

    /// The values, row by row, to replace: plans for this matrix stay good. Those of the first of a batch.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a batch of none; [`Error::Prepacked`].
    pub fn values_mut(&mut self) -> Result<SliceMut<'_, T>> {
        self.batch_values_mut(0)
    }

    /// The values of matrix `which` of the batch, row by row, to replace.
    ///
    /// # Errors
    /// [`Error::Parameter`] where the batch has no such matrix; [`Error::Prepacked`].
    pub fn batch_values_mut(&mut self, which: usize) -> Result<SliceMut<'_, T>> {
        self.expect_changeable(OPERATION)?;
        let range = self.values_range(which)?;
        self.values.as_slice_mut().into_part(range)
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
        self.values.as_slice().part(self.values_range(which)?)
    }

    /// Where the values of a matrix of the batch are.
    fn values_range(&self, which: usize) -> Result<Range<usize>> {
        let expected = || format!("below {}, the matrices there are", self.batch);
        Error::expect(which < self.batch, OPERATION, "the matrix of the batch", expected, which)?;
        let start = which * self.values_stride();
        Ok(start..start + self.pattern.nnz)
    }

    /// As many matrices of this pattern as `batch`, which is that of a matrix with as many nonzeros. Their values are still
    /// to be written, with the zeros after them.
    pub(crate) fn unfilled(pattern: Arc<DevicePattern<I>>, batch: usize, device: &Device) -> Result<Self> {
        let values = Values::Own(device.uninitialized(padded(pattern.nnz) * batch)?);
        Ok(Self { pattern, batch, values, fixed: None })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.pattern.rows
    }
    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.pattern.cols
    }
    /// The number of nonzeros: stored elements of one matrix.
    pub fn nnz(&self) -> usize {
        self.pattern.nnz
    }
    /// Matrices of this pattern: 1 unless made by [`with_value_batch`](CsrMatrix::with_value_batch).
    pub fn batch(&self) -> usize {
        self.batch
    }
    /// The pattern's statistics: sparsity, row lengths and how they vary.
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
    /// Elements from the values of one matrix of the batch to those of the next: as many as nonzeros, and 16 to 23 to spare.
    pub fn values_stride(&self) -> usize {
        padded(self.pattern.nnz)
    }
    /// The values of all matrices, and the zeros after each, for `operation` to write.
    pub(crate) fn padded_values_mut(&mut self, operation: &'static str) -> Result<SliceMut<'_, T>> {
        self.expect_changeable(operation)?;
        Ok(self.values.as_slice_mut())
    }
    fn expect_changeable(&self, operation: &'static str) -> Result<()> {
        if self.fixed.is_some() { Err(Error::Prepacked { operation }) } else { Ok(()) }
    }
    /// This matrix, with the promise that its values will not change.
    pub(crate) fn fix_values(self) -> Self {
        Self { fixed: Some(Derived::default()), ..self }
    }
    /// What was derived from the values, where they will not change.
    pub(crate) fn derived_from_values(&self) -> Option<&Derived> {
        self.fixed.as_ref()
    }
    /// The row lengths, as the heuristics take them.
    pub fn row_lengths(&self) -> &RowLengths {
        &self.pattern.lengths
    }
}
