//! A pattern in a few numbers.

use crate::Pattern;
use serde::Serialize;

/// What the SC20 paper tells of a sparse matrix (*Sparse GPU Kernels for Deep Learning*, Fig. 2): how sparse it
/// is, how long its rows are, and how much their lengths vary.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PatternStats {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Nonzeros of the matrix.
    pub nnz: usize,
    /// The part of the elements that are zero, from 0 to 1. A matrix without elements has sparsity 0.
    pub sparsity: f64,
    /// Nonzeros a row; 0 without rows.
    pub mean_row_length: f64,
    /// The coefficient of variation of the row lengths: their (population) standard deviation over their mean;
    /// 0 without nonzeros.
    pub row_length_cov: f64,
    /// Nonzeros of the shortest row.
    pub min_row_length: u32,
    /// Nonzeros of the longest row.
    pub max_row_length: u32,
    /// Rows without nonzeros.
    pub empty_rows: usize,
}

impl PatternStats {
    /// Measures a pattern.
    pub fn of(pattern: &Pattern) -> Self {
        Self::of_rows(pattern.cols(), pattern.row_offsets())
    }

    /// Measures a pattern of `cols` columns by its row offsets: where each row starts, and the end of the last. Without
    /// offsets there are no rows.
    pub fn of_rows(cols: usize, row_offsets: &[u32]) -> Self {
        let lengths = || row_offsets.windows(2).map(|ends| ends[1] - ends[0]);
        let rows = lengths().len();
        let nnz = row_offsets.last().map_or(0, |&end| end as usize);
        let elements = rows as f64 * cols as f64;
        let mean = if rows == 0 { 0.0 } else { nnz as f64 / rows as f64 };
        let squares: f64 = lengths().map(|length| (f64::from(length) - mean).powi(2)).sum();
        Self {
            rows,
            cols,
            nnz,
            sparsity: if elements == 0.0 { 0.0 } else { 1.0 - nnz as f64 / elements },
            mean_row_length: mean,
            row_length_cov: if nnz == 0 { 0.0 } else { (squares / rows as f64).sqrt() / mean },
            min_row_length: lengths().min().unwrap_or(0),
            max_row_length: lengths().max().unwrap_or(0),
            empty_rows: lengths().filter(|&length| length == 0).count(),
        }
    }
}

impl Pattern {
    /// The pattern in a few numbers.
    pub fn stats(&self) -> PatternStats {
        PatternStats::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_offsets_are_no_rows() {
        let stats = PatternStats::of_rows(5, &[]);
        assert_eq!((stats.rows, stats.cols, stats.nnz, stats.max_row_length), (0, 5, 0, 0));
        assert_eq!(stats, PatternStats::of_rows(5, &[0]));
    }
}
