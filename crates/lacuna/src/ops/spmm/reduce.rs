//! What becomes of a row's products.
use lacuna_gpu::GlobalPtr;
use lacuna_kernels::RowRecord;

use crate::pattern::DevicePattern;
use crate::{Buffer, Index, Result};

/// What each element of C is of its products A\[i, k\]·B\[k, n\], over the nonzeros k of row i. PyTorch's `reduce`. Of a row without
/// nonzeros it is 0, whatever is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduce {
    /// Their sum.
    #[default]
    Sum,
    /// Their sum times one over the row's number of nonzeros, rounded to `f32`. PyTorch's `mean`.
    Mean,
    /// The greatest, each rounded to `f32`; NaN if one is NaN. A zero is +0. PyTorch's `amax`.
    Max,
    /// The least, likewise. PyTorch's `amin`.
    Min,
}

impl Reduce {
    /// Whether it is one of the products: by kernels that compare.
    pub(super) fn is_extremum(self) -> bool {
        matches!(self, Self::Max | Self::Min)
    }
}

/// One over the number of nonzeros of each row; 1 for a row that has none.
struct InverseLengths(Buffer<f32>);

impl<I: Index> DevicePattern<I> {
    /// One over the number of nonzeros of each row, by which sums become means. The first call works it out on the host, and
    /// waits for the device.
    pub(super) fn inverse_lengths(&self) -> Result<GlobalPtr<f32>> {
        let make = || {
            let device = self.row_table.device();
            let table = self.row_table.download(&device.stream()?)?;
            let mut inverse = vec![1.0; self.rows];
            for record in table.chunks_exact(RowRecord::WORDS) {
                let length = record[2] - record[1];
                inverse[record[0] as usize] = (1.0 / f64::from(length.max(1))) as f32;
            }
            Ok(InverseLengths(device.upload(&inverse)?))
        };
        Ok(self.derived.get_or_make(make)?.0.as_slice().pointer())
    }
}
