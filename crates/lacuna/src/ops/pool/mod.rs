//! Pooling of feature maps: the greatest pixel, or the mean, of each window or of the whole map.
mod choose;
mod options;
mod plan;
mod shape;

pub use crate::op::MapLayout;
pub use choose::{Algorithm, Choice, Problem, choose};
pub use options::{Mode, Options};
pub use plan::{Operands, Pool};
pub use shape::Shape;

/// What errors call this operation.
const OPERATION: &str = "pooling";
