//! Pooling of feature maps: layers of known networks, with drawn maps.
mod layers;
mod measure;
mod record;

pub use layers::{LAYERS, Layer};
pub use measure::{How, measure};
pub use record::Record;
