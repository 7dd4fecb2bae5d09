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
    /// What is added to variances.
    pub epsilon: f32,
    /// What is made of sums.
    pub activation: Activation,
}

impl Scale {
    /// Without activation, and with PyTorch's usual epsilon, 10⁻⁵.
    pub fn norm() -> Self {
        Self { epsilon: 1e-5, activation: Activation::Identity }
    }

    /// With this added to variances.
    #[must_use]
    pub fn epsilon(self, epsilon: f32) -> Self {
        Self { epsilon, ..self }
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        only(inputs)
    }

    pub(super) fn convolution(&self, name: &str, input: Shape) -> Convolution {
        Convolution {
            shape: conv::Shape::depthwise(input.channels, input.size, [1, 1]).batch(input.images),
            filters: None,
            bias: None,
            norm: Some(Norm { epsilon: self.epsilon, ..Norm::new(name) }),
            activation: self.activation,
            residual: false,
        }
    }
}
