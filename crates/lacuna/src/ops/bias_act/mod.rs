//! Bias and activation of a dense matrix, with a residual: one pass over memory for what follows a linear layer or a
//! convolution.
mod choose;
mod options;
mod plan;

pub use choose::{Algorithm, Choice, Problem, choose};
pub use options::{Activation, Bias, Options};
pub use plan::{BiasAct, Operands};

/// What errors call this operation.
const OPERATION: &str = "bias and activation";
