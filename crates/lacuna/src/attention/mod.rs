//! O = softmax(scale·Q·Kᵀ ⊙ mask)·V for a sparse mask.
//!
//! Source: Gale, Zaharia, Young, Elsen, *Sparse GPU Kernels for Deep Learning* (SC 2020), section VII-C.
mod choose;
mod options;
mod plan;
mod quads;
mod steps;

pub use choose::{AttentionAlgorithm, AttentionChoice, AttentionProblem, choose};
pub use options::AttentionOptions;
pub use plan::{AttentionOperands, SparseAttention};
pub(crate) use quads::Quads;
pub use steps::{AttentionPass, AttentionSteps, AttentionWorkspace};

/// What errors call this operation.
const OPERATION: &str = "attention";
