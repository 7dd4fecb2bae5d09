//! Layer norms.
use super::only;
use crate::network::{Parameter, Problem, Role, Shape};

/// A layer norm over the channels of each pixel: Ba, Kiros, Hinton, *Layer Normalization* (2016). A token of a sequence is a pixel, and its
/// features are channels.
///
/// Its tensors are `<layer>.weight`, the factors, and `<layer>.bias`, an element a channel each, as PyTorch has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNorm {
    /// What is added to variances.
    pub epsilon: f32,
}

impl LayerNorm {
    /// With PyTorch's usual epsilon, 10⁻⁵.
    pub fn new() -> Self {
        Self { epsilon: 1e-5 }
    }

    /// With this added to variances.
    #[must_use]
    pub fn epsilon(self, epsilon: f32) -> Self {
        Self { epsilon }
    }

    /// The names of factors and sums of a layer of this name.
    pub(crate) fn tensors(layer: &str) -> [String; 2] {
        ["weight", "bias"].map(|part| format!("{layer}.{part}"))
    }

    pub(super) fn output(&self, inputs: &[Shape]) -> Result<Shape, Problem> {
        let input = only(inputs)?;
        let is_epsilon = self.epsilon >= 0.0 && self.epsilon.is_finite();
        Problem::expect_size(is_epsilon, "epsilon", "0 or above, and finite", self.epsilon)?;
        Ok(input)
    }

    pub(super) fn parameters(name: &str, input: Shape) -> Vec<Parameter> {
        let roles = [Role::Gamma, Role::Beta];
        let of = |(name, role)| Parameter { name, shape: vec![input.channels], role };
        Self::tensors(name).into_iter().zip(roles).map(of).collect()
    }
}

impl Default for LayerNorm {
    fn default() -> Self {
        Self::new()
    }
}
