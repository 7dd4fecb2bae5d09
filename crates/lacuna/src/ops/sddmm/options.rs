//! What may be asked of SDDMM.
use super::Algorithm;
use crate::Precision;
use crate::op::options;

/// The order in which tiles of nonzeros are taken. Results do not depend on it; times do. Kernels on tensor cores have one order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schedule {
    /// [`ByColumn`](Schedule::ByColumn) where B is larger than a multiprocessor's cache, and tiles are many. Tiles of column panels go
    /// panel by panel, the longest of each first, which balances the load.
    #[default]
    Auto,
    /// As the nonzeros stand; tiles of column panels panel by panel, as the rows stand.
    Unsorted,
    /// Near tiles by their first column, so that those that run together read the same rows of B; of column panels as `Auto`.
    ByColumn,
}

options! {
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
        pub algorithm: Algorithm = Algorithm::Auto => set,
        /// How exactly it is computed: see [`Precision`], where K stands for the length of rows.
        pub precision: Precision = Precision::Single => set,
        /// The order in which tiles of nonzeros are taken.
        pub schedule: Schedule = Schedule::Auto => set,
        /// Over how many thread blocks K is split, if not the library's choice: at least 1. There are fewer where a split would have
        /// less than 128 bytes of a row, or where the sums of splits would be more than 2²⁶; [`Sddmm::splits`](super::Sddmm::splits)
        /// tells. With 1 the plan has no memory of its own for sums.
        pub splits: Option<usize> = None => some(usize),
        /// Whether B is given as K×N. It is then transposed first, into memory of the plan.
        pub b_transposed: bool = false,
        /// Elements from one row of A to the next, at least K: a leading dimension. K if none.
        pub a_stride: Option<usize> = None => some(usize),
        /// Elements from one row of B to the next, at least those of a row: K if none, or N where B is given as K×N.
        pub b_stride: Option<usize> = None => some(usize),
        /// Products in one run, into as many D of one pattern ([`with_value_batch`](crate::CsrMatrix::with_value_batch)).
        pub batch: usize = 1 => set,
        /// Elements from one A of the batch to the next, M strides of a row if none; 0 for one A that all products share.
        pub a_batch_stride: Option<usize> = None => some(usize),
        /// Elements from one B of the batch to the next, as many strides as rows if none; 0 for one B that all products share.
        pub b_batch_stride: Option<usize> = None => some(usize),
    }
}

impl Options {
    /// With B given as K×N, row by row: D = (A·B) ⊙ I\[C\].
    #[must_use]
    pub fn b_transposed(self) -> Self {
        Self { b_transposed: true, ..self }
    }
}
