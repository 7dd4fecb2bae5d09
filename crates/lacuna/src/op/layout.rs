//! How dense operands lie in their buffers.
use crate::{Device, Element, Error, Result, Slice};

/// The most elements of a row of a dense operand, where kernels count its bytes in 32 bits.
pub(crate) const MAX_WIDTH: usize = (1 << 30) - 1;

/// A batch of row-major matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    operation: &'static str,
    width: &'static str,
    rows: usize,
    n: usize,
    batch: usize,
    /// Elements from one row to the next.
    pub(crate) stride: usize,
    /// The same in bytes.
    pub(crate) stride_bytes: u32,
    /// Elements from one matrix to the next.
    pub(crate) batch_stride: usize,
    /// Elements up to the last of the last matrix.
    least: usize,
    /// The same, with the gap after each last row.
    most: usize,
}

/// What tells a layout beside the numbers of rows and columns, and what messages call the operation, the number of columns,
/// its length and its stride.
pub(crate) struct Strides {
    pub(crate) operation: &'static str,
    pub(crate) width: &'static str,
    pub(crate) len_what: &'static str,
    pub(crate) stride_what: &'static str,
    pub(crate) stride: Option<usize>,
    pub(crate) batch: usize,
    pub(crate) batch_stride: Option<usize>,
}

/// [`Strides`] of the operand of this name: `strides!(OPERATION, "B", width, stride, batch, batch_stride)`; without the last two
/// of a single matrix.
macro_rules! strides {
    ($operation:expr, $name:literal, $width:expr, $stride:expr) => {
        $crate::op::strides!($operation, $name, $width, $stride, 1, None)
    };
    ($operation:expr, $name:literal, $width:expr, $stride:expr, $batch:expr, $batch_stride:expr) => {
        $crate::op::layout::Strides {
            operation: $operation,
            width: $width,
            len_what: concat!("the number of elements of ", $name),
            stride_what: concat!("the stride of ", $name),
            stride: $stride,
            batch: $batch,
            batch_stride: $batch_stride,
        }
    };
}
pub(crate) use strides;

impl Layout {
    /// The layout of matrices of `rows` rows and `n` columns, of elements of `bytes` bytes.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a stride below `n`; [`Error::TooLarge`] for one of 4 GiB, which the kernels cannot count,
    /// and where no buffer can hold the elements.
    pub(crate) fn new(rows: usize, n: usize, bytes: u32, strides: Strides) -> Result<Self> {
        let Strides { operation, width, len_what, stride_what, stride, batch, batch_stride } = strides;
        let stride = stride.unwrap_or(n);
        let expected = || format!("at least {width} = {n}, the elements of a row");
        Error::expect(stride >= n, operation, stride_what, expected, stride)?;
        Error::expect_at_most(stride_what, (u32::MAX / bytes) as usize, stride)?;
        let stride_bytes = stride as u32 * bytes;
        let limit = isize::MAX as usize / bytes as usize;
        let extents = || {
            let matrix = rows.checked_mul(stride)?;
            let batch_stride = batch_stride.unwrap_or(matrix);
            if rows == 0 || n == 0 || batch == 0 {
                return Some((batch_stride, 0, matrix.max(batch.checked_mul(batch_stride)?)));
            }
            let least = (batch - 1).checked_mul(batch_stride)?.checked_add(matrix - stride + n)?;
            let most = batch.checked_mul(batch_stride)?.max(matrix).max(least);
            Some((batch_stride, least, most))
        };
        let extents = extents().filter(|&(_, least, _)| least <= limit);
        let too_large = || Error::too_large(len_what, limit, usize::MAX);
        let (batch_stride, least, most) = extents.ok_or_else(too_large)?;
        Ok(Self { operation, width, rows, n, batch, stride, stride_bytes, batch_stride, least, most })
    }

    /// Whether there is something between rows.
    pub(crate) fn has_gaps(&self) -> bool {
        self.stride != self.n
    }

    /// The least number of elements that the operand must have.
    pub(crate) fn len(&self) -> usize {
        self.least
    }

    /// Whether `operand` is on `device` and lies so: it ends with the last element, or with the gap after it.
    ///
    /// # Errors
    /// [`Error::OtherDevice`] and [`Error::Length`], which call it `what`.
    pub(crate) fn check<T: Element>(
        &self,
        what: &'static str,
        device: &Device,
        operand: Slice<'_, T>,
    ) -> Result<()> {
        device.expect_same(self.operation, what, operand.device())?;
        let got = operand.len();
        if (self.least..=self.most).contains(&got) {
            return Ok(());
        }
        let mut shape = format!("{}×{}", self.rows, self.n);
        if self.stride != self.n {
            shape += &format!(", {} elements from row to row", self.stride);
        }
        if self.batch != 1 {
            shape += &format!(", a batch of {}, {} elements apart", self.batch, self.batch_stride);
        }
        if self.most > self.least {
            shape += &format!("; up to {} with the gap at its end", self.most);
        }
        Err(Error::Length { operation: self.operation, what, shape, expected: self.least, got })
    }

    /// Whether each element belongs to one matrix and row: matrices lie one after another, or side by side.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub(crate) fn expect_disjoint(&self, batch_stride_what: &'static str) -> Result<()> {
        if self.batch <= 1 || self.least == 0 {
            return Ok(());
        }
        let extent = (self.rows - 1) * self.stride + self.n;
        let Self { operation, width, n, batch, stride, batch_stride, .. } = *self;
        let after_another = batch_stride >= extent;
        let side_by_side = batch_stride >= n && (batch - 1) * batch_stride + n <= stride.max(n);
        let expected = || {
            format!(
                "at least {extent}, so that matrices lie one after another, or at least {width} = {n} with room for {batch} \
                 side by side in a row's stride of {stride}"
            )
        };
        Error::expect(after_another || side_by_side, operation, batch_stride_what, expected, batch_stride)
    }

    /// Whether every row starts at a multiple of `vector` elements, if the first does.
    pub(crate) fn allows(&self, vector: u32) -> bool {
        let vector = vector as usize;
        self.stride.is_multiple_of(vector) && (self.batch <= 1 || self.batch_stride.is_multiple_of(vector))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strides(stride: Option<usize>, batch: usize, batch_stride: Option<usize>) -> Strides {
        let (operation, width) = ("a test", "N");
        Strides { operation, width, len_what: "B", stride_what: "its stride", stride, batch, batch_stride }
    }

    fn layout(rows: usize, n: usize, stride: Option<usize>, batch: usize, apart: Option<usize>) -> Layout {
        let strides = strides(stride, batch, apart);
        Layout::new(rows, n, 4, strides).unwrap()
    }

    #[test]
    fn lengths_count_up_to_the_last_element() {
        let lengths = |layout: Layout| (layout.least, layout.most);
        assert_eq!(lengths(layout(3, 5, None, 1, None)), (15, 15));
        assert_eq!(lengths(layout(3, 5, Some(8), 1, None)), (21, 24));
        assert_eq!(lengths(layout(3, 5, Some(8), 4, None)), (24 * 3 + 21, 96));
        assert_eq!(lengths(layout(3, 5, None, 4, Some(0))), (15, 15));
        assert_eq!(lengths(layout(3, 5, Some(20), 4, Some(5))), (15 + 45, 60));
        assert_eq!(lengths(layout(0, 5, None, 4, None)), (0, 0));
        assert_eq!(lengths(layout(3, 0, None, 1, None)), (0, 0));
        assert_eq!(lengths(layout(3, 5, None, 0, None)), (0, 15));
    }

    #[test]
    fn overlaps_are_seen() {
        assert!(layout(3, 5, Some(8), 2, Some(21)).expect_disjoint("it").is_ok());
        assert!(layout(3, 5, Some(8), 2, Some(20)).expect_disjoint("it").is_err());
        assert!(layout(3, 5, Some(10), 2, Some(5)).expect_disjoint("it").is_ok());
        assert!(layout(3, 5, Some(10), 3, Some(5)).expect_disjoint("it").is_err());
        assert!(layout(3, 5, Some(10), 2, Some(4)).expect_disjoint("it").is_err());
        assert!(layout(3, 5, None, 2, Some(0)).expect_disjoint("it").is_err());
        assert!(layout(3, 5, None, 1, Some(0)).expect_disjoint("it").is_ok());
    }

    #[test]
    fn sizes_that_nothing_can_hold_are_refused() {
        for (rows, stride, batch, apart) in [
            (usize::MAX, Some(5), 1, None),
            (2, Some(usize::MAX), 1, None),
            (2, None, usize::MAX, None),
            (2, None, 3, Some(usize::MAX / 2)),
            (2, Some(isize::MAX as usize / 4), 1, None),
        ] {
            let strides = strides(stride, batch, apart);
            let error = Layout::new(rows, 5, 4, strides).unwrap_err();
            assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        }
    }
}
