//! What is multiplied.
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use lacuna::Value;
use lacuna::matrix::{Csr, Dense, Pattern, generate, io};

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
    /// The part of the suite that it is summed up with, or nothing.
    pub group: String,
    /// The part of zeros that the suite means, where it names one.
    pub level: Option<f64>,
    /// The coefficient of variation of the row lengths that the suite means, where it names one.
    pub cov: Option<f64>,
}

impl Problem {
    /// The problem of a suite's case.
    ///
    /// # Errors
    /// A pattern that cannot be drawn.
    pub fn generate(case: &Case, seed: u64) -> Result<Self> {
        let (m, k) = (case.m, case.k);
        let pattern = match case.pattern {
            PatternKind::Given(ref pattern) => Ok(Arc::clone(pattern)),
            PatternKind::Uniform { sparsity } => generate::uniform(m, k, sparsity, seed).map(Arc::new),
            PatternKind::Varied { mean, cov } => generate::with_row_cov(m, k, mean, cov, seed).map(Arc::new),
            PatternKind::PowerLaw { mean, exponent } => {
                generate::power_law(m, k, mean, exponent, seed).map(Arc::new)
            }
        };
        let pattern = pattern.with_context(|| format!("the pattern of `{}` cannot be drawn", case.name))?;
        let problem = Self::with_pattern(case.name.clone(), pattern, case.n, seed)?;
        Ok(Self { group: case.group.clone(), level: case.level(), cov: case.cov(), ..problem })
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
            Some("mtx") => Ok(Self {
                name,
                a: io::mtx::read_path(path)?,
                n,
                seed,
                group: String::new(),
                level: None,
                cov: None,
            }),
            _ => Err(Usage(format!("{}: expected a file named *.smtx or *.mtx", path.display())).into()),
        }
    }

    fn with_pattern(name: String, pattern: impl Into<Arc<Pattern>>, n: usize, seed: u64) -> Result<Self> {
        let pattern = pattern.into();
        let values = generate::random_values(pattern.nnz(), seed ^ 0xa);
        let a = Csr::with_values(pattern, values)?;
        Ok(Self { name, a, n, seed, group: String::new(), level: None, cov: None })
    }

    /// A with the nearest values of another type.
    pub fn values_as<T: Value>(&self) -> Csr<T> {
        self.a.map_values(T::from_f32)
    }

    /// B, drawn, and rounded to a type.
    ///
    /// # Errors
    /// [`Usage`] where this machine has no room for it.
    pub fn b_as<T: Value>(&self) -> Result<Vec<T>> {
        let drawn = generate::random_dense(self.a.cols(), self.n, self.seed ^ 0xb);
        let drawn = drawn.map(Dense::into_values);
        let drawn = drawn.map_err(|error| Usage(format!("B: {error}; take a smaller N")))?;
        Ok(drawn.into_iter().map(T::from_f32).collect())
    }

    /// Something to write C over: NaN, so that what is not written shows.
    ///
    /// # Errors
    /// [`Usage`] where this machine has no room for it.
    pub fn unwritten_c<T: Value>(&self) -> Result<Vec<T>> {
        let len = self.a.rows().saturating_mul(self.n);
        let mut c = Vec::new();
        c.try_reserve_exact(len).map_err(|error| Usage(format!("C: {error}; take a smaller N")))?;
        c.resize(len, T::from_f32(f32::NAN));
        Ok(c)
    }

    /// Operations: a product and a sum for each nonzero and column.
    pub fn flops(&self) -> u64 {
        2 * self.a.nnz() as u64 * self.n as u64
    }

    /// Bytes of A (values, columns, rows), B and C, once each, with so many bytes a value and an index.
    pub fn bytes(&self, value: u32, index: u32) -> u64 {
        let [value, index] = [value, index].map(u64::from);
        let (m, k, n) = (self.a.rows() as u64, self.a.cols() as u64, self.n as u64);
        (value + index) * self.a.nnz() as u64 + 16 * m + value * (k + m) * n
    }
}
