//! Transposes of dense matrices, a batch of them: feature maps from NCHW to NHWC and back, heads from d × tokens to tokens × d.
mod choose;
mod options;
mod plan;

pub use choose::{Algorithm, Choice, Problem, choose};
pub use options::Options;
pub use plan::DenseTranspose;

/// What errors call this operation.
const OPERATION: &str = "transpose of dense matrices";
