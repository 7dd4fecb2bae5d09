//! Measuring networks of the Sparse DNN Challenge.
mod cache;
mod measure;
mod part;
mod plot;
mod problem;
mod published;
mod ranks;
mod record;
mod runs;

pub use measure::{Expected, Measured, measure};
pub use part::RankRecord;
pub use plot::Profile;
pub use problem::{LayerError, Network};
pub use published::{Published, published};
pub use ranks::{Ranks, Share};
pub use record::{Record, Times};
