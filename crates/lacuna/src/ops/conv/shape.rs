//! The sizes of a convolution.
use super::OPERATION;
use crate::op::{elements, expect_product_at_most, out_extent};
use crate::{Error, Result};

/// The sizes of a convolution: a batch of maps of channels × rows × columns, with filters of channels × taps.
///
/// ```
/// # use lacuna::conv::Shape;
/// let shape = Shape::new(64, [56, 56], 128, [3, 3]).padding([1, 1]).strides([2, 2]).batch(16);
/// assert_eq!(shape.out_size(), [28, 28]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Shape {
    /// Images: B.
    pub batch: usize,
    /// Channels of the input: C.
    pub channels: usize,
    /// Rows and columns of the input: H, W.
    pub size: [usize; 2],
    /// Filters, which are the channels of the result: N.
    pub filters: usize,
    /// Rows and columns of a filter: R, S.
    pub taps: [usize; 2],
    /// Rows and columns from one output pixel to the next.
    pub strides: [usize; 2],
    /// Rows of zeros above and below, and columns of zeros on both sides.
    pub padding: [usize; 2],
    /// Groups of channels: 1, or for a depthwise convolution as many as channels, each with one filter of its own.
    pub groups: usize,
}

impl Shape {
    /// One image, strides of 1, and no padding.
    pub const fn new(channels: usize, size: [usize; 2], filters: usize, taps: [usize; 2]) -> Self {
        Self { batch: 1, channels, size, filters, taps, strides: [1, 1], padding: [0, 0], groups: 1 }
    }

    /// A depthwise convolution: each channel has a filter of its own. One image, strides of 1, and no padding.
    pub const fn depthwise(channels: usize, size: [usize; 2], taps: [usize; 2]) -> Self {
        Self { groups: channels, ..Self::new(channels, size, channels, taps) }
    }

    /// Whether each channel has a filter of its own. One channel with one filter counts as a usual convolution.
    pub const fn is_depthwise(&self) -> bool {
        self.groups > 1
    }

    /// Taps of a channel's filter, or the greatest `usize`.
    pub(super) const fn filter_taps(&self) -> usize {
        self.taps[0].saturating_mul(self.taps[1])
    }

    /// Whether each pixel of the result is made of one pixel of the input.
    pub(super) fn is_pointwise(&self) -> bool {
        !self.is_depthwise() && self.taps == [1, 1] && self.padding == [0, 0]
    }

    /// Channels that a filter reads.
    pub(super) const fn filter_channels(&self) -> usize {
        if self.is_depthwise() { 1 } else { self.channels }
    }

    /// The same with so many images.
    #[must_use]
    pub const fn batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }

    /// The same with these strides.
    #[must_use]
    pub const fn strides(self, strides: [usize; 2]) -> Self {
        Self { strides, ..self }
    }

    /// The same with this padding.
    #[must_use]
    pub const fn padding(self, padding: [usize; 2]) -> Self {
        Self { padding, ..self }
    }

    /// Rows and columns of the result: none where a filter is larger than the padded map.
    pub const fn out_size(&self) -> [usize; 2] {
        [self.out_extent(0), self.out_extent(1)]
    }

    const fn out_extent(&self, d: usize) -> usize {
        out_extent(self.size[d], self.taps[d], self.strides[d], self.padding[d])
    }

    /// Elements of the input. Like other numbers of elements, the greatest `usize` where no plan can be made.
    pub const fn input_len(&self) -> usize {
        elements([self.batch, self.channels, self.size[0], self.size[1]])
    }

    /// Elements of the filters: N × C × R × S; of a depthwise convolution C × R × S.
    pub const fn filters_len(&self) -> usize {
        elements([self.filters, self.filter_channels(), self.taps[0], self.taps[1]])
    }

    /// Elements of the result.
    pub const fn output_len(&self) -> usize {
        let [rows, columns] = self.out_size();
        elements([self.batch, self.filters, rows, columns])
    }

    /// Whether kernels can count all this: the bytes of an image, and pixels, in 32 bits.
    pub(crate) fn check(&self, bytes: usize) -> Result<()> {
        for (what, numbers) in [("taps", self.taps), ("strides", self.strides)] {
            let are_there = numbers.iter().all(|&number| number > 0);
            Error::expect(are_there, OPERATION, what, || "at least 1", format!("{numbers:?}"))?;
        }
        let is_known = self.groups == 1 || self.groups == self.channels && self.groups == self.filters;
        let expected =
            || format!("1, or as many as channels, {}, and filters, {}", self.channels, self.filters);
        Error::expect(is_known, OPERATION, "the number of groups", expected, self.groups)?;
        let limit = i32::MAX as usize;
        for numbers in [self.taps, self.strides, self.padding, self.size] {
            for number in numbers {
                expect_product_at_most("a size of the convolution", limit / 4, &[number])?;
            }
        }
        let [rows, columns] = self.out_size();
        expect_product_at_most(
            "the bytes of an image",
            limit,
            &[bytes, self.channels, self.size[0].max(1), self.size[1].max(1)],
        )?;
        expect_product_at_most(
            "the bytes of an image of the result",
            limit,
            &[bytes, self.filters, rows.max(1), columns.max(1)],
        )?;
        // Packed filters may have 127 more than there are.
        let filters = self.filters.saturating_add(127);
        expect_product_at_most(
            "the number of filter weights",
            limit,
            &[filters, self.filter_channels(), self.taps[0], self.taps[1]],
        )?;
        expect_product_at_most(
            "the pixels of the results",
            limit,
            &[self.batch, rows.max(1), columns.max(1)],
        )?;
        expect_product_at_most(
            "the number of input elements",
            isize::MAX as usize / 8,
            &[self.batch, self.channels, self.size[0], self.size[1]],
        )?;
        expect_product_at_most(
            "the number of results",
            isize::MAX as usize / 8,
            &[self.batch, self.filters, rows, columns],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_nothing_can_hold_are_no_panic() {
        let shape = Shape::new(usize::MAX, [usize::MAX, 3], 2, [3, 3]).padding([usize::MAX, 1]);
        assert_eq!((shape.input_len(), shape.output_len()), (usize::MAX, usize::MAX));
        assert_eq!(shape.batch(0).input_len(), 0);
        assert!(shape.check(4).is_err());
    }
}
