//! Numbers of the host in the type of a model's values.
use lacuna::{CsrMatrix, Value};

use super::ModelError;
use crate::network::Layer;
use crate::weights::Folded;

/// Each number rounded, to nearest.
pub(super) fn rounded<T: Value>(numbers: &[f32]) -> Vec<T> {
    numbers.iter().map(|&number| T::from_f32(number)).collect()
}

/// Filters and bias of a layer as they are in this type.
pub(super) fn folded<T: Value>(layer: &Layer, folded: Folded) -> Result<Folded, ModelError> {
    expect_finite::<T>(layer, &folded.filters)?;
    expect_finite::<T>(layer, folded.bias.as_deref().unwrap_or_default())?;
    Ok(folded.rounded::<T>())
}

/// Whether none of a layer's weights is too large for the type.
pub(super) fn expect_finite<T: Value>(layer: &Layer, weights: &[f32]) -> Result<(), ModelError> {
    let is_lost = |weight: &&f32| weight.is_finite() && !T::from_f32(**weight).to_f32().is_finite();
    match weights.iter().find(is_lost) {
        Some(&got) => Err(ModelError::Range { layer: layer.name.clone(), value: T::TYPE.name(), got }),
        None => Ok(()),
    }
}

/// Bytes of values, columns and offsets of rows.
pub(super) fn matrix_bytes<T: Value>(matrix: &CsrMatrix<T>) -> usize {
    matrix.nnz() * (size_of::<T>() + size_of::<u32>()) + (matrix.rows() + 1) * size_of::<u32>()
}
