//! Values for the positions.

use super::GenerateError;
use super::random::Random;
use crate::Dense;
use crate::error::try_filled;

/// `len` values, uniform in [-1, 1).
pub fn random_values(len: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..len).map(|_| random.value()).collect()
}

/// A dense matrix of values uniform in [-1, 1).
///
/// # Errors
/// If there is no memory for so many elements.
pub fn random_dense(rows: usize, cols: usize, seed: u64) -> Result<Dense<f32>, GenerateError> {
    let mut random = Random::new(seed);
    let mut values = try_filled(rows as u128 * cols as u128, 0.0f32)?;
    values.fill_with(|| random.value());
    Ok(Dense::new(rows, cols, values)?)
}
