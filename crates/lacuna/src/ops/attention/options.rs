//! What may be asked of attention.
use super::{Algorithm, OPERATION};
use crate::{Error, Result};

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
    pub algorithm: Algorithm,
    /// Heads that share the mask: samples times heads.
    pub batch: usize,
    /// Multiplies the scores; 1/√d if none.
    pub scale: Option<f32>,
}

impl Default for Options {
    fn default() -> Self {
        Self { algorithm: Algorithm::Auto, batch: 1, scale: None }
    }
}

impl Options {
    /// With this algorithm.
    #[must_use]
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }
    /// For so many heads, of all samples together: Q, K, V and O of one follow those of another.
    #[must_use]
    pub fn batch(self, heads: usize) -> Self {
        Self { batch: heads, ..self }
    }
    /// With scores multiplied by `scale`.
    #[must_use]
    pub fn scale(self, scale: f32) -> Self {
        Self { scale: Some(scale), ..self }
    }

    /// The factor of scores of rows of `dim` elements.
    pub(super) fn factor(&self, dim: usize) -> Result<f32> {
        let factor = self.scale.unwrap_or(1.0 / (dim as f32).sqrt());
        if in_powers_of_two(factor).is_finite() {
            return Ok(factor);
        }
        Err(Error::Parameter {
            operation: OPERATION,
            what: "the scale",
            expected: "finite, also when multiplied by 1.443".into(),
            got: factor.to_string(),
        })
    }
}

/// The factor of scores whose exponentials are powers of two; rounded once.
pub(super) fn in_powers_of_two(factor: f32) -> f32 {
    (f64::from(factor) * std::f64::consts::LOG2_E) as f32
}
