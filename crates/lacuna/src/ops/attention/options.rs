//! What may be asked of attention.
use super::{Algorithm, OPERATION};
use crate::op::options;
use crate::{Error, Result};

options! {
    /// What may be asked of attention: heads, scale and algorithm.
    ///
    /// ```
    /// # use lacuna::attention;
    /// let heads_of_two_samples = attention::Options::default().batch(2 * 8);
    /// let unscaled = attention::Options::default().scale(1.0);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct Options {
        /// The algorithm, if not the library's choice. It must be legal for the dimension; where an address does not allow its
        /// vectors, the run is refused.
        pub algorithm: Algorithm = Algorithm::Auto => set,
        /// Heads that share the mask, of all samples together: Q, K, V and O of one follow those of another.
        pub batch: usize = 1 => set,
        /// Multiplies the scores; 1/√d if none.
        pub scale: Option<f32> = None => some(f32),
    }
}

impl Options {
    /// The factor of scores of rows of `dim` elements.
    pub(super) fn factor(&self, dim: usize) -> Result<f32> {
        let factor = self.scale.unwrap_or(1.0 / (dim as f32).sqrt());
        let (is_finite, expected) =
            (in_powers_of_two(factor).is_finite(), || "finite, also when multiplied by 1.443");
        Error::expect(is_finite, OPERATION, "the scale", expected, factor)?;
        Ok(factor)
    }
}

/// The factor of scores whose exponentials are powers of two; rounded once.
pub(super) fn in_powers_of_two(factor: f32) -> f32 {
    (f64::from(factor) * std::f64::consts::LOG2_E) as f32
}
