//! What may be asked of transposes.
use super::Algorithm;
use crate::op::options;

options! {
    /// What may be asked of transposes of dense matrices. The default is one matrix without gaps, to a result without gaps.
    ///
    /// ```
    /// # use lacuna::dense_transpose;
    /// let images = dense_transpose::Options::default().batch(16);
    /// // 8 heads side by side in rows of 512, each to a matrix of its own.
    /// let heads = dense_transpose::Options::default().batch(8).input_stride(512).input_batch_stride(64);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Options {
        /// The algorithm, if not the library's choice.
        pub algorithm: Algorithm = Algorithm::Auto => set,
        /// Matrices to transpose in one run: images, heads.
        pub batch: usize = 1 => set,
        /// Elements from one row of a matrix to the next; as many as columns if none.
        pub input_stride: Option<usize> = None => some(usize),
        /// Elements from one matrix to the next; its rows' strides if none. Matrices may overlap, or be one, with 0.
        pub input_batch_stride: Option<usize> = None => some(usize),
        /// Elements from one row of a result to the next; as many as the matrix has rows if none. The gaps are not written.
        pub out_stride: Option<usize> = None => some(usize),
        /// Elements from one result to the next; its rows' strides if none. They may lie one after another, or side by side
        /// within the stride of a row; they must not overlap.
        pub out_batch_stride: Option<usize> = None => some(usize),
    }
}
