//! A dense tensor.
use super::WeightsError;

/// A dense tensor of `f32`, the last dimension's elements side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    values: Vec<f32>,
}

impl Tensor {
    /// A tensor of this shape.
    ///
    /// # Errors
    /// [`WeightsError::Values`] where there are not as many values as the shape says.
    pub fn new(shape: Vec<usize>, values: Vec<f32>) -> Result<Self, WeightsError> {
        let expected = shape.iter().fold(1, |product: usize, &extent| product.saturating_mul(extent));
        if values.len() != expected {
            return Err(WeightsError::Values { shape, expected, got: values.len() });
        }
        Ok(Self { shape, values })
    }

    /// A tensor whose values are as many as its shape says by construction.
    pub(crate) fn from_parts(shape: Vec<usize>, values: Vec<f32>) -> Self {
        debug_assert_eq!(shape.iter().product::<usize>(), values.len());
        Self { shape, values }
    }

    /// Its shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its values.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Its values, to be changed.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }
}
