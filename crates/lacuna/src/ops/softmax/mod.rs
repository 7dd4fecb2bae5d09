//! The softmax over the rows of a sparse matrix, and its gradient.
mod choose;
mod options;
mod plan;

pub use choose::{Algorithm, Part, Problem, choose};
pub use options::Options;
pub use plan::SparseSoftmax;

pub use crate::pattern::RowLengths;

/// What errors call this operation.
const OPERATION: &str = "sparse softmax";
