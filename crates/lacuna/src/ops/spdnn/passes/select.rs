//! Some outputs of a layer, or some inputs.
use lacuna_matrix::Csr;

use super::super::{Bias, Layer};
use crate::Result;

/// The layer with these outputs alone.
pub(super) fn outputs(layer: &Layer, kept: &[u32]) -> Result<Layer> {
    let weights = layer.weights().select_rows(kept.iter().map(|&output| output as usize))?;
    let bias = match layer.bias() {
        Bias::Scalar(bias) => Bias::Scalar(*bias),
        Bias::PerOutput(biases) => {
            Bias::PerOutput(kept.iter().map(|&output| biases[output as usize]).collect())
        }
    };
    Ok(layer.with(weights, bias))
}

/// The layer with these inputs alone, ascending; it reads no other.
pub(super) fn inputs(layer: &Layer, kept: &[u32]) -> Result<Layer> {
    let mut places = vec![0; layer.inputs()];
    for (place, &input) in kept.iter().enumerate() {
        places[input as usize] = place as u32;
    }
    let weights = layer.weights();
    let columns = weights.col_indices().iter().map(|&input| places[input as usize]).collect();
    let offsets = weights.row_offsets().to_vec();
    let weights = Csr::new(weights.rows(), kept.len(), offsets, columns, weights.values().to_vec())?;
    Ok(layer.with(weights, layer.bias().clone()))
}
