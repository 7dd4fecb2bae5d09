//! Measuring C = A·B with A sparse.
pub mod fit;
mod measure;
mod peers;
pub mod samples;

pub(crate) use measure::{Measurement, Operands};
pub use measure::{Prepare, measure_variants};
pub(crate) use peers::measure as measure_peers;
