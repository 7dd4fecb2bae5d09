//! Measuring C = A·B with A sparse.
mod arithmetic;
pub mod fit;
mod measure;
pub(crate) mod model;
mod peers;
mod problem;

pub use measure::{Prepare, measure, measure_variants};
pub(crate) use peers::PeerSession;
pub use problem::Problem;
