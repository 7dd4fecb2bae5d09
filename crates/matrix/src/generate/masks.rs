//! Causal attention masks in blocks.

use super::random::Random;
use super::{GenerateError, expect};
use crate::Pattern;
use crate::error::{fit_u32, try_filled};

/// An `n × n` mask of blocks of `side` × `side`, on the diagonal and below it: those on the diagonal are full, and of the others
/// about the part `sparsity` is empty, the rest full. Blocks are not cut by the diagonal.
///
/// # Errors
/// If `side` is 0, if `sparsity` is not in [0, 1], or if `n` or the nonzeros do not fit `u32`.
pub fn block_mask(n: usize, side: usize, sparsity: f64, seed: u64) -> Result<Pattern, GenerateError> {
    expect(side > 0, "side", "at least 1", side)?;
    expect((0.0..=1.0).contains(&sparsity), "sparsity", "a number of 0 to 1", sparsity)?;
    let mut random = Random::new(seed);
    let mut seen = Vec::new();
    let mut row_keys = |row: usize, keys: &mut Vec<u32>| {
        let diagonal = row / side;
        if row.is_multiple_of(side) {
            seen = (0..diagonal).filter(|_| random.real() >= sparsity).chain([diagonal]).collect();
        }
        keys.extend(
            seen.iter().flat_map(|block| block * side..((block + 1) * side).min(n)).map(|key| key as u32),
        );
    };
    of_rows(n, &mut row_keys)
}

/// An `n × n` mask of documents of `length` tokens, one after another, the last as long as is left: a token sees those of its own
/// document up to itself.
///
/// # Errors
/// If `length` is 0, or if `n` or the nonzeros do not fit `u32`.
pub fn document_mask(n: usize, length: usize) -> Result<Pattern, GenerateError> {
    expect(length > 0, "length", "at least 1", length)?;
    of_rows(n, &mut |row, keys| keys.extend((row / length * length..=row).map(|key| key as u32)))
}

/// A pattern of `n` rows and columns; `row_keys` adds the columns of a row, which ascend.
fn of_rows(n: usize, row_keys: &mut impl FnMut(usize, &mut Vec<u32>)) -> Result<Pattern, GenerateError> {
    fit_u32("rows", n)?;
    let mut row_offsets = try_filled(n as u128 + 1, 0u32)?;
    let mut col_indices = Vec::new();
    for row in 0..n {
        row_keys(row, &mut col_indices);
        row_offsets[row + 1] = fit_u32("nonzeros", col_indices.len())?;
    }
    Ok(Pattern::from_parts(n, n, row_offsets, col_indices))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_see_themselves() {
        let mask = document_mask(7, 3).unwrap();
        let rows: Vec<&[u32]> = (0..7).map(|row| mask.row_columns(row)).collect();
        assert_eq!(rows, [&[0][..], &[0, 1], &[0, 1, 2], &[3], &[3, 4], &[3, 4, 5], &[6]]);
        assert!(document_mask(7, 0).is_err());
    }

    #[test]
    fn blocks_are_whole_and_on_or_below_the_diagonal() {
        let mask = block_mask(40, 8, 0.5, 1).unwrap();
        for row in 0..40 {
            let first = row / 8 * 8;
            assert_eq!(mask.row_columns(row), mask.row_columns(first), "row {row}");
            assert_eq!(mask.row_columns(row).last(), Some(&(first as u32 + 7)));
        }
        assert_eq!(block_mask(20, 8, 1.0, 1).unwrap().nnz(), 2 * 64 + 16);
        assert_eq!(block_mask(16, 8, 0.0, 1).unwrap().nnz(), 3 * 64);
        assert!(block_mask(9, 0, 0.5, 1).is_err() && block_mask(9, 3, 1.5, 1).is_err());
    }

    #[test]
    fn about_as_many_blocks_are_empty_as_asked_for() {
        let mask = block_mask(1000, 10, 0.8, 3).unwrap();
        let below = (mask.nnz() / 100 - 100) as f64 / (99.0 * 50.0);
        assert!((below - 0.2).abs() < 0.03, "{below}");
    }
}
