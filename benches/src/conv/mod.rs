//! Convolution of feature maps: the layers of the paper on cuSNN (PACT 2022), with drawn maps of any part of zeros, and real maps.
pub mod fit;
mod layers;
mod maps;
mod measure;
mod peers;
mod plot;
mod record;

pub use layers::{LAYERS, Layer, OTHER_TAPS, mobilenet};
pub(crate) use layers::{MOBILENET_V1, at_width};
pub use maps::{Input, drawn, real};
pub use measure::{How, measure};
pub use peers::{CUDNN_BF16, CUDNN_F16, CUDNN_F32, CUDNN_TF32, Peers, title};
pub use plot::plot;
pub use record::Record;
