//! The N greatest values of each row, as probabilities of its softmax; and beam search, which is made of that.
mod beam;
mod choose;
mod options;
mod plan;

pub use beam::{BeamSearch, BeamState};
pub use choose::{Algorithm, Choice, Problem, choose};
pub use options::{Options, Output};
pub use plan::TopN;

/// What errors call this operation.
const OPERATION: &str = "top-N";
