//! What may be asked of a lookup.
use super::Algorithm;
use crate::op::options;

/// What becomes of the rows that a bag names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Their sum.
    #[default]
    Sum,
    /// Their sum over their number; 0 for a bag that names none.
    Mean,
}

/// How the result lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// A row a bag.
    #[default]
    RowMajor,
    /// A row a column of the table, with an element a bag.
    Transposed,
}

options! {
    /// What may be asked of a lookup. The default is a sum of rows without gaps.
    ///
    /// ```
    /// # use lacuna::nhot;
    /// let means = nhot::Options::default().mode(nhot::Mode::Mean).padding_index(Some(0));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Options {
        /// Sum or mean.
        pub mode: Mode = Mode::Sum => set,
        /// The row that stands for none: its indices are left out, of the mean's number too, and it has no gradient.
        pub padding_index: Option<usize> = None => set,
        /// How the result lies.
        pub layout: Layout = Layout::RowMajor => set,
        /// The algorithm, if not the library's choice. It must be legal for the columns and the strides; where the addresses
        /// do not allow its vectors, the run is refused. Gradients take the library's choice.
        pub algorithm: Algorithm = Algorithm::Auto => set,
        /// Elements from one row of the table to the next; as many as columns if none.
        pub table_stride: Option<usize> = None => some(usize),
        /// Elements from one row of the result to the next; without gaps if none.
        pub out_stride: Option<usize> = None => some(usize),
    }
}
