//! Some outputs of a layer, or some inputs.
use lacuna_matrix::Csr;

use super::super::{Bias, Layer};
use crate::Result;

/// A matrix of these rows: columns and values of each.
pub(super) fn csr(
    cols: usize,
    rows: impl ExactSizeIterator<Item = (Vec<u32>, Vec<f32>)>,
) -> Result<Csr<f32>> {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    let count = rows.len();
    for (row_columns, row_values) in rows {
        columns.extend(row_columns);
        values.extend(row_values);
        offsets.push(columns.len() as u32);
    }
    Ok(Csr::new(count, cols, offsets, columns, values)?)
}

/// The layer with these outputs alone.
pub(super) fn outputs(layer: &Layer, kept: &[u32]) -> Result<Layer> {
    let row = |&output: &u32| {
        let (columns, values) = layer.weights().row(output as usize);
        (columns.to_vec(), values.to_vec())
    };
    let weights = csr(layer.inputs(), kept.iter().map(row))?;
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
