//! Maps as rows.
use lacuna::conv::MapLayout;

use super::only;
use crate::network::{Problem, Shape};

/// Each image as a row of features: channels × rows × columns, as PyTorch flattens. In NCHW it moves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flatten;

impl Flatten {
    /// Whether maps that lie so have their elements in this order.
    pub(crate) fn moves_nothing(of: Shape, layout: MapLayout) -> bool {
        layout == MapLayout::Nchw || of.pixels() == 1 || of.channels == 1
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        row_an_image(inputs)
    }
}

/// Each image as a row of features: rows × columns × channels, as TensorFlow flattens. In NHWC it moves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlattenNhwc;

impl FlattenNhwc {
    /// Whether maps that lie so have their elements in this order.
    pub(crate) fn moves_nothing(of: Shape, layout: MapLayout) -> bool {
        layout == MapLayout::Nhwc || of.pixels() == 1 || of.channels == 1
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        row_an_image(inputs)
    }
}

fn row_an_image(inputs: &[Shape]) -> Result<Shape, Problem> {
    let input = only(inputs)?;
    Ok(Shape::matrix(input.images, input.image_len()))
}
