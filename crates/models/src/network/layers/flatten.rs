//! Maps as rows.
use super::only;
use crate::network::{Problem, Shape};

/// Each image as a row of features: channels × rows × columns, as PyTorch flattens. It moves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flatten;

impl Flatten {
    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        let input = only(inputs)?;
        Ok(Shape::matrix(input.images, input.image_len()))
    }
}
