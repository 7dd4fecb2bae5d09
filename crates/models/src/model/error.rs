//! What can go wrong with a model.
use thiserror::Error;

use crate::network::Layer;
use crate::weights::WeightsError;

/// Why a model cannot be planned or run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The weights do not fit a layer.
    #[error("layer {layer}: {source}")]
    Weights {
        /// The layer.
        layer: String,
        /// What does not fit.
        source: WeightsError,
    },
    /// The library refused a layer, or failed.
    #[error("layer {layer}: {source}")]
    Layer {
        /// The layer.
        layer: String,
        /// What it said.
        source: Box<lacuna::Error>,
    },
    /// A weight is beyond the largest number of the type that the model's values have.
    #[error(
        "layer {layer}: its weights have {got}, which {value} cannot hold; plan the network with values of bf16 or f32, or scale the weights"
    )]
    Range {
        /// The layer.
        layer: String,
        /// The type's name.
        value: &'static str,
        /// The weight.
        got: f32,
    },
    /// Options are for a layer that the network has not.
    #[error("options for layer {layer}: expected a layer of the network, but it has none of that name")]
    UnknownLayer {
        /// The name.
        layer: String,
    },
    /// There is no layer of this number.
    #[error("layer number {number}: expected one below {layers}, the layers of the network")]
    NoLayer {
        /// The number.
        number: usize,
        /// How many layers there are.
        layers: usize,
    },
    /// A layer cannot have sparse weights.
    #[error(
        "layer {layer}: its weights cannot be sparse: expected {expected}; hold them dense, or leave the choice to the model"
    )]
    NotSparse {
        /// The layer.
        layer: String,
        /// What sparse weights want.
        expected: &'static str,
    },
    /// A buffer is not as long as the network says.
    #[error("the {what} of the network: expected {expected} elements, got {got}")]
    Length {
        /// Which buffer.
        what: &'static str,
        /// Elements of the shape.
        expected: usize,
        /// Elements of the buffer.
        got: usize,
    },
    /// Memory, a stream or a graph cannot be had.
    #[error(transparent)]
    Device(#[from] lacuna::Error),
}

impl ModelError {
    /// What the library says of a layer.
    pub(super) fn of_layer(layer: &Layer, error: lacuna::Error) -> Self {
        Self::Layer { layer: layer.name.clone(), source: Box::new(error) }
    }
}
