//! What is measured: an operation, its sparse matrix, and the sizes of the dense ones.
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use lacuna::Value;
use lacuna::matrix::{Csr, Dense, Pattern, generate, io};

use crate::exit::Usage;
use crate::op::Op;
use crate::suites::{Case, PatternKind};

/// Products above which only some rows are checked, so that checking takes a second or two.
const MOST_CHECKED: usize = 400_000_000;
/// What checking a logit takes, in products.
const CHECKING_A_LOGIT: usize = 16;

/// A sparse matrix, and the width of the dense ones.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The operation.
    pub op: Op,
    /// The problem's name in tables.
    pub name: String,
    /// The sparse matrix. Where an operation takes a pattern alone, it is this one's; where its matrix is dense, this has its
    /// rows and columns, and no nonzeros.
    pub a: Csr<f32>,
    /// Columns of the dense operands: N of SpMM, K of SDDMM, d of attention, columns of a table; how many top-N takes; 1
    /// where there are none.
    pub width: usize,
    /// How often it is done in one call, with other values: the heads of attention.
    pub batch: usize,
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
        let (rows, cols) = (case.rows, case.cols);
        let pattern = match case.pattern {
            PatternKind::Given(ref pattern) => Ok(Arc::clone(pattern)),
            PatternKind::Uniform { sparsity } => generate::uniform(rows, cols, sparsity, seed).map(Arc::new),
            PatternKind::Varied { mean, cov } => {
                generate::with_row_cov(rows, cols, mean, cov, seed).map(Arc::new)
            }
            PatternKind::PowerLaw { mean, exponent } => {
                generate::power_law(rows, cols, mean, exponent, seed).map(Arc::new)
            }
            PatternKind::Mask { band, sparsity } => {
                generate::band_random(rows, band, sparsity, seed).map(Arc::new)
            }
            PatternKind::Dense => return Self::dense(case, seed),
        };
        let pattern = pattern.with_context(|| format!("the pattern of `{}` cannot be drawn", case.name))?;
        Ok(Self::of(case, Self::with_values(case.op, pattern, seed)?, seed))
    }

    fn of(case: &Case, a: Csr<f32>, seed: u64) -> Self {
        Self {
            op: case.op,
            name: case.name.clone(),
            a,
            width: case.width,
            batch: case.batch,
            seed,
            group: case.group.clone(),
            level: case.level(),
            cov: case.cov(),
        }
    }

    /// A problem whose matrix is dense.
    fn dense(case: &Case, seed: u64) -> Result<Self> {
        let offsets = vec![0; case.rows + 1];
        let a = Csr::new(case.rows, case.cols, offsets, Vec::new(), Vec::new());
        Ok(Self::of(case, a.with_context(|| format!("`{}` is too large", case.name))?, seed))
    }

    /// The problem of a matrix in a file: `.smtx`, whose values are drawn, or `.mtx`.
    ///
    /// # Errors
    /// A file of another kind, or one that cannot be read.
    pub fn read(op: Op, path: &Path, width: usize, batch: usize, seed: u64) -> Result<Self> {
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into());
        let a = match path.extension().and_then(|extension| extension.to_str()) {
            Some("smtx") => Self::with_values(op, io::smtx::read_path(path)?, seed)?,
            Some("mtx") if op == Op::NHot => {
                Self::with_values(op, io::mtx::read_path(path)?.pattern().clone(), seed)?
            }
            Some("mtx") => io::mtx::read_path(path)?,
            _ => {
                return Err(
                    Usage(format!("{}: expected a file named *.smtx or *.mtx", path.display())).into()
                );
            }
        };
        Ok(Self { op, name, a, width, batch, seed, group: String::new(), level: None, cov: None })
    }

    /// A pattern with values that are drawn; ones, where it is of bags, which have no weights.
    fn with_values(op: Op, pattern: impl Into<Arc<Pattern>>, seed: u64) -> Result<Csr<f32>> {
        let pattern = pattern.into();
        let values = match op {
            Op::NHot => vec![1.0; pattern.nnz()],
            _ => generate::random_values(pattern.nnz(), seed ^ 0xa),
        };
        Ok(Csr::with_values(pattern, values)?)
    }

    /// M, K and N.
    pub fn sizes(&self) -> [usize; 3] {
        self.op.sizes(self.a.rows(), self.a.cols(), self.width)
    }

    /// Nonzeros of the sparse matrix; elements of a dense one.
    pub fn elements(&self) -> usize {
        if self.op.is_sparse() { self.a.nnz() } else { self.a.rows() * self.a.cols() }
    }

    /// The part of its matrix that is zero, and the nonzeros of the longest row.
    pub fn sparsity(&self) -> (f64, usize) {
        let stats = self.a.pattern().stats();
        if self.op.is_sparse() {
            (stats.sparsity, stats.max_row_length as usize)
        } else {
            (0.0, self.a.cols())
        }
    }

    /// A with the nearest values of another type.
    pub fn values_as<T: Value>(&self) -> Csr<T> {
        self.a.map_values(T::from_f32)
    }

    /// A dense operand of so many rows in each of the batch, drawn, and rounded to a type. `salt` tells it from others.
    ///
    /// # Errors
    /// [`Usage`] where this machine has no room for it.
    pub fn dense_as<T: Value>(&self, name: &str, rows: usize, salt: u64) -> Result<Vec<T>> {
        self.drawn_as(name, [rows.saturating_mul(self.batch), self.width], salt, T::from_f32)
    }

    /// A dense matrix of rows × columns of what `of` makes of numbers that are drawn, uniform in [-1, 1).
    ///
    /// # Errors
    /// As [`dense_as`](Self::dense_as).
    pub fn drawn_as<T: Value>(
        &self,
        name: &str,
        [rows, cols]: [usize; 2],
        salt: u64,
        of: impl Fn(f32) -> T,
    ) -> Result<Vec<T>> {
        let drawn = generate::random_dense(rows, cols, self.seed ^ salt);
        let drawn = drawn.map(Dense::into_values);
        let drawn = drawn.map_err(|error| self.too_large(name, &error))?;
        Ok(drawn.into_iter().map(of).collect())
    }

    /// Something to write a result of `len` values over: NaN, so that what is not written shows.
    ///
    /// # Errors
    /// [`Usage`] where this machine has no room for it.
    pub fn unwritten<T: Value>(&self, name: &str, len: usize) -> Result<Vec<T>> {
        let mut unwritten = Vec::new();
        unwritten.try_reserve_exact(len).map_err(|error| self.too_large(name, &error))?;
        unwritten.resize(len, T::from_f32(f32::NAN));
        Ok(unwritten)
    }

    fn too_large(&self, name: &str, error: &dyn std::error::Error) -> Usage {
        Usage(format!("{name}: {error}; take a smaller {}", self.op.width().unwrap_or("matrix")))
    }

    /// The rows that are checked: all, or where that would take long, some of them, evenly spaced.
    pub fn checked_rows(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let rows = self.a.rows();
        let each = if self.op.is_sparse() { self.width } else { CHECKING_A_LOGIT };
        let products = self.elements().saturating_mul(each).saturating_mul(self.batch);
        let checked = (MOST_CHECKED * rows.max(1) / products.max(1)).clamp(1, rows.max(1));
        // Odd, so that all places in a tile's rows come.
        (0..rows).step_by(rows.div_ceil(checked).max(1) | 1)
    }

    /// Operations of the work model: a product and a sum for each nonzero and column, twice in attention, and without the
    /// product in a lookup; of a softmax, a difference, an exponential, a sum and a product for each nonzero, and of top-N a
    /// comparison in the product's place.
    pub fn flops(&self) -> u64 {
        let each = match self.op {
            Op::NHot => self.width,
            Op::Spmm | Op::Sddmm => 2 * self.width,
            Op::SparseSoftmax | Op::Attention => 4 * self.width,
            Op::TopN => 4,
        };
        (each * self.elements() * self.batch) as u64
    }

    /// Bytes of the work model, with so many bytes a value and an index: operands and result once each, and of a table the
    /// rows that are read.
    pub fn bytes(&self, value: u32, index: u32) -> u64 {
        let [value, index] = [value, index].map(u64::from);
        let [rows, cols, nnz, width, batch] =
            [self.a.rows(), self.a.cols(), self.a.nnz(), self.width, self.batch].map(|size| size as u64);
        match self.op {
            // A (values, columns, rows), B and C.
            Op::Spmm => (value + index) * nnz + 16 * rows + value * (cols + rows) * width,
            // A, B, D (values), and the pattern.
            Op::Sddmm => index * nnz + 4 * rows + batch * value * (nnz + (rows + cols) * width),
            // Values, in and out, and the rows: where a value stands in its row does not matter.
            Op::SparseSoftmax => 4 * rows + batch * 2 * value * nnz,
            // Q, K, V and O, and the mask.
            Op::Attention => index * nnz + 4 * rows + batch * value * 2 * (rows + cols) * width,
            // A row of the table for each nonzero, as often as it is asked for; the result; and the bags.
            Op::NHot => index * nnz + 4 * rows + value * (nnz + rows) * width,
            // The logits; and of each row so many probabilities, in f32, and places.
            Op::TopN => value * rows * cols + 8 * rows * width,
        }
    }
}
