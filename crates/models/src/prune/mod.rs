//! Pruning: weights of small magnitude become zero, or those that a mask leaves out.
//!
//! ```
//! use lacuna_models::prune::{self, CubicSchedule};
//! use lacuna_models::weights::{Tensor, Weights};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut weights = Weights::new();
//! weights.insert("fc.weight", Tensor::new(vec![2, 3], vec![0.1, -0.9, 0.3, 0.2, 0.0, -0.4])?);
//! weights.insert("fc.bias", Tensor::new(vec![2], vec![0.01, 0.02])?);
//!
//! // From nothing to 90 % zeros in 4 steps, 100 steps of training apart; here the second of them.
//! let schedule = CubicSchedule::new(0.0, 0.9, 0, 100, 4)?;
//! prune::each(&mut weights, schedule.sparsity(100), prune::is_matrix)?;
//! assert_eq!(weights.get("fc.weight", &[2, 3])?.values(), [0.0, -0.9, 0.3, 0.0, 0.0, -0.4]);
//! # Ok(())
//! # }
//! ```

mod magnitude;
mod masks;
mod schedule;
mod select;
mod stats;
mod threshold;

use lacuna_matrix::FormatError;
use thiserror::Error;

pub use magnitude::{each, global, tensor};
pub use masks::{MaskError, Masks};
pub use schedule::CubicSchedule;
pub use select::{Patterns, is_matrix};
pub use stats::LayerStats;

/// What was asked of pruning makes no sense.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum PruneError {
    /// A sparsity is a part of the elements.
    #[error("{what}: expected from 0 to 1, got {got}")]
    Sparsity {
        /// Which sparsity.
        what: &'static str,
        /// What it is.
        got: f64,
    },
    /// Sparsity only grows.
    #[error("the last sparsity: expected at least the first, {initial}, got {target}")]
    Decreases {
        /// The first sparsity.
        initial: f64,
        /// The last.
        target: f64,
    },
    /// A schedule needs steps.
    #[error("{what} of a schedule: expected at least 1, got 0")]
    NoSteps {
        /// What there is none of.
        what: &'static str,
    },
    /// A schedule ends after the last step that can be counted.
    #[error(
        "a schedule of {prunings} prunings, {interval} steps apart, from step {start} on: its last step does not fit 64 bits"
    )]
    TooLong {
        /// The first step.
        start: u64,
        /// Steps between two prunings.
        interval: u64,
        /// Prunings after the first.
        prunings: u64,
    },
    /// A tensor is no matrix that 32 bits count.
    #[error("tensor {tensor}: {source}")]
    Format {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        source: FormatError,
    },
}

/// An error unless this is a part of something.
fn check_sparsity(what: &'static str, got: f64) -> Result<(), PruneError> {
    // NaN is in no range.
    if (0.0..=1.0).contains(&got) { Ok(()) } else { Err(PruneError::Sparsity { what, got }) }
}
