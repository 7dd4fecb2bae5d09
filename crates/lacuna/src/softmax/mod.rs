//! The softmax over the rows of a sparse matrix, and its gradient.
mod choose;
mod lengths;
mod options;
mod plan;

pub use choose::{Algorithm, Part, Problem, choose};
pub use lengths::RowLengths;
pub use options::Options;
pub use plan::SparseSoftmax;

/// What errors call this operation.
const OPERATION: &str = "sparse softmax";
