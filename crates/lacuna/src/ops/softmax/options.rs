//! What may be asked of the softmax.
use super::{Algorithm, OPERATION};
use crate::op::options;
use crate::{Error, Result};

options! {
    /// What may be asked of the softmax: y = softmax(scale·x), row by row, for a batch of matrices of one pattern.
    ///
    /// ```
    /// # use lacuna::softmax;
    /// let attention_scores = softmax::Options::default().scale(1.0 / 64.0_f32.sqrt()).batch(8);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct Options {
        /// Multiplies the values before all else: a finite number, other than 0, of a size from 2⁻¹⁰⁰ to 2¹⁰⁰. In attention,
        /// one over the root of the dimension.
        pub scale: f32 = 1.0 => set,
        /// The algorithm, if not the library's choice.
        pub algorithm: Algorithm = Algorithm::Auto => set,
        /// Matrices of one pattern in one run ([`with_value_batch`](crate::CsrMatrix::with_value_batch)).
        pub batch: usize = 1 => set,
    }
}

/// The least size of a scale: differences that overflow, multiplied by it, still underflow as exponents. Its inverse is the
/// greatest.
const LEAST_SCALE: f32 = 1.0 / (1u128 << 100) as f32;

impl Options {
    /// Whether the kernels can compute with the scale.
    pub(super) fn check(&self) -> Result<()> {
        let is_right = (LEAST_SCALE..=1.0 / LEAST_SCALE).contains(&self.scale.abs());
        let expected = || "a number of a size from 2^-100 to 2^100, and not 0";
        Error::expect(is_right, OPERATION, "the scale", expected, self.scale)
    }
}
