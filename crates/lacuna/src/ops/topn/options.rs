//! What may be asked of top-N.
use lacuna_kernels::topn::Form;

use super::{Algorithm, OPERATION};
use crate::{Error, Result};

/// What the values of a result are. Which elements they belong to, and their order, does not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// The softmax of logits / temperature, over the whole row.
    #[default]
    Probabilities,
    /// The natural logarithm of that.
    LogProbabilities,
    /// The logits, as they are.
    Logits,
}

impl Output {
    pub(super) fn form(self) -> Form {
        match self {
            Self::Probabilities => Form::Probability,
            Self::LogProbabilities => Form::LogProbability,
            Self::Logits => Form::Logit,
        }
    }
}

/// What may be asked of top-N.
///
/// ```
/// # use lacuna::topn;
/// let for_beams = topn::Options::default().output(topn::Output::LogProbabilities);
/// let for_sampling = topn::Options::default().temperature(0.7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// What the values of the result are.
    pub output: Output,
    /// Divides the logits before the softmax: a number from 2⁻¹⁰⁰ to 2¹⁰⁰.
    pub temperature: f32,
    /// Elements from row to row of the logits, if not as many as a row has.
    pub row_stride: Option<usize>,
    /// The algorithm, if not the library's choice.
    pub algorithm: Algorithm,
}

impl Default for Options {
    fn default() -> Self {
        Self { output: Output::Probabilities, temperature: 1.0, row_stride: None, algorithm: Algorithm::Auto }
    }
}

/// The least temperature: logits whose difference overflows are still far apart. Its inverse is the greatest.
const LEAST: f32 = 1.0 / (1u128 << 100) as f32;

impl Options {
    /// With these values in the result.
    #[must_use]
    pub fn output(self, output: Output) -> Self {
        Self { output, ..self }
    }
    /// With logits divided by `temperature` before the softmax.
    #[must_use]
    pub fn temperature(self, temperature: f32) -> Self {
        Self { temperature, ..self }
    }
    /// With rows of logits this many elements apart.
    #[must_use]
    pub fn row_stride(self, elements: usize) -> Self {
        Self { row_stride: Some(elements), ..self }
    }
    /// With this algorithm.
    #[must_use]
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// What a difference of logits is multiplied with to be an exponent of 2.
    pub(super) fn exponent_scale(&self) -> Result<f32> {
        if (LEAST..=1.0 / LEAST).contains(&self.temperature) {
            return Ok((std::f64::consts::LOG2_E / f64::from(self.temperature)) as f32);
        }
        Err(Error::Parameter {
            operation: OPERATION,
            what: "the temperature",
            expected: "a number from 2^-100 to 2^100".into(),
            got: self.temperature.to_string(),
        })
    }
}
