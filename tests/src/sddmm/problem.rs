//! Inputs of an SDDMM.
use anyhow::Result;
use lacuna::matrix::{Csr, Pattern, generate};

use lacuna_cases::number::rounded;
use lacuna_cases::pattern;

use crate::Number;

/// A of M×`k` and B of N×`k`, row by row, and a C of M×N.
#[derive(Clone, Debug)]
pub struct Problem<T = f32> {
    /// The sparse operand: the places to compute, and what may scale them.
    pub c: Csr<T>,
    /// The dense operand whose rows are those of C.
    pub a: Vec<T>,
    /// The dense operand whose rows are the columns of C.
    pub b: Vec<T>,
    /// Columns of A and B.
    pub k: usize,
}

impl Problem {
    /// A problem of this pattern, with values uniform in [-1, 1).
    ///
    /// # Errors
    /// None that a valid pattern can cause.
    pub fn draw(pattern: Pattern, k: usize, seed: u64) -> Result<Self> {
        let scale = generate::random_values(pattern.nnz(), seed ^ 1);
        let a = generate::random_values(pattern.rows() * k, seed ^ 2);
        let b = generate::random_values(pattern.cols() * k, seed ^ 3);
        Ok(Self { c: Csr::with_values(pattern, scale)?, a, b, k })
    }

    /// As [`draw`](Self::draw), for a pattern given by each row's columns, in any order.
    ///
    /// # Errors
    /// If a column is not below `cols`, or stands twice in a row.
    pub fn of_rows(cols: usize, rows: &[Vec<u32>], k: usize, seed: u64) -> Result<Self> {
        Self::draw(pattern::of_rows(cols, rows)?, k, seed)
    }

    /// The same with values rounded to another type.
    ///
    /// # Errors
    /// None that a valid problem can cause.
    pub fn rounded<T: Number>(&self) -> Result<Problem<T>> {
        let c = Csr::with_values(self.c.pattern().clone(), rounded(self.c.values()))?;
        Ok(Problem { c, a: rounded(&self.a), b: rounded(&self.b), k: self.k })
    }
}

impl<T: Number> Problem<T> {
    /// Products to be added up: nonzeros times columns of A.
    pub fn products(&self) -> usize {
        self.c.nnz() * self.k
    }
}

/// A row-major matrix of rows of `width`, transposed.
pub(crate) fn transposed<T: Number>(values: &[T], width: usize) -> Vec<T> {
    (0..width).flat_map(|column| values.iter().skip(column).step_by(width)).copied().collect()
}
