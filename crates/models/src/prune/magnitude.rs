//! Pruning by magnitude.
use super::threshold::Threshold;
use super::{PruneError, check_sparsity};
use crate::weights::{Tensor, Weights};

/// The zeros that a sparsity makes of so many elements, to the nearest.
fn zeros(elements: usize, sparsity: f64) -> usize {
    ((elements as f64 * sparsity).round() as usize).min(elements)
}

/// Prunes a tensor: of its n elements, the round(n·sparsity) of least magnitude become +0. Of equal magnitudes those with the greater
/// index do, so that the result is always the same. Elements that are zero count as pruned; where there are more of them, all stay zero.
/// NaN is greater than all, and stays.
///
/// # Errors
/// [`PruneError::Sparsity`] unless `sparsity` is from 0 to 1.
pub fn tensor(tensor: &mut Tensor, sparsity: f64) -> Result<(), PruneError> {
    check_sparsity("sparsity", sparsity)?;
    let values = tensor.values_mut();
    if let Some(mut threshold) = Threshold::of(std::iter::once(&*values), zeros(values.len(), sparsity)) {
        threshold.prune(values);
    }
    Ok(())
}

/// Prunes each chosen tensor by itself to this sparsity, as [`tensor`] does.
///
/// # Errors
/// [`PruneError::Sparsity`] unless `sparsity` is from 0 to 1.
pub fn each(
    weights: &mut Weights,
    sparsity: f64,
    chosen: impl Fn(&str, &Tensor) -> bool,
) -> Result<(), PruneError> {
    check_sparsity("sparsity", sparsity)?;
    weights
        .iter_mut()
        .filter(|(name, tensor)| chosen(name, tensor))
        .try_for_each(|(_, tensor)| self::tensor(tensor, sparsity))
}

/// Prunes the chosen tensors as if they were one: all elements of least magnitude, wherever they are, so that layers come to sparsities
/// of their own. Of equal magnitudes those of tensors later in the order of names are pruned first, and in a tensor those with the
/// greater index.
///
/// # Errors
/// [`PruneError::Sparsity`] unless `sparsity` is from 0 to 1.
pub fn global(
    weights: &mut Weights,
    sparsity: f64,
    chosen: impl Fn(&str, &Tensor) -> bool,
) -> Result<(), PruneError> {
    check_sparsity("sparsity", sparsity)?;
    let mut parts: Vec<&mut [f32]> = weights
        .iter_mut()
        .filter(|(name, tensor)| chosen(name, tensor))
        .map(|(_, tensor)| tensor.values_mut())
        .collect();
    let elements = parts.iter().map(|values| values.len()).sum();
    let threshold = Threshold::of(parts.iter().map(|values| &**values), zeros(elements, sparsity));
    if let Some(mut threshold) = threshold {
        parts.iter_mut().for_each(|values| threshold.prune(values));
    }
    Ok(())
}
