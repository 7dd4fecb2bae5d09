//! Measuring networks of the Sparse DNN Challenge.
mod cache;
mod measure;
mod problem;
mod published;
mod record;
mod runs;

pub use measure::{Expected, Measured, measure};
pub use problem::{LayerError, Network};
pub use published::{Published, published};
pub use record::Record;
