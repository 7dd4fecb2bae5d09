//! What may be asked of the softmax.
use super::{Algorithm, OPERATION};
use crate::{Error, Result};

/// What may be asked of the softmax: y = softmax(scale·x), row by row, for a batch of matrices of one pattern.
///
/// ```
/// # use lacuna::softmax;
/// let attention_scores = softmax::Options::default().scale(1.0 / 64.0_f32.sqrt()).batch(8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Multiplies the values before all else: a finite number, other than 0, of a size from 2⁻¹⁰⁰ to 2¹⁰⁰.
    pub scale: f32,
    /// The algorithm, if not the library's choice.
    pub algorithm: Algorithm,
    /// Matrices in one run.
    pub batch: usize,
}

/// The least size of a scale: differences that overflow, multiplied by it, still underflow as exponents. Its inverse is the
/// greatest.
const LEAST_SCALE: f32 = 1.0 / (1u128 << 100) as f32;

impl Default for Options {
    fn default() -> Self {
        Self { scale: 1.0, algorithm: Algorithm::Auto, batch: 1 }
    }
}

impl Options {
    /// With values multiplied by `scale` before all else: in attention, one over the root of the dimension.
    #[must_use]
    pub fn scale(self, scale: f32) -> Self {
        Self { scale, ..self }
    }
    /// With this algorithm.
    #[must_use]
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }
    /// With `matrices` of one pattern in one run ([`with_value_batch`](crate::CsrMatrix::with_value_batch)).
    #[must_use]
    pub fn batch(self, matrices: usize) -> Self {
        Self { batch: matrices, ..self }
    }

    /// Whether the kernels can compute with the scale.
    pub(super) fn check(&self) -> Result<()> {
        if (LEAST_SCALE..=1.0 / LEAST_SCALE).contains(&self.scale.abs()) {
            return Ok(());
        }
        Err(Error::Parameter {
            operation: OPERATION,
            what: "the scale",
            expected: "a number of a size from 2^-100 to 2^100, and not 0".into(),
            got: self.scale.to_string(),
        })
    }
}
