//! A problem: a matrix, and the width of what goes with it.
use std::path::Path;

use anyhow::{Context as _, Result};
use lacuna::Value;
use lacuna::matrix::{Csr, Dense, generate, io};
use lacuna::spmm::RowLengths;

use crate::exit::Usage;
use crate::spec::{Draw, Size, Source, Spec, Values};

/// Products above which only some rows are checked, so that checking takes a second or two.
const MOST_CHECKED: usize = 400_000_000;
/// What checking an element of a dense matrix takes, in products.
const CHECKING_AN_ELEMENT: usize = 16;

/// A matrix, and the width of the dense operands.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The problem's name in tables.
    pub name: String,
    /// Its matrix.
    pub matrix: Matrix,
    /// Columns of the dense operands: N of SpMM, K of SDDMM, d of attention, columns of a table; how many top-N takes; 1
    /// where there are none.
    pub width: usize,
    /// How often it is done in one call, with other values: the heads of attention.
    pub batch: usize,
    /// How its pattern was drawn, where it is sparse and of no file.
    pub drawn: Option<Draw>,
    /// The seed of what is drawn.
    pub seed: u64,
    /// The part of the suite that it is summed up with, or nothing.
    pub group: String,
    /// The part of zeros that the suite means, where it names one.
    pub level: Option<f64>,
    /// The coefficient of variation of the row lengths that the suite means, where it names one.
    pub cov: Option<f64>,
}

/// The matrix that gives a problem its rows and columns.
#[derive(Clone, Debug)]
pub enum Matrix {
    /// A sparse one; where an operation takes a pattern alone, it is this one's.
    Sparse(Csr<f32>),
    /// A dense one, whose values the operation draws.
    Dense {
        /// Its rows.
        rows: usize,
        /// Its columns.
        cols: usize,
    },
}

impl Matrix {
    /// Its rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Sparse(a) => a.rows(),
            Self::Dense { rows, .. } => *rows,
        }
    }

    /// Its columns.
    pub fn cols(&self) -> usize {
        match self {
            Self::Sparse(a) => a.cols(),
            Self::Dense { cols, .. } => *cols,
        }
    }

    /// Nonzeros of a sparse one, all elements of a dense one.
    pub fn elements(&self) -> usize {
        match self {
            Self::Sparse(a) => a.nnz(),
            Self::Dense { rows, cols } => rows * cols,
        }
    }

    /// The part of it that is zero, and the nonzeros of the longest row.
    pub fn sparsity(&self) -> (f64, usize) {
        match self {
            Self::Sparse(a) => {
                let stats = a.pattern().stats();
                (stats.sparsity, stats.max_row_length as usize)
            }
            Self::Dense { cols, .. } => (0.0, *cols),
        }
    }

    /// How long rows are, where it is sparse.
    pub fn row_lengths(&self) -> Option<RowLengths> {
        match self {
            Self::Sparse(a) => Some(RowLengths::of(a.pattern().row_offsets())),
            Self::Dense { .. } => None,
        }
    }
}

impl Problem {
    /// Draws what a spec says.
    ///
    /// # Errors
    /// A pattern that cannot be drawn.
    pub fn draw(spec: &Spec, seed: u64) -> Result<Self> {
        let (rows, cols) = (spec.rows, spec.cols);
        let matrix = match &spec.source {
            Source::Dense => Matrix::Dense { rows, cols },
            Source::Sparse { pattern, values } => {
                let pattern = pattern.draw(rows, cols, seed);
                let pattern =
                    pattern.with_context(|| format!("the pattern of `{}` cannot be drawn", spec.name))?;
                let values = values.at(pattern.nnz(), seed);
                Matrix::Sparse(Csr::with_values(pattern, values)?)
            }
        };
        Ok(Self {
            name: spec.name.clone(),
            matrix,
            width: spec.width,
            batch: spec.batch,
            drawn: spec.pattern().cloned(),
            seed,
            group: spec.group.clone(),
            level: spec.level(),
            cov: spec.cov(),
        })
    }

    /// The problem of a matrix in a file: `.smtx`, whose values are drawn, or `.mtx`. Its values are ones where these are
    /// asked for.
    ///
    /// # Errors
    /// A file of another kind, or one that cannot be read.
    pub fn read(path: &Path, values: Values, width: usize, batch: usize, seed: u64) -> Result<Self> {
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into());
        let mut a = match path.extension().and_then(|extension| extension.to_str()) {
            Some("smtx") => {
                let pattern = io::smtx::read_path(path)?;
                let drawn = values.at(pattern.nnz(), seed);
                Csr::with_values(pattern, drawn)?
            }
            Some("mtx") => io::mtx::read_path(path)?,
            _ => {
                return Err(
                    Usage(format!("{}: expected a file named *.smtx or *.mtx", path.display())).into()
                );
            }
        };
        if values == Values::Ones {
            a = a.map_values(|_| 1.0);
        }
        let matrix = Matrix::Sparse(a);
        let group = String::new();
        Ok(Self { name, matrix, width, batch, drawn: None, seed, group, level: None, cov: None })
    }

    /// Its sparse matrix.
    ///
    /// # Errors
    /// [`Usage`] where it is dense.
    pub fn sparse(&self) -> Result<&Csr<f32>, Usage> {
        match &self.matrix {
            Matrix::Sparse(a) => Ok(a),
            Matrix::Dense { .. } => Err(Usage(format!("`{}` is dense: expected a sparse matrix", self.name))),
        }
    }

    /// Rows of its matrix.
    pub fn rows(&self) -> usize {
        self.matrix.rows()
    }

    /// Columns of its matrix.
    pub fn cols(&self) -> usize {
        self.matrix.cols()
    }

    /// Its numbers.
    pub fn size(&self) -> Size {
        let [rows, cols, elements, width, batch] =
            [self.rows(), self.cols(), self.matrix.elements(), self.width, self.batch]
                .map(|size| size as f64);
        Size { rows, cols, elements, width, batch }
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
        let drawn = generate::random_dense(rows, cols, self.seed ^ salt).map(Dense::into_values);
        let drawn = drawn.map_err(|error| too_large(name, &error))?;
        Ok(drawn.into_iter().map(of).collect())
    }

    /// Something to write a result of `len` values over: NaN, so that what is not written shows.
    ///
    /// # Errors
    /// [`Usage`] where this machine has no room for it.
    pub fn unwritten<T: Value>(&self, name: &str, len: usize) -> Result<Vec<T>> {
        let mut unwritten = Vec::new();
        unwritten.try_reserve_exact(len).map_err(|error| too_large(name, &error))?;
        unwritten.resize(len, T::from_f32(f32::NAN));
        Ok(unwritten)
    }

    /// The rows that are checked: all, or where that would take long, some of them, evenly spaced.
    pub fn checked_rows(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let rows = self.rows();
        let each = match self.matrix {
            Matrix::Sparse(_) => self.width,
            Matrix::Dense { .. } => CHECKING_AN_ELEMENT,
        };
        let products = self.matrix.elements().saturating_mul(each).saturating_mul(self.batch);
        let checked = (MOST_CHECKED * rows.max(1) / products.max(1)).clamp(1, rows.max(1));
        // Odd, so that all places in a tile's rows come.
        (0..rows).step_by(rows.div_ceil(checked).max(1) | 1)
    }
}

impl Values {
    /// So many of them. The salt of drawn ones is that of A.
    fn at(self, nnz: usize, seed: u64) -> Vec<f32> {
        match self {
            Self::Drawn => generate::random_values(nnz, seed ^ 0xa),
            Self::Ones => vec![1.0; nnz],
        }
    }
}

fn too_large(name: &str, error: &dyn std::error::Error) -> Usage {
    Usage(format!("{name}: {error}; take a smaller problem"))
}
