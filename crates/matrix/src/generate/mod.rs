//! Seeded random matrices.
//!
//! The generator is xoshiro256++ (`rand::rngs::Xoshiro256PlusPlus`), seeded through `seed_from_u64`; how its
//! bits become indices and reals is fixed here, so the same arguments give the same matrix on every platform.
//! The exceptions are [`with_row_cov`] and [`power_law`]: their row lengths pass through logarithms and powers
//! of the platform's mathematics library, whose last bit may differ.
//!
//! | generator | rows | positions in a row |
//! | --- | --- | --- |
//! | [`uniform()`], [`uniform_nnz`] | as they fall | uniform over the matrix |
//! | [`with_row_cov`] | of lengths that vary by a given amount | uniform over the row |
//! | [`power_law`] | few long, many short | uniform over the row |
//! | [`band_random`] | growing, causal | a dense band, and ever fewer away from it |
//! | [`block_mask`] | growing, causal | whole blocks, at random |
//! | [`document_mask`] | growing, causal | the row's document, up to itself |
//! | [`random_values`], [`random_values_as`], [`random_dense`] | | values in [-1, 1) |

mod band;
mod lengths;
mod masks;
mod random;
mod uniform;
mod values;

pub use band::band_random;
pub use lengths::{power_law, with_row_cov};
pub use masks::{block_mask, document_mask};
pub use uniform::{uniform, uniform_nnz};
pub use values::{random_dense, random_values, random_values_as};

use crate::FormatError;
use thiserror::Error;

/// A random matrix cannot be made to these wishes.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// A parameter is out of its range.
    #[error("{parameter}: expected {expected}, got {got}")]
    Parameter {
        /// The parameter.
        parameter: &'static str,
        /// What it may be, given the other parameters.
        expected: String,
        /// What it is.
        got: String,
    },
    /// The matrix would be too large.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// An error that names a parameter unless `good`.
fn expect(
    good: bool,
    parameter: &'static str,
    expected: impl Into<String>,
    got: impl ToString,
) -> Result<(), GenerateError> {
    if good {
        return Ok(());
    }
    Err(GenerateError::Parameter { parameter, expected: expected.into(), got: got.to_string() })
}
