//! What may be asked of layer normalisation.
use super::{Algorithm, OPERATION};
use crate::op::options;
use crate::{Error, Result};

options! {
    /// What may be asked of layer normalisation. The default is an ε of 10⁻⁵, and rows or images without gaps.
    ///
    /// ```
    /// # use lacuna::layer_norm;
    /// let of_bert = layer_norm::Options::default().epsilon(1e-12);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct Options {
        /// ε, which is added to the variance: finite, not below 0.
        pub epsilon: f32 = 1e-5 => set,
        /// The algorithm, if not the library's choice. It must be legal for the shape and the strides; where the addresses
        /// do not allow its vectors, the run is refused.
        pub algorithm: Algorithm = Algorithm::Auto => set,
        /// Elements from one row, or image, of the input to the next; as many as it has if none.
        pub input_stride: Option<usize> = None => some(usize),
        /// Elements from one row, or image, of the result to the next; as many as it has if none. The gaps are not written.
        pub out_stride: Option<usize> = None => some(usize),
    }
}

impl Options {
    /// Whether ε is a number that can be added to a variance.
    pub(super) fn check(&self) -> Result<()> {
        let is_right = self.epsilon.is_finite() && self.epsilon >= 0.0;
        Error::expect(is_right, OPERATION, "epsilon", || "a finite number from 0 on", self.epsilon)
    }
}
