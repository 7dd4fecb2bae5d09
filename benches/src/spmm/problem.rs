//! What is multiplied.
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use lacuna::matrix::{Csr, Pattern, generate, io};

use crate::exit::Usage;
use crate::suites::{Case, PatternKind};

/// A sparse matrix, and the number of columns of the dense one.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The problem's name in tables.
    pub name: String,
    /// A.
    pub a: Csr<f32>,
    /// Columns of B.
    pub n: usize,
    /// The seed of what is drawn.
    pub seed: u64,
}

impl Problem {
    /// The problem of a suite's case.
    ///
    /// # Errors
    /// A pattern that cannot be drawn.
    pub fn generate(case: &Case, seed: u64) -> Result<Self> {
        let (m, k) = (case.m, case.k);
        let pattern = match case.pattern {
            PatternKind::Uniform { sparsity } => generate::uniform(m, k, sparsity, seed),
            PatternKind::Varied { mean, cov } => generate::with_row_cov(m, k, mean, cov, seed),
            PatternKind::PowerLaw { mean, exponent } => generate::power_law(m, k, mean, exponent, seed),
        };
        let pattern = pattern.with_context(|| format!("the pattern of `{}` cannot be drawn", case.name))?;
        Self::with_pattern(case.name.clone(), pattern, case.n, seed)
    }

    /// The problem of a matrix in a file: `.smtx`, whose values are drawn, or `.mtx`.
    ///
    /// # Errors
    /// A file of another kind, or one that cannot be read.
    pub fn read(path: &Path, n: usize, seed: u64) -> Result<Self> {
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into());
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("smtx") => Self::with_pattern(name, io::smtx::read_path(path)?, n, seed),
            Some("mtx") => Ok(Self { name, a: io::mtx::read_path(path)?, n, seed }),
            _ => Err(Usage(format!("{}: expected a file named *.smtx or *.mtx", path.display())).into()),
        }
    }

    fn with_pattern(name: String, pattern: Pattern, n: usize, seed: u64) -> Result<Self> {
        let values = generate::random_values(pattern.nnz(), seed ^ 0xa);
        Ok(Self { name, a: Csr::with_values(Arc::new(pattern), values)?, n, seed })
    }

    /// B, drawn.
    pub fn b(&self) -> Vec<f32> {
        generate::random_values(self.a.cols() * self.n, self.seed ^ 0xb)
    }

    /// Operations: a product and a sum for each nonzero and column.
    pub fn flops(&self) -> u64 {
        2 * self.a.nnz() as u64 * self.n as u64
    }

    /// Bytes of A (values, columns, rows), B and C, once each.
    pub fn bytes(&self) -> u64 {
        let (m, k, n) = (self.a.rows() as u64, self.a.cols() as u64, self.n as u64);
        8 * self.a.nnz() as u64 + 16 * m + 4 * (k + m) * n
    }
}
