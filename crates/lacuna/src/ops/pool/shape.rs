//! The sizes of a pooling.
use super::OPERATION;
use crate::op::{elements, expect_product_at_most, out_extent};
use crate::{Error, Result};

/// The sizes of a pooling: a batch of maps of channels × rows × columns, and windows on them.
///
/// ```
/// # use lacuna::pool::Shape;
/// let shape = Shape::new(64, [112, 112], [3, 3]).strides([2, 2]).padding([1, 1]).batch(16);
/// assert_eq!(shape.out_size(), [56, 56]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Shape {
    /// Images.
    pub batch: usize,
    /// Channels.
    pub channels: usize,
    /// Rows and columns of the input.
    pub size: [usize; 2],
    /// Rows and columns of a window.
    pub window: [usize; 2],
    /// Rows and columns from one window to the next.
    pub strides: [usize; 2],
    /// Rows above and below, and columns on both sides: at most half of a window's, rounded down, so that every window meets the map.
    pub padding: [usize; 2],
}

impl Shape {
    /// One image, windows side by side (PyTorch's default strides), and no padding.
    pub const fn new(channels: usize, size: [usize; 2], window: [usize; 2]) -> Self {
        Self { batch: 1, channels, size, window, strides: window, padding: [0, 0] }
    }

    /// One image, and a window as large as the map: a result a channel.
    pub const fn global(channels: usize, size: [usize; 2]) -> Self {
        Self::new(channels, size, size)
    }

    /// Whether there is one window, and it is the map.
    pub const fn is_global(&self) -> bool {
        let [rows, columns] = self.size;
        let [padding_rows, padding_columns] = self.padding;
        self.window[0] == rows && self.window[1] == columns && padding_rows == 0 && padding_columns == 0
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

    /// Rows and columns of the result: none where a window is larger than the padded map. A last part that a whole window does not
    /// fit into is left out.
    pub const fn out_size(&self) -> [usize; 2] {
        [self.out_extent(0), self.out_extent(1)]
    }

    const fn out_extent(&self, d: usize) -> usize {
        out_extent(self.size[d], self.window[d], self.strides[d], self.padding[d])
    }

    /// Elements of the input. Like other numbers of elements, the greatest `usize` where no plan can be made.
    pub const fn input_len(&self) -> usize {
        elements([self.batch, self.channels, self.size[0], self.size[1]])
    }

    /// Elements of the result.
    pub const fn output_len(&self) -> usize {
        let [rows, columns] = self.out_size();
        elements([self.batch, self.channels, rows, columns])
    }

    /// Whether windows are right, and kernels can count all this: sizes, and the bytes of an image, in 32 bits.
    pub(super) fn check(&self, bytes: usize) -> Result<()> {
        let Self { batch, channels, size, window, strides, padding } = *self;
        for (what, numbers) in
            [("rows and columns of the map", size), ("the window", window), ("strides", strides)]
        {
            let are_there = numbers.iter().all(|&number| number > 0);
            Error::expect(are_there, OPERATION, what, || "at least 1", format!("{numbers:?}"))?;
        }
        let most = window.map(|extent| extent / 2);
        let is_less = padding[0] <= most[0] && padding[1] <= most[1];
        let expected = || format!("at most {most:?}, half of the window");
        Error::expect(is_less, OPERATION, "the padding", expected, format!("{padding:?}"))?;
        let limit = i32::MAX as usize;
        for number in [window, strides, size].as_flattened() {
            expect_product_at_most("a size of the pooling", limit / 4, &[*number])?;
        }
        let [rows, columns] = self.out_size();
        let input = [bytes, channels, size[0], size[1]];
        expect_product_at_most("the bytes of an image", limit, &input)?;
        let result = [bytes, channels, rows.max(1), columns.max(1)];
        expect_product_at_most("the bytes of an image of the result", limit, &result)?;
        let limit = isize::MAX as usize / 8;
        expect_product_at_most("the number of input elements", limit, &[batch, channels, size[0], size[1]])?;
        expect_product_at_most("the number of results", limit, &[batch, channels, rows, columns])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_fit_have_results() {
        let base = Shape::new(1, [7, 8], [3, 2]);
        assert_eq!(base.out_size(), [2, 4]);
        assert_eq!(base.strides([2, 3]).padding([1, 1]).out_size(), [4, 3]);
        assert_eq!(Shape::new(1, [2, 9], [3, 3]).out_size(), [0, 3]);
        let global = Shape::global(5, [7, 4]).batch(3);
        assert!(global.is_global() && global.output_len() == 15);
        assert!(!global.padding([0, 1]).is_global());
    }

    #[test]
    fn numbers_that_nothing_can_hold_are_no_panic() {
        let shape = Shape::new(usize::MAX, [usize::MAX, 3], [2, 2]).strides([1, 1]);
        assert_eq!((shape.input_len(), shape.output_len()), (usize::MAX, usize::MAX));
        assert_eq!(shape.batch(0).input_len(), 0);
        assert!(shape.check(4).is_err() && Shape::new(1, [3, 3], [0, 0]).check(4).is_err());
        assert_eq!(Shape::new(1, [usize::MAX, 1], [0, 1]).strides([1, 1]).out_size()[0], usize::MAX);
    }
}
