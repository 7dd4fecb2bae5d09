//! How a problem is drawn.
use std::sync::Arc;

use lacuna::matrix::generate::GenerateError;
use lacuna::matrix::{Pattern, generate};

/// A problem before it is drawn: its main matrix, the width of what goes with it, and names.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Its name in tables.
    pub name: String,
    /// The part of the suite that it is summed up with, or nothing.
    pub group: String,
    /// Rows of the matrix.
    pub rows: usize,
    /// Its columns.
    pub cols: usize,
    /// Columns of the dense operands, as in [`Problem::width`](crate::Problem::width).
    pub width: usize,
    /// How often it is done in one call, with other values.
    pub batch: usize,
    /// Where the matrix comes from.
    pub source: Source,
}

/// Where a problem's matrix comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// It is sparse.
    Sparse {
        /// Its pattern.
        pattern: Draw,
        /// Its values.
        values: Values,
    },
    /// It is dense, and the operation draws its values.
    Dense,
}

/// The values at the nonzeros of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Values {
    /// Drawn, uniform in [-1, 1).
    #[default]
    Drawn,
    /// Ones: the pattern is of bags, which have no weights.
    Ones,
}

/// Where a pattern comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Draw {
    /// This one.
    Given(Arc<Pattern>),
    /// Positions uniform over the matrix.
    Uniform {
        /// The part that is zero.
        sparsity: f64,
    },
    /// Row lengths with a coefficient of variation.
    Varied {
        /// Nonzeros of the average row.
        mean: f64,
        /// Standard deviation of the row lengths over their mean.
        cov: f64,
    },
    /// Causal attention: a dense band, and ever fewer positions away from it.
    Mask {
        /// Columns of the band, the diagonal among them.
        band: usize,
        /// The part of what is below the band that is zero.
        sparsity: f64,
    },
    /// Causal attention of blocks: those on the diagonal, and others at random.
    Blocks {
        /// Rows of a block, and columns.
        side: usize,
        /// The part of the blocks below the diagonal that is empty.
        sparsity: f64,
    },
    /// Causal attention inside documents.
    Documents {
        /// Tokens of each.
        length: usize,
    },
    /// Row lengths by a power law, as in graphs.
    PowerLaw {
        /// Nonzeros of the average row.
        mean: f64,
        /// The law's exponent.
        exponent: f64,
    },
}

impl Draw {
    /// The pattern of rows × cols; of a mask, which is square, its rows count.
    ///
    /// # Errors
    /// What the generator says.
    pub fn draw(&self, rows: usize, cols: usize, seed: u64) -> Result<Arc<Pattern>, GenerateError> {
        let pattern = match *self {
            Self::Given(ref pattern) => return Ok(Arc::clone(pattern)),
            Self::Uniform { sparsity } => generate::uniform(rows, cols, sparsity, seed),
            Self::Varied { mean, cov } => generate::with_row_cov(rows, cols, mean, cov, seed),
            Self::PowerLaw { mean, exponent } => generate::power_law(rows, cols, mean, exponent, seed),
            Self::Mask { band, sparsity } => generate::band_random(rows, band, sparsity, seed),
            Self::Blocks { side, sparsity } => generate::block_mask(rows, side, sparsity, seed),
            Self::Documents { length } => generate::document_mask(rows, length),
        };
        pattern.map(Arc::new)
    }
}

/// The numbers of a problem, from which operations and bytes are counted. Whole numbers below 2⁵³ are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Rows of the matrix.
    pub rows: f64,
    /// Its columns.
    pub cols: f64,
    /// Nonzeros of a sparse matrix, all elements of a dense one.
    pub elements: f64,
    /// Columns of the dense operands.
    pub width: f64,
    /// How often it is done in one call.
    pub batch: f64,
}

impl Spec {
    /// The pattern, where the matrix is sparse.
    pub fn pattern(&self) -> Option<&Draw> {
        match &self.source {
            Source::Sparse { pattern, .. } => Some(pattern),
            Source::Dense => None,
        }
    }

    /// The part of zeros that the suite means, as far as it names one: a drawn matrix has it up to chance.
    pub fn level(&self) -> Option<f64> {
        let percent = |sparsity: f64| (sparsity * 100.0).round() / 100.0;
        match self.pattern()? {
            Draw::Uniform { sparsity } | Draw::Mask { sparsity, .. } | Draw::Blocks { sparsity, .. } => {
                Some(*sparsity)
            }
            Draw::Varied { mean, .. } => Some(percent(1.0 - mean / self.cols as f64)),
            Draw::Given(pattern) => Some(percent(pattern.stats().sparsity)),
            Draw::PowerLaw { .. } | Draw::Documents { .. } => None,
        }
    }

    /// The coefficient of variation of the row lengths that the suite means, as far as it names one.
    pub fn cov(&self) -> Option<f64> {
        if let Some(Draw::Varied { cov, .. }) = self.pattern() { Some(*cov) } else { None }
    }

    /// Its numbers; nonzeros up to rounding and chance.
    pub fn size(&self) -> Size {
        let [rows, cols, width, batch] =
            [self.rows, self.cols, self.width, self.batch].map(|size| size as f64);
        let elements = match self.pattern() {
            Some(Draw::Uniform { sparsity }) => (1.0 - sparsity) * rows * cols,
            Some(Draw::Varied { mean, .. } | Draw::PowerLaw { mean, .. }) => mean * rows,
            Some(Draw::Given(pattern)) => pattern.nnz() as f64,
            Some(Draw::Blocks { side, sparsity }) => {
                let (side, blocks) = (*side as f64, rows / *side as f64);
                side * side * blocks * (1.0 + (1.0 - sparsity) * 0.5 * (blocks - 1.0).max(0.0))
            }
            Some(Draw::Documents { length }) => 0.5 * rows * (*length as f64 + 1.0),
            Some(Draw::Mask { band, sparsity }) => {
                let (band, below) = ((*band as f64).min(rows), (rows - *band as f64).max(0.0));
                band * (rows - 0.5 * band) + (1.0 - sparsity) * 0.5 * below * below
            }
            None => rows * cols,
        };
        Size { rows, cols, elements, width, batch }
    }
}
