//! Pointwise (1×1) convolution with sparse weights: a product of a sparse matrix and each image's map.
//!
//! Source: Gale, Zaharia, Young, Elsen, *Sparse GPU Kernels for Deep Learning* (SC 2020), section VII-D.
mod gather;
mod options;
mod plan;

pub use crate::op::Activation;
pub use options::Options;
pub use plan::{Operands, SparsePointwiseConv};

/// What errors call this operation.
const OPERATION: &str = "sparse pointwise convolution";
