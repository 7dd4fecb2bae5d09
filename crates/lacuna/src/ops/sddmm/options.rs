//! What may be asked of SDDMM.
use super::Algorithm;
use crate::Precision;

/// The order in which tiles of nonzeros are taken. Results do not depend on it; times do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schedule {
    /// [`ByColumn`](Schedule::ByColumn) where B is larger than a multiprocessor's cache, and tiles are many.
    #[default]
    Auto,
    /// As the nonzeros stand.
    Unsorted,
    /// Near tiles by their first column, so that those that run together read the same rows of B.
    ByColumn,
}

/// What may be asked of SDDMM: D = (A·Bᵀ) ⊙ I\[C\], for a batch of operands with any strides.
///
/// The default is one product of operands without gaps, with B as N×K.
///
/// ```
/// # use lacuna::sddmm;
/// let given_by_columns = sddmm::Options::default().b_transposed();
/// let heads = sddmm::Options::default().batch(8).a_stride(8 * 64).a_batch_stride(64);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The algorithm, if not the library's choice. It must be legal for K and the strides; where A's or B's address does
    /// not allow its vectors, the run is refused.
    pub algorithm: Algorithm,
    /// How exactly it is computed: see [`Precision`], where K stands for the length of rows.
    pub precision: Precision,
    /// The order in which tiles of nonzeros are taken.
    pub order: Schedule,
    /// Whether B is given as K×N. It is then transposed first, into memory of the plan.
    pub b_transposed: bool,
    /// Elements from one row of A to the next, K if none.
    pub a_stride: Option<usize>,
    /// Elements from one row of B to the next: K if none, or N where B is given as K×N.
    pub b_stride: Option<usize>,
    /// Products in one run.
    pub batch: usize,
    /// Elements from one A to the next, M strides of a row if none; 0 for one A that all products share.
    pub a_batch_stride: Option<usize>,
    /// Elements from one B to the next, as many strides as rows if none; 0 for one B that all products share.
    pub b_batch_stride: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Auto,
            precision: Precision::Single,
            order: Schedule::Auto,
            b_transposed: false,
            a_stride: None,
            b_stride: None,
            batch: 1,
            a_batch_stride: None,
            b_batch_stride: None,
        }
    }
}

impl Options {
    /// With this algorithm.
    #[must_use]
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }
    /// Computed this exactly.
    #[must_use]
    pub fn precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }
    /// With tiles taken in this order.
    #[must_use]
    pub fn order(self, order: Schedule) -> Self {
        Self { order, ..self }
    }
    /// With B given as K×N, row by row: D = (A·B) ⊙ I\[C\].
    #[must_use]
    pub fn b_transposed(self) -> Self {
        Self { b_transposed: true, ..self }
    }
    /// With `elements` from one row of A to the next, at least K: a leading dimension.
    #[must_use]
    pub fn a_stride(self, elements: usize) -> Self {
        Self { a_stride: Some(elements), ..self }
    }
    /// With `elements` from one row of B to the next, at least those of a row.
    #[must_use]
    pub fn b_stride(self, elements: usize) -> Self {
        Self { b_stride: Some(elements), ..self }
    }
    /// With `products` in one run, into as many D of one pattern
    /// ([`with_value_batch`](crate::CsrMatrix::with_value_batch)).
    #[must_use]
    pub fn batch(self, products: usize) -> Self {
        Self { batch: products, ..self }
    }
    /// With `elements` from one A of the batch to the next; 0 for one A that all products share.
    #[must_use]
    pub fn a_batch_stride(self, elements: usize) -> Self {
        Self { a_batch_stride: Some(elements), ..self }
    }
    /// With `elements` from one B of the batch to the next; 0 for one B that all products share.
    #[must_use]
    pub fn b_batch_stride(self, elements: usize) -> Self {
        Self { b_batch_stride: Some(elements), ..self }
    }
}
