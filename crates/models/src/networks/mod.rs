//! Networks of papers, with the tensor names of files that people have.
//!
//! | network | names as in | multiply-adds and parameters at 224 × 224 |
//! | --- | --- | --- |
//! | [`MobileNetV1`] | `pytorch-mobilenet`: `model.<block>.<part>.weight`, `fc.weight` | 569 M, 4.2 M at width 1 |
//! | [`ResNet`] | torchvision: `layer1.0.conv1.weight`, `fc.weight` | ResNet-50 4.1 G, 25.6 M |
//! | [`DenseNet`] | torchvision: `features.denseblock1.denselayer1.conv1.weight`, `classifier.weight` | DenseNet-121 2.8 G, 8.0 M |
//! | [`Vgg`] | torchvision: `features.0.weight`, `classifier.0.weight` | VGG-16 15.5 G, 138 M |
//! | [`TransformerBase`] | its own, with the sizes of DLMC's files | 12.3 G at 256 tokens, 44.1 M |
//!
//! Each is a struct with public fields, whose defaults are the paper's, and `network(images)`. Smaller ones, for tests, have a smaller
//! input and fewer channels; then no file fits but one's own. Channels of images are three.

mod densenet;
mod mobilenet;
mod resnet;
mod transformer;
mod transformer_base;
mod vgg;

use crate::network::NetworkError;

pub use densenet::DenseNet;
pub use mobilenet::MobileNetV1;
pub use resnet::ResNet;
pub use transformer::Transformer;
pub use transformer_base::TransformerBase;
pub use vgg::Vgg;

/// An error unless a size of a network is what it must be.
fn expect(
    is_right: bool,
    network: &'static str,
    what: &'static str,
    expected: &str,
    got: impl ToString,
) -> Result<(), NetworkError> {
    let (expected, got) = (expected.to_owned(), got.to_string());
    if is_right { Ok(()) } else { Err(NetworkError::Size { network, what, expected, got }) }
}
