//! MobileNetV1.
use super::expect;
use crate::network::{Conv, Linear, Network, NetworkError, Pool, Shape};

/// MobileNetV1: Howard et al., *MobileNets: Efficient Convolutional Neural Networks for Mobile Vision Applications* (2017), table 1.
///
/// Maps are padded by one on each side, as PyTorch's versions are; TensorFlow's pad strides of two on one side alone. Names: block 0 is
/// `model.0.0` (convolution) and `model.0.1` (norm); blocks 1 to 13 have `.0` and `.1` (depthwise), `.3` and `.4` (1×1); then `fc`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MobileNetV1 {
    /// The width multiplier: channels of each layer are this part of the paper's. The sparse networks of Gale et al. (SC 2020, table IV) have 1.3 to 1.8.
    pub width: f64,
    /// Channels are rounded to multiples of this, at least one of them: to the nearest, and not below 0.9 of what is asked for.
    pub divisor: usize,
    /// Rows and columns of the input.
    pub size: [usize; 2],
    /// Classes.
    pub classes: usize,
}

impl Default for MobileNetV1 {
    fn default() -> Self {
        Self { width: 1.0, divisor: 8, size: [224, 224], classes: 1000 }
    }
}

/// Channels and strides of the blocks.
const BLOCKS: [(usize, usize); 13] = [
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (1024, 2),
    (1024, 1),
];

impl MobileNetV1 {
    /// The network for so many images. Its result are scores, images × classes, without softmax.
    ///
    /// # Errors
    /// [`NetworkError::Size`] for a width that is not above 0 and at most 64, and a divisor of 0; [`NetworkError::Layer`] for sizes that do not fit.
    pub fn network(&self, images: usize) -> Result<Network, NetworkError> {
        let name = "MobileNetV1";
        let is_width = self.width > 0.0 && self.width <= 64.0;
        expect(is_width, name, "the width", "above 0, and at most 64", self.width)?;
        expect(self.divisor > 0, name, "the divisor of channels", "at least 1", self.divisor)?;
        let mut builder = Network::builder(Shape::maps(images, 3, self.size));
        let conv = Conv::new(self.channels(32), [3, 3]).strides([2, 2]).padding([1, 1]);
        let mut x = builder.layer("model.0.0", conv.norm("model.0.1").relu(), &[builder.input()])?;
        for (block, (channels, stride)) in BLOCKS.into_iter().enumerate() {
            let part = |part: usize| format!("model.{}.{part}", block + 1);
            let depthwise = Conv::depthwise([3, 3]).strides([stride, stride]).padding([1, 1]);
            x = builder.layer(part(0), depthwise.norm(part(1)).relu(), &[x])?;
            let pointwise = Conv::new(self.channels(channels), [1, 1]);
            x = builder.layer(part(3), pointwise.norm(part(4)).relu(), &[x])?;
        }
        x = builder.layer("pool", Pool::global_average(), &[x])?;
        x = builder.layer("fc", Linear::new(self.classes), &[x])?;
        builder.finish(x)
    }

    fn channels(&self, of_paper: usize) -> usize {
        let wanted = of_paper as f64 * self.width;
        let divisor = self.divisor as f64;
        let rounded = ((wanted / divisor).round() * divisor).max(divisor);
        let rounded = if rounded < 0.9 * wanted { rounded + divisor } else { rounded };
        rounded as usize
    }
}
