//! The rows of a problem that are checked, as a matrix of their own.
use std::sync::Arc;

use anyhow::Result;
use lacuna::matrix::Pattern;
use lacuna_cases::Problem;

/// Rows of a pattern, in their order.
#[derive(Debug)]
pub(crate) struct Checked {
    whole: Arc<Pattern>,
    rows: Vec<usize>,
    /// The rows' pattern: as many columns as the whole.
    pub(crate) pattern: Arc<Pattern>,
}

impl Checked {
    /// Those of a problem.
    pub(crate) fn of(problem: &Problem) -> Result<Self> {
        let whole = Arc::clone(problem.sparse()?.pattern());
        let rows: Vec<usize> = problem.checked_rows().collect();
        let pattern = Arc::new(whole.select_rows(rows.iter().copied())?);
        Ok(Self { whole, rows, pattern })
    }

    /// The rows' numbers in the whole.
    pub(crate) fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Of a dense matrix with the rows of the whole, `width` wide, those that are checked.
    pub(crate) fn dense<T: Copy>(&self, dense: &[T], width: usize) -> Vec<T> {
        rows_of(dense, width, &self.rows)
    }

    /// Of the whole's values those of the rows.
    pub(crate) fn values<T: Copy>(&self, values: &[T]) -> Vec<T> {
        self.rows.iter().flat_map(|&row| &values[self.whole.row_range(row)]).copied().collect()
    }
}

/// Some rows of a dense matrix that is `width` wide.
pub(crate) fn rows_of<T: Copy>(dense: &[T], width: usize, rows: &[usize]) -> Vec<T> {
    rows.iter().flat_map(|row| &dense[row * width..][..width]).copied().collect()
}

#[cfg(test)]
mod tests {
    use lacuna_cases::{Draw, Source, Spec, Values};

    use super::*;

    #[test]
    fn rows_are_picked_alike_from_all_operands() {
        let pattern = Arc::new(Pattern::new(3, 9, vec![0, 2, 2, 5], vec![1, 8, 0, 3, 4]).unwrap());
        // So wide that it takes a row at a time: the first alone stands for all.
        let spec = Spec {
            name: String::new(),
            group: String::new(),
            rows: 3,
            cols: 9,
            width: 200_000_000,
            batch: 1,
            source: Source::Sparse { pattern: Draw::Given(pattern), values: Values::Drawn },
        };
        let wide = Problem::draw(&spec, 1).unwrap();
        let checked = Checked::of(&wide).unwrap();
        assert_eq!((checked.rows(), checked.pattern.col_indices()), (&[0][..], &[1, 8][..]));
        let all = Checked::of(&Problem { width: 2, ..wide }).unwrap();
        assert_eq!((all.rows(), &all.whole), (&[0, 1, 2][..], &all.pattern));
        assert_eq!(checked.values(&[10, 11, 12, 13, 14]), [10, 11]);
        assert_eq!(checked.dense(&[1, 2, 3, 4, 5, 6], 2), [1, 2]);
        assert_eq!(all.dense(&[1, 2, 3, 4, 5, 6], 2), [1, 2, 3, 4, 5, 6]);
    }
}
