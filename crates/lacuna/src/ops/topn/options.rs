//! What may be asked of top-N.
use lacuna_kernels::topn::Form;

use super::{Algorithm, OPERATION};
use crate::op::options;
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

options! {
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
        pub output: Output = Output::Probabilities => set,
        /// Divides the logits before the softmax: a number from 2⁻¹⁰⁰ to 2¹⁰⁰.
        pub temperature: f32 = 1.0 => set,
        /// Elements from row to row of the logits, if not as many as a row has.
        pub row_stride: Option<usize> = None => some(usize),
        /// The algorithm, if not the library's choice.
        pub algorithm: Algorithm = Algorithm::Auto => set,
    }
}

/// The least temperature: logits whose difference overflows are still far apart. Its inverse is the greatest.
const LEAST: f32 = 1.0 / (1u128 << 100) as f32;

impl Options {
    /// What a difference of logits is multiplied with to be an exponent of 2.
    pub(super) fn exponent_scale(&self) -> Result<f32> {
        let is_right = (LEAST..=1.0 / LEAST).contains(&self.temperature);
        let expected = || "a number from 2^-100 to 2^100";
        Error::expect(is_right, OPERATION, "the temperature", expected, self.temperature)?;
        Ok((std::f64::consts::LOG2_E / f64::from(self.temperature)) as f32)
    }
}
