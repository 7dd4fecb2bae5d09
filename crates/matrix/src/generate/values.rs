//! Values for the positions.

use super::GenerateError;
use super::random::Random;
use crate::Dense;
use crate::error::try_filled;

/// `len` values, uniform in [-1, 1).
pub fn random_values(len: usize, seed: u64) -> Vec<f32> {
    random_values_as(len, seed, |value| value)
}

/// The same values, converted: `random_values_as(len, seed, f16::from_f32)`.
///
/// A narrower type rounds them, so that 1 may be among them.
pub fn random_values_as<T>(len: usize, seed: u64, convert: impl FnMut(f32) -> T) -> Vec<T> {
    let mut random = Random::new(seed);
    std::iter::repeat_with(|| random.value()).take(len).map(convert).collect()
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
