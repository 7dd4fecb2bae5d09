//! O = softmax(scale·Q·Kᵀ ⊙ mask)·V for a sparse mask.
//!
//! Source: Gale, Zaharia, Young, Elsen, *Sparse GPU Kernels for Deep Learning* (SC 2020), section VII-C.
mod backward;
mod block_plan;
mod choose;
mod frame;
mod mask;
mod mask_blocks;
mod options;
mod plan;
mod query_tiles;
mod steps;

pub use backward::{BlockBackwardOperands, BlockWorkspace};
pub use block_plan::BlockAttention;
pub use choose::{Algorithm, Choice, Problem, choose};
pub use mask::Mask;
pub use mask_blocks::{BlockCounts, MaskBlocks, TilingCounts};
pub use options::Options;
pub use plan::{Operands, SparseAttention};
pub use steps::{AttentionSteps, BackwardOperands, Workspace};

/// What errors call this operation.
const OPERATION: &str = "attention";
