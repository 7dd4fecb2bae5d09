//! How tokens and their features lie.
use super::OPERATION;
use crate::op::{Layout, MAX_WIDTH, strides};
use crate::{Error, Result};

/// Tokens and their features.
///
/// ```
/// # use lacuna::layer_norm::Shape;
/// let of_transformer = Shape::Rows { rows: 4 * 512, features: 768 };
/// let of_maps = Shape::Maps { images: 16, channels: 96, pixels: 56 * 56 };
/// assert_eq!([of_transformer.tokens(), of_maps.tokens()], [2048, 16 * 56 * 56]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// rows × features, row by row: the features of a token beside each other. So do maps in NHWC lie, a row a pixel.
    Rows {
        /// Tokens.
        rows: usize,
        /// Features of each.
        features: usize,
    },
    /// images × channels × pixels, maps in NCHW: a token is a pixel, and its features, the channels, are a plane apart.
    Maps {
        /// Images.
        images: usize,
        /// Features of a token.
        channels: usize,
        /// Tokens of an image.
        pixels: usize,
    },
}

/// The most rows or images: the kernels' 32-bit numbers run past the last row by a block's.
const MAX_ROWS: usize = u32::MAX as usize - 4096;

impl Shape {
    /// Features of a token.
    pub const fn features(&self) -> usize {
        match *self {
            Self::Rows { features, .. } => features,
            Self::Maps { channels, .. } => channels,
        }
    }

    /// Tokens; the greatest `usize` where no plan can be made.
    pub const fn tokens(&self) -> usize {
        self.outer().saturating_mul(self.pixels())
    }

    /// Rows, or images.
    pub(super) const fn outer(&self) -> usize {
        match *self {
            Self::Rows { rows, .. } => rows,
            Self::Maps { images, .. } => images,
        }
    }

    /// Elements from one feature of a token to the next.
    pub(super) const fn pixels(&self) -> usize {
        match *self {
            Self::Rows { .. } => 1,
            Self::Maps { pixels, .. } => pixels,
        }
    }

    /// How x and the result lie, with these strides, in elements of `bytes` bytes.
    pub(super) fn layouts(&self, bytes: u32, [input, out]: [Option<usize>; 2]) -> Result<[Layout; 2]> {
        Error::expect_at_most("the number of features", MAX_WIDTH, self.features())?;
        Error::expect_at_most("the number of pixels", MAX_WIDTH, self.pixels())?;
        let (most, unit) = match self {
            Self::Rows { .. } => ("the number of rows", "features"),
            Self::Maps { .. } => ("the number of images", "channels · pixels"),
        };
        Error::expect_at_most(most, MAX_ROWS, self.outer())?;
        // Both are below 2³⁰.
        let width = self.features() * self.pixels();
        Error::expect_at_most("the number of elements of an image", MAX_WIDTH, width)?;
        let layout = |strides| Layout::new(self.outer(), width, bytes, strides);
        Ok([
            layout(strides!(OPERATION, "x", unit, input))?,
            layout(strides!(OPERATION, "the result", unit, out))?,
        ])
    }
}
