//! VGG.
use super::expect;
use crate::network::{Conv, Flatten, Linear, Network, NetworkError, Pool, Shape};

/// VGG-16 and VGG-19: Simonyan, Zisserman, *Very Deep Convolutional Networks for Large-Scale Image Recognition* (ICLR 2015), table 1, D and E.
///
/// Names are torchvision's: `features.<n>`, where ReLUs and poolings count too, and `classifier.0`, `.3` and `.6`. The first of these three reads all pixels of
/// the last maps, 7 × 7 of an input of 224 × 224; torchvision pools other sizes to that, this network has as many weights as pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vgg {
    /// Convolutions of each of the five stages.
    pub stages: [usize; 5],
    /// Channels of the first stage; the others have 2, 4, 8 and 8 times as many.
    pub width: usize,
    /// Features of the two hidden linear layers.
    pub hidden: usize,
    /// Rows and columns of the input.
    pub size: [usize; 2],
    /// Classes.
    pub classes: usize,
}

impl Vgg {
    /// VGG-16.
    pub const V16: Self =
        Self { stages: [2, 2, 3, 3, 3], width: 64, hidden: 4096, size: [224, 224], classes: 1000 };
    /// VGG-19.
    pub const V19: Self = Self { stages: [2, 2, 4, 4, 4], ..Self::V16 };

    /// The network for so many images. Its result are scores, images × classes, without softmax.
    ///
    /// # Errors
    /// [`NetworkError::Size`] for a stage without convolutions, and a width that is not 1 to 2¹⁶; [`NetworkError::Layer`] for sizes that do not fit.
    pub fn network(&self, images: usize) -> Result<Network, NetworkError> {
        let has_layers = self.stages.iter().all(|&layers| layers > 0);
        expect(has_layers, "VGG", "convolutions of a stage", "at least 1", format!("{:?}", self.stages))?;
        expect((1..=1 << 16).contains(&self.width), "VGG", "the width", "1 to 65536", self.width)?;
        let mut builder = Network::builder(Shape::maps(images, 3, self.size));
        let mut x = builder.input();
        // Numbers as in torchvision's sequence of convolutions, ReLUs and poolings.
        let mut number = 0;
        for (stage, layers) in self.stages.into_iter().enumerate() {
            let channels = self.width << stage.min(3);
            for _ in 0..layers {
                let conv = Conv::new(channels, [3, 3]).padding([1, 1]).bias().relu();
                x = builder.layer(format!("features.{number}"), conv, &[x])?;
                number += 2;
            }
            x = builder.layer(format!("features.{number}"), Pool::max([2, 2], [2, 2]), &[x])?;
            number += 1;
        }
        x = builder.layer("flatten", Flatten, &[x])?;
        x = builder.layer("classifier.0", Linear::new(self.hidden).relu(), &[x])?;
        x = builder.layer("classifier.3", Linear::new(self.hidden).relu(), &[x])?;
        x = builder.layer("classifier.6", Linear::new(self.classes), &[x])?;
        builder.finish(x)
    }
}
