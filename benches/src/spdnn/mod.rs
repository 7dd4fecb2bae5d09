//! Measuring networks of the Sparse DNN Challenge.
mod cache;
mod measure;
mod plot;
mod problem;
mod published;
mod record;
mod runs;

pub use measure::{Expected, Measured, measure};
pub use plot::Profile;
pub use problem::{LayerError, Network};
pub use published::{Published, published};
pub use record::Record;
