//! Layer normalisation: the features of each token of a Transformer, less their mean, over their standard deviation.
mod choose;
mod options;
mod plan;
mod shape;

pub use choose::{Algorithm, Choice, Problem, choose};
pub use options::Options;
pub use plan::{LayerNorm, Operands};
pub use shape::Shape;

/// What errors call this operation.
const OPERATION: &str = "layer normalisation";
