//! Inputs of an SpMM.
use anyhow::Result;
use lacuna::matrix::{Csr, Pattern, generate};

use lacuna_cases::number::rounded;
use lacuna_cases::pattern;

use crate::Number;

/// A of M×K and B of K×`n`, row by row.
#[derive(Clone, Debug)]
pub struct Problem<T = f32> {
    /// The sparse operand.
    pub a: Csr<T>,
    /// The dense operand.
    pub b: Vec<T>,
    /// Columns of B.
    pub n: usize,
}

impl Problem {
    /// A problem of this pattern, with values uniform in [-1, 1).
    ///
    /// # Errors
    /// None that a valid pattern can cause.
    pub fn draw(pattern: Pattern, n: usize, seed: u64) -> Result<Self> {
        let values = generate::random_values(pattern.nnz(), seed ^ 1);
        let b = generate::random_values(pattern.cols() * n, seed ^ 2);
        Ok(Self { a: Csr::with_values(pattern, values)?, b, n })
    }

    /// As [`draw`](Self::draw), for a pattern given by each row's columns, in any order.
    ///
    /// # Errors
    /// If a column is not below `cols`, or stands twice in a row.
    pub fn of_rows(cols: usize, rows: &[Vec<u32>], n: usize, seed: u64) -> Result<Self> {
        Self::draw(pattern::of_rows(cols, rows)?, n, seed)
    }

    /// A problem of a generated pattern.
    ///
    /// # Errors
    /// What the generator says.
    pub fn generated(pattern: Result<Pattern, generate::GenerateError>, n: usize, seed: u64) -> Result<Self> {
        Self::draw(pattern?, n, seed)
    }

    /// The same with values rounded to another type.
    ///
    /// # Errors
    /// None that a valid problem can cause.
    pub fn rounded<T: Number>(&self) -> Result<Problem<T>> {
        let a = Csr::with_values(self.a.pattern().clone(), rounded(self.a.values()))?;
        Ok(Problem { a, b: rounded(&self.b), n: self.n })
    }
}

impl<T: Number> Problem<T> {
    /// Products to be added up: nonzeros times columns of B.
    pub fn products(&self) -> usize {
        self.a.nnz() * self.n
    }
}
