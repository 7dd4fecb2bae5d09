//! Bags of indices on a device.
use std::sync::Arc;

use lacuna_kernels::import::SourceIndex;
use lacuna_kernels::nhot::TableIndex;

use super::OPERATION;
use crate::{Buffer, Device, Element, Error, Result, SliceMut};

/// An index of a table's row: `u32`, or `u64` for tables of more rows than that counts.
pub trait BagIndex: Element + TableIndex + SourceIndex + sealed::Sealed {
    /// The most rows of a table.
    const MAX_ROWS: usize;
    /// The index of a row below the type's limit.
    #[doc(hidden)]
    fn from_row(row: usize) -> Self;
    /// The row of an index; of one that no memory holds, one that no table has.
    #[doc(hidden)]
    fn to_row(self) -> usize;
}

mod sealed {
    pub trait Sealed {}
}

/// Writes the implementation for a type of at most so many rows.
macro_rules! index {
    ($type:ident, $max_rows:expr) => {
        impl sealed::Sealed for $type {}
        impl BagIndex for $type {
            const MAX_ROWS: usize = $max_rows;
            fn from_row(row: usize) -> Self {
                row as Self
            }
            fn to_row(self) -> usize {
                usize::try_from(self).unwrap_or(usize::MAX)
            }
        }
    };
}
index!(u32, u32::MAX as usize);
index!(u64, isize::MAX as usize);

/// Bags of indices of a table's rows: the nonzeros of a matrix with few in each row, in which an index may be there more than
/// once. Each index may have a weight; without, it is 1.
///
/// Every index is checked when the bags are made, so that no kernel reads outside of the table: by [`new`](Bags::new) on the host,
/// in a pass beside the upload, by [`from_indices`](Bags::from_indices) on the device. Bags made by [`with_weights`](Bags::with_weights) share them, and
/// plans are made for them.
#[derive(Debug)]
pub struct Bags<I: BagIndex = u32> {
    pattern: Arc<BagPattern<I>>,
    weights: Option<Buffer<f32>>,
}

/// Which rows the bags name.
#[derive(Debug)]
pub(in crate::ops) struct BagPattern<I: BagIndex> {
    pub(super) table_rows: usize,
    /// Nonzeros of the largest bag.
    pub(in crate::ops) longest: usize,
    /// Where each bag starts, and the end of the last.
    pub(in crate::ops) offsets: Buffer<u32>,
    pub(in crate::ops) indices: Buffer<I>,
}

/// The most bags, and the most indices: the kernels' 32-bit numbers run past the last by what a block looks at.
const MAX: usize = u32::MAX as usize - 4096;

impl<I: BagIndex> Bags<I> {
    /// Bags of rows of a table of `table_rows` rows: bag `i` has the indices `offsets[i]..offsets[i + 1]`, so that there is one
    /// offset more than bags.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = lacuna::Device::simulator();
    /// let bags = lacuna::Bags::<u32>::new(&device, 10, &[0, 2, 2, 3], &[7, 1, 7])?;
    /// assert_eq!((bags.bags(), bags.nnz()), (3, 3));
    /// assert!(lacuna::Bags::<u32>::new(&device, 10, &[0, 1], &[10]).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] for offsets that do not go from 0 up to the number of indices, and for an index that is not a row;
    /// [`Error::TooLarge`] above 2³² − 4097 bags or indices, or for more rows than `I` counts; [`Error::OutOfMemory`], or what
    /// the driver says.
    pub fn new(device: &Device, table_rows: usize, offsets: &[usize], indices: &[I]) -> Result<Self> {
        Self::expect_sizes(table_rows, offsets.len(), indices.len())?;
        check_offsets(offsets, indices.len())?;
        if let Some(at) = indices.iter().position(|index| index.to_row() >= table_rows) {
            let expected = format!("below {table_rows}, the rows of the table");
            let got = format!("{:?} (number {at} of {})", indices[at], indices.len());
            return Err(Error::parameter(OPERATION, "an index", expected, got));
        }
        Self::of_checked(table_rows, offsets, device.upload(indices)?)
    }

    /// Whether kernels can index so many rows, bags (an offset more) and indices.
    pub(in crate::ops) fn expect_sizes(table_rows: usize, offsets: usize, indices: usize) -> Result<()> {
        Error::expect_at_most("the number of rows of the table", I::MAX_ROWS, table_rows)?;
        Error::expect_at_most("the number of bags", MAX, offsets.saturating_sub(1))?;
        Error::expect_at_most("the number of indices", MAX, indices)
    }

    /// Bags of offsets and indices that were found to be right.
    pub(in crate::ops) fn of_checked(
        table_rows: usize,
        offsets: &[usize],
        indices: Buffer<I>,
    ) -> Result<Self> {
        let longest = offsets.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        let narrow: Vec<u32> = offsets.iter().map(|&offset| offset as u32).collect();
        let offsets = indices.device().upload(&narrow)?;
        let pattern = BagPattern { table_rows, longest, offsets, indices };
        Ok(Self { pattern: Arc::new(pattern), weights: None })
    }

    /// The same bags with a weight for each index, in their order: it multiplies the row.
    ///
    /// # Errors
    /// [`Error::Length`] where there are not as many weights as indices; [`Error::OutOfMemory`].
    pub fn with_weights(&self, weights: &[f32]) -> Result<Self> {
        let shape = || "one an index".into();
        Error::expect_len(OPERATION, "the slice of weights", shape, self.nnz(), weights.len())?;
        let weights = self.device().upload(weights)?;
        Ok(Self { pattern: Arc::clone(&self.pattern), weights: Some(weights) })
    }

    /// The weights, to replace; `None` where there are none. Plans for these bags stay good.
    pub fn weights_mut(&mut self) -> Option<SliceMut<'_, f32>> {
        self.weights.as_mut().map(Buffer::as_slice_mut)
    }

    /// The number of bags.
    pub fn bags(&self) -> usize {
        self.pattern.bags()
    }
    /// The number of indices in all bags.
    pub fn nnz(&self) -> usize {
        self.pattern.indices.len()
    }
    /// The number of rows of the table.
    pub fn table_rows(&self) -> usize {
        self.pattern.table_rows
    }
    /// The device that holds them.
    pub fn device(&self) -> &Device {
        self.pattern.indices.device()
    }

    pub(in crate::ops) fn pattern(&self) -> &Arc<BagPattern<I>> {
        &self.pattern
    }
    /// The address of the weights; 0 where there are none.
    pub(super) fn weights_address(&self) -> u64 {
        self.weights.as_ref().map_or(0, |weights| weights.as_slice().address())
    }
}

impl<I: BagIndex> BagPattern<I> {
    pub(super) fn bags(&self) -> usize {
        self.offsets.len() - 1
    }
}

/// Whether these are offsets of bags of so many indices.
pub(in crate::ops) fn check_offsets(offsets: &[usize], indices: usize) -> Result<()> {
    let refused =
        |expected: String, got: String| Err(Error::parameter(OPERATION, "the offsets", expected, got));
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return refused("one more than bags".into(), "none".into());
    };
    if let Some(at) = offsets.windows(2).position(|ends| ends[0] > ends[1]) {
        let got = format!("{}, then {} (number {})", offsets[at], offsets[at + 1], at + 1);
        return refused("in ascending order".into(), got);
    }
    if first != 0 || last != indices {
        return refused(
            format!("from 0 to {indices}, the number of indices"),
            format!("from {first} to {last}"),
        );
    }
    Ok(())
}
