//! Channels as pixels.
use super::only;
use crate::network::{Problem, Shape};

/// Each pixel becomes a square of `block` × `block` pixels, and its channels those of the square, as TensorFlow orders them: of C channels that
/// come out, number (y·block + x)·C + c of a pixel is channel c at row y and column x of its square.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthToSpace {
    /// Rows and columns of a square.
    pub block: usize,
}

impl DepthToSpace {
    /// Into squares of so many rows and columns.
    pub fn new(block: usize) -> Self {
        Self { block }
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        let input = only(inputs)?;
        let pixels = self.block.saturating_mul(self.block);
        let divides = pixels > 0 && input.channels.is_multiple_of(pixels);
        let got = || format!("{} for {} channels", self.block, input.channels);
        Problem::expect_size(divides, "the block", "one whose square divides the channels", got())?;
        let size = input.size.map(|extent| extent.saturating_mul(self.block));
        Ok(Shape::maps(input.images, input.channels / pixels, size))
    }
}
