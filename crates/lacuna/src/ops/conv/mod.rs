//! Convolution of feature maps whose zeros are left out, with bias, residual and activation in the same pass.
mod algorithm;
mod choose;
mod cudnn;
mod depthwise;
mod filters;
mod fold;
mod model;
mod operands;
mod options;
mod pack;
mod plan;
mod planes;
mod shape;

pub use crate::op::{Activation, Constant, MapLayout, ModelFile, Provenance, Section};
pub use algorithm::Algorithm;
pub use choose::{Choice, Problem, choose};
pub use filters::Filters;
pub use fold::BatchNorm;
pub use model::CostModel;
pub use operands::Operands;
pub use options::Options;
pub use plan::Conv;
pub use shape::Shape;

/// What errors call this operation.
const OPERATION: &str = "convolution";
