//! Nonzeros anywhere.

use super::random::Random;
use super::{GenerateError, expect};
use crate::Pattern;
use crate::error::{fit_u32, try_filled};

/// A matrix with `round((1 - sparsity) · rows · cols)` nonzeros, all sets of so many positions being equally
/// likely. `sparsity` is the part of zeros, from 0 to 1.
///
/// # Errors
/// If `sparsity` is not in [0, 1], or if rows, columns or nonzeros do not fit `u32`.
pub fn uniform(rows: usize, cols: usize, sparsity: f64, seed: u64) -> Result<Pattern, GenerateError> {
    expect((0.0..=1.0).contains(&sparsity), "sparsity", "a number of 0 to 1", sparsity)?;
    let elements = u64::from(fit_u32("rows", rows)?) * u64::from(fit_u32("columns", cols)?);
    let nnz = ((1.0 - sparsity) * elements as f64).round();
    uniform_nnz(rows, cols, nnz as usize, seed)
}

/// A matrix with `nnz` nonzeros, all sets of so many positions being equally likely.
///
/// # Errors
/// If `nnz` is above `rows · cols`, or if rows, columns or nonzeros do not fit `u32`.
pub fn uniform_nnz(rows: usize, cols: usize, nnz: usize, seed: u64) -> Result<Pattern, GenerateError> {
    let elements = u64::from(fit_u32("rows", rows)?) * u64::from(fit_u32("columns", cols)?);
    expect(nnz as u64 <= elements, "nnz", format!("at most rows × cols, {elements}"), nnz)?;
    fit_u32("nonzeros", nnz)?;
    let mut row_offsets = try_filled(rows as u128 + 1, 0u32)?;
    let mut col_indices = Vec::with_capacity(nnz);
    // Positions ascend, so the row of each is found by walking on from the last.
    let (mut row, mut row_end) = (0, cols as u64);
    for position in Random::new(seed).distinct_below(elements, nnz) {
        while position >= row_end {
            row += 1;
            row_offsets[row] = col_indices.len() as u32;
            row_end += cols as u64;
        }
        col_indices.push((position + cols as u64 - row_end) as u32);
    }
    row_offsets[row + 1..].fill(nnz as u32);
    Ok(Pattern::from_parts(rows, cols, row_offsets, col_indices))
}
