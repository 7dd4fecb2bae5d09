//! Weights as layers use them: with batch norms folded in.
use lacuna::Value;
use lacuna::conv::BatchNorm;

use super::{Weights, WeightsError};
use crate::network::Convolution;

/// Filters and bias of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded {
    /// Filters × channels × taps.
    pub filters: Vec<f32>,
    /// An element a filter.
    pub bias: Option<Vec<f32>>,
}

impl Folded {
    /// What a layer makes of its tensors. A norm is computed in `f64`, and rounded once.
    ///
    /// # Errors
    /// [`WeightsError::Missing`] and [`WeightsError::Shape`]; [`WeightsError::Norm`] for variances that are no variances.
    pub fn new(layer: &Convolution, weights: &Weights) -> Result<Self, WeightsError> {
        let of_channels = |name: &str| Ok(weights.get(name, &[layer.shape.filters])?.values());
        let mut filters = match &layer.filters {
            Some((name, shape)) => weights.get(name, shape)?.values().to_vec(),
            None => vec![1.0; layer.shape.filters_len()],
        };
        let bias = layer.bias.as_ref().map(|name| of_channels(name)).transpose()?;
        let Some(norm) = &layer.norm else {
            return Ok(Self { filters, bias: bias.map(<[f32]>::to_vec) });
        };
        let [gamma, beta, mean, variance] = &norm.tensors();
        let values = BatchNorm {
            gamma: of_channels(gamma)?,
            beta: of_channels(beta)?,
            mean: of_channels(mean)?,
            variance: of_channels(variance)?,
            epsilon: norm.epsilon,
        };
        let of_norm =
            |error: lacuna::Error| WeightsError::Norm { name: variance.clone(), why: error.to_string() };
        let bias = values.fold(&layer.shape, &mut filters, bias).map_err(of_norm)?;
        Ok(Self { filters, bias: Some(bias) })
    }

    /// The numbers that devices have where values are of type `T`: each rounded to nearest, and infinite beyond the largest.
    #[must_use]
    pub fn rounded<T: Value>(mut self) -> Self {
        for number in self.filters.iter_mut().chain(self.bias.iter_mut().flatten()) {
            *number = T::from_f32(*number).to_f32();
        }
        self
    }

    /// The part of the filters that is zero; 0 where there are none.
    pub fn zeros(&self) -> f64 {
        let zeros = self.filters.iter().filter(|&&weight| weight == 0.0).count();
        zeros as f64 / self.filters.len().max(1) as f64
    }
}
