//! Measuring C = A·B with A sparse.
pub mod fit;
mod measure;
mod peers;

pub(crate) use measure::Measurement;
pub use measure::{Prepare, measure_variants};
