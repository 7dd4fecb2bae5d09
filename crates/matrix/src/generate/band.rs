//! The attention mask of the SC20 paper.

use super::random::Random;
use super::{GenerateError, expect};
use crate::Pattern;
use crate::error::{fit_u32, try_filled};

/// An `n × n` causal attention mask as in *Sparse GPU Kernels for Deep Learning* (SC20), section VII-C.
///
/// Row i attends to columns up to i only: to the `band` nearest of them (the diagonal is the first), and to each
/// one further off with a probability inversely proportional to its distance `i - j`, such that of all positions
/// below the band the part `sparsity` is expected to stay zero. The paper takes a band of 256 and .95.
///
/// # Errors
/// If `band` is 0, if `sparsity` is not in [0, 1], or if `n` or the nonzeros do not fit `u32`.
pub fn band_random(n: usize, band: usize, sparsity: f64, seed: u64) -> Result<Pattern, GenerateError> {
    expect(band > 0, "band", "at least 1, the diagonal", band)?;
    expect((0.0..=1.0).contains(&sparsity), "sparsity", "a number of 0 to 1", sparsity)?;
    fit_u32("rows", n)?;
    let scale = scale_for_sparsity(n, band, sparsity);
    let mut random = Random::new(seed);
    let mut row_offsets = try_filled(n as u128 + 1, 0u32)?;
    let mut col_indices = Vec::new();
    for row in 0..n {
        let band_start = (row + 1).saturating_sub(band);
        let chosen = |&column: &usize| random.real() * ((row - column) as f64) < scale;
        col_indices.extend((0..band_start).filter(chosen).map(|column| column as u32));
        col_indices.extend((band_start..=row).map(|column| column as u32));
        row_offsets[row + 1] = fit_u32("nonzeros", col_indices.len())?;
    }
    Ok(Pattern::from_parts(n, n, row_offsets, col_indices))
}

/// The c for which choosing a position at distance d with probability min(1, c / d) leaves the part `sparsity` of
/// the positions below the band zero.
fn scale_for_sparsity(n: usize, band: usize, sparsity: f64) -> f64 {
    // Distance d occurs on n - d rows.
    let expected = |c: f64| -> f64 { (band..n).map(|d| (n - d) as f64 * (c / d as f64).min(1.0)).sum() };
    let wanted = (1.0 - sparsity) * expected(n as f64);
    if wanted == 0.0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, n as f64);
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if expected(middle) < wanted { low = middle } else { high = middle }
    }
    high
}
