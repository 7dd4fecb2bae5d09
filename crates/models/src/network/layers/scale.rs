//! A batch norm that no convolution comes before.
use lacuna::conv;

use super::only;
use crate::network::{Activation, Convolution, Norm, Problem, Shape};

/// A batch norm by itself: a factor and a sum for each channel, and an activation. Where a convolution comes before, and nothing
/// else reads that one's result, [`Conv::norm`](super::Conv::norm) costs nothing.
///
/// Its tensors are those of a batch norm with the layer's name: `<layer>.weight`, `.bias`, `.running_mean`, `.running_var`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// What is made of sums.
    pub activation: Activation,
}

impl Scale {
    /// Without activation.
    pub fn norm() -> Self {
        Self { activation: Activation::Identity }
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        only(inputs)
    }

    pub(super) fn convolution(&self, name: &str, input: Shape) -> Convolution {
        Convolution {
            shape: conv::Shape::depthwise(input.channels, input.size, [1, 1]).batch(input.images),
            filters: None,
            bias: None,
            norm: Some(Norm::new(name)),
            activation: self.activation,
            residual: false,
        }
    }
}
