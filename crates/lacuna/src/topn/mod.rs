//! The N greatest values of each row, as probabilities of its softmax.
mod choose;
mod options;
mod plan;

pub use choose::{TopNAlgorithm, TopNChoice, TopNProblem, choose_topn};
pub use options::{TopNOptions, TopNOutput};
pub use plan::TopN;

/// What errors call this operation.
const OPERATION: &str = "top-N";
