//! Linear layers.
use lacuna::conv;

use super::only;
use crate::network::{Activation, Convolution, Problem, Shape};

/// A linear layer of a matrix, rows × features: act(x·wᵀ + bias).
///
/// Its weights are tensor `<layer>.weight`, outputs × features, its bias `<layer>.bias`.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// Features of the result.
    pub outputs: usize,
    /// Whether it has a bias.
    pub bias: bool,
    /// What is made of sums.
    pub activation: Activation,
}

impl Linear {
    /// With a bias, without activation.
    pub fn new(outputs: usize) -> Self {
        Self { outputs, bias: true, activation: Activation::Identity }
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        let input = only(inputs)?;
        if input.size != [1, 1] {
            return Err(Problem::NotFlat { got: input });
        }
        Problem::expect_size(self.outputs > 0, "outputs", "at least 1", self.outputs)?;
        Ok(Shape::matrix(input.images, self.outputs))
    }

    pub(super) fn convolution(&self, name: &str, input: Shape) -> Convolution {
        Convolution {
            shape: conv::Shape::new(input.channels, [1, 1], self.outputs, [1, 1]).batch(input.images),
            filters: Some((format!("{name}.weight"), vec![self.outputs, input.channels])),
            bias: self.bias.then(|| format!("{name}.bias")),
            norm: None,
            activation: self.activation,
            residual: false,
        }
    }
}
