//! Measuring C = A·B with A sparse.
pub mod fit;
mod measure;
pub(crate) mod model;
mod peers;
mod problem;

pub use measure::{Options, measure};
pub use problem::Problem;
