//! Gradients by blocks.
mod choose;
mod plan;

pub use plan::{BlockBackwardOperands, BlockWorkspace};
