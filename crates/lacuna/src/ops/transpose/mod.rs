//! Aᵀ on the device: its pattern once, its values as often as they change.
mod build;
mod gather;

use std::sync::Arc;

use lacuna_kernels::transpose::Tile;
use lacuna_kernels::{IndexType, Kernel, entries};

use crate::op::launch_kernel;
use crate::pattern::{DevicePattern, RowOrder};
use crate::{Buffer, CsrMatrix, Error, Index, Result, Slice, Stream, Value};

const OPERATION: &str = "transpose";

/// The pattern of Aᵀ, and where each of its elements stands in A. Made once, on the device, and kept with A's pattern.
#[derive(Debug)]
pub struct TransposedPattern<I: Index = u32> {
    pattern: Arc<DevicePattern<I>>,
    /// For each element of Aᵀ its index in A.
    permutation: Buffer<u32>,
}

impl<I: Index> TransposedPattern<I> {
    /// For each nonzero of Aᵀ, row by row, its index among the nonzeros of A: nnz elements.
    pub fn permutation(&self) -> Slice<'_, u32> {
        self.permutation.as_slice()
    }

    /// The pattern of Aᵀ.
    pub(in crate::ops) fn pattern(&self) -> &DevicePattern<I> {
        &self.pattern
    }

    fn of(a: &DevicePattern<I>, stream: &Stream) -> Result<Self> {
        let rows_what = match I::TYPE {
            IndexType::U32 => "the number of rows, as columns of Aᵀ",
            IndexType::U16 => "the number of rows, as columns of Aᵀ with 16-bit indices",
        };
        Error::expect_at_most(rows_what, I::TYPE.max_columns() as usize, a.rows)?;
        let built =
            build::build(stream, a.rows, a.cols, a.nnz, a.row_table.as_slice(), a.columns.as_slice())?;
        let pattern =
            DevicePattern::of_columns(a.rows, &built.row_offsets, built.columns, RowOrder::default())?;
        Ok(Self { pattern: Arc::new(pattern), permutation: built.permutation })
    }
}

impl<T: Value, I: Index> CsrMatrix<T, I> {
    /// Aᵀ, with its values as they are in A when `stream` comes to this. Its rows are sorted, and it is a matrix as any
    /// other: plans are made for it, and all the transposed matrices of one pattern share theirs. Of a batch each matrix is
    /// transposed. Types stay, so that with 16-bit indices A may have 65,535 rows at most.
    ///
    /// The first call for a pattern works out the transposed pattern, and waits for the device. Later calls make room for
    /// the values and gather them. [`update_from`](CsrMatrix::update_from) saves the room, too.
    ///
    /// ```
    /// use lacuna::matrix::Csr;
    /// use lacuna::{CsrMatrix, Device};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // [ 1 0 2 ]
    /// // [ 0 0 3 ]
    /// let a = Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 2], vec![1.0, 2.0, 3.0])?;
    /// let device = Device::simulator();
    /// let stream = device.stream()?;
    /// let mut a = CsrMatrix::new(&device, &a)?;
    /// let mut t = a.transposed(&stream)?;
    /// assert_eq!((t.rows(), t.cols()), (3, 2));
    /// assert_eq!(t.values()?.download(&stream)?, [1.0, 2.0, 3.0]);
    ///
    /// a.values_mut()?.upload(&[4.0, 5.0, 6.0])?;
    /// t.update_from(&stream, &a)?;
    /// assert_eq!(t.values()?.download(&stream)?, [4.0, 5.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::OtherDevice`] for a stream of another device; [`Error::TooLarge`] above 65,535 rows with `u16`;
    /// [`Error::OutOfMemory`], or what the driver says.
    pub fn transposed(&self, stream: &Stream) -> Result<Self> {
        let transposed = self.transposed_pattern(stream)?;
        let mut matrix = Self::unfilled(Arc::clone(&transposed.pattern), self.batch(), self.device())?;
        transposed.fill(stream, self, &mut matrix)?;
        Ok(matrix)
    }

    /// Replaces the values of Aᵀ, this matrix, by those of `a`, of whose pattern it was made by
    /// [`transposed`](CsrMatrix::transposed). Nothing is allocated, so it can be recorded in a graph; returns at once.
    ///
    /// # Errors
    /// [`Error::OtherTranspose`] where this is not the transposed of `a`'s pattern; [`Error::Parameter`] where the batch of
    /// `a` is another; [`Error::Prepacked`] where this one's values stay as they are; [`Error::OtherDevice`] for a stream of
    /// another device; what the driver says.
    pub fn update_from(&mut self, stream: &Stream, a: &Self) -> Result<()> {
        a.device().expect_same(OPERATION, "the stream", stream.device())?;
        let transposed = match a.pattern().derived.get::<TransposedPattern<I>>() {
            Some(transposed) if Arc::ptr_eq(&transposed.pattern, self.pattern()) => transposed,
            _ => return Err(Error::OtherTranspose { operation: OPERATION }),
        };
        let expected = || format!("that of Aᵀ, {}", self.batch());
        Error::expect(a.batch() == self.batch(), OPERATION, "the batch of A", expected, a.batch())?;
        transposed.fill(stream, a, self)
    }

    /// The transposed pattern: worked out by the first call, which waits for the device, and then kept with this
    /// pattern, for all matrices that share it.
    ///
    /// # Errors
    /// As [`transposed`](CsrMatrix::transposed).
    pub fn transposed_pattern(&self, stream: &Stream) -> Result<&TransposedPattern<I>> {
        self.device().expect_same(OPERATION, "the stream", stream.device())?;
        self.pattern().derived.get_or_make(|| TransposedPattern::of(self.pattern(), stream))
    }
}

/// Launches a kernel with so many rows of thread blocks, each over so many items (not 0).
pub(in crate::ops) fn launch<K: Kernel<Tile = Tile>>(
    stream: &Stream,
    items: u32,
    rows: u32,
    args: &K::Args,
) -> Result<()> {
    let grid = |entry: &lacuna_kernels::Entry<Tile>| [items.div_ceil(entry.tile.block_items), rows, 1];
    launch_kernel::<K>(stream, entries::transpose(), grid, args)
}
