//! Pointwise convolution with sparse weights: the 1 × 1 layers of MobileNetV1 (SC 2020, section VII-D), with weights pruned at random.
//!
//! Records are those of convolutions, with the weights' part of zeros; peers are cuDNN and cuBLAS with dense weights.
mod layers;
mod measure;
mod peers;

pub use layers::{Pruned, drawn, mobilenet};
pub use measure::measure;
pub use peers::{CUBLAS, Products};
