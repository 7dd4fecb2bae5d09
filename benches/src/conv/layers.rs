//! The layers that are measured: those of the paper on cuSNN, and the depthwise ones of MobileNetV1.
use lacuna::conv::Shape;

/// A layer of a network.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    /// The network.
    pub network: &'static str,
    /// Channels, side of the map, filters.
    pub sizes: [usize; 3],
    /// Taps of a filter along a side, with padding of half of them.
    pub taps: usize,
    /// Pixels from one output pixel to the next.
    pub stride: usize,
    /// Whether each channel has a filter of its own.
    pub depthwise: bool,
}

impl Layer {
    /// Its shape, of so many images.
    pub fn shape(&self, batch: usize) -> Shape {
        let [channels, side, filters] = self.sizes;
        let taps = [self.taps; 2];
        let shape = if self.depthwise {
            Shape::depthwise(channels, [side; 2], taps)
        } else {
            Shape::new(channels, [side; 2], filters, taps)
        };
        shape.padding([self.taps / 2; 2]).strides([self.stride; 2]).batch(batch)
    }
}

const fn layer(network: &'static str, sizes: [usize; 3]) -> Layer {
    other(network, sizes, 3, 1)
}

const fn other(network: &'static str, sizes: [usize; 3], taps: usize, stride: usize) -> Layer {
    Layer { network, sizes, taps, stride, depthwise: false }
}

/// The network whose depthwise layers are here, and whose 1 × 1 layers have sparse weights (`pointwise`).
pub(crate) const MOBILENET_V1: &str = "MobileNetV1";

/// Depthwise layers of MobileNetV1: channels at width 1, side, stride.
const MOBILENET: [[usize; 3]; 9] = [
    [32, 112, 1],
    [64, 112, 2],
    [128, 56, 1],
    [128, 56, 2],
    [256, 28, 1],
    [256, 28, 2],
    [512, 14, 1],
    [512, 14, 2],
    [1024, 7, 1],
];

/// Channels at a width of MobileNetV1: whole eights.
pub(crate) fn at_width(channels: usize, width: f64) -> usize {
    (channels as f64 * width / 8.0).round() as usize * 8
}

/// The depthwise layers of MobileNetV1 at a width, with channels in whole eights.
pub fn mobilenet(width: f64) -> Vec<Layer> {
    let layer = |[channels, side, stride]: [usize; 3]| {
        let channels = at_width(channels, width);
        Layer { network: MOBILENET_V1, sizes: [channels, side, channels], taps: 3, stride, depthwise: true }
    };
    MOBILENET.into_iter().map(layer).collect()
}

/// The layers of the paper: stride 1.
pub const LAYERS: [Layer; 13] = [
    layer("DenseNet-201", [128, 56, 32]),
    layer("DenseNet-201", [128, 28, 32]),
    layer("DenseNet-201", [128, 14, 32]),
    layer("DenseNet-201", [128, 7, 32]),
    layer("ResNet-152", [64, 56, 64]),
    layer("ResNet-152", [128, 28, 128]),
    layer("ResNet-152", [256, 14, 256]),
    layer("ResNet-152", [512, 7, 512]),
    layer("VGG-16", [64, 224, 64]),
    layer("VGG-16", [128, 112, 128]),
    layer("VGG-16", [256, 56, 256]),
    layer("VGG-16", [512, 28, 512]),
    layer("VGG-16", [512, 14, 512]),
];

/// Layers with other taps and strides than those of the paper.
pub const OTHER_TAPS: [Layer; 16] = [
    other("ResNet-50 1x1", [256, 56, 64], 1, 1),
    other("ResNet-50 1x1", [64, 56, 256], 1, 1),
    other("ResNet-50 1x1", [512, 28, 128], 1, 1),
    other("ResNet-50 1x1", [1024, 14, 256], 1, 1),
    other("ResNet-50 1x1", [512, 7, 2048], 1, 1),
    other("ResNet-50 1x1 s2", [256, 56, 512], 1, 2),
    other("ResNet-50 3x3 s2", [128, 56, 128], 3, 2),
    other("ResNet-50 3x3 s2", [256, 28, 256], 3, 2),
    other("ResNet-50 3x3 s2", [512, 14, 512], 3, 2),
    other("AlexNet 5x5", [64, 27, 192], 5, 1),
    other("GoogLeNet 5x5", [32, 28, 96], 5, 1),
    other("GoogLeNet 5x5", [32, 14, 128], 5, 1),
    other("GoogLeNet 5x5", [48, 7, 128], 5, 1),
    other("ResNet-50 7x7 s2", [3, 224, 64], 7, 2),
    other("VGG-16 first", [3, 224, 64], 3, 1),
    other("MobileNetV1 first", [3, 224, 32], 3, 2),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_whole_eights_of_channels() {
        let channels = |width| mobilenet(width).iter().map(|layer| layer.sizes[0]).collect::<Vec<_>>();
        assert_eq!(channels(1.0), [32, 64, 128, 128, 256, 256, 512, 512, 1024]);
        assert_eq!(channels(1.8), [56, 112, 232, 232, 464, 464, 920, 920, 1840]);
        let shape = mobilenet(1.0)[1].shape(16);
        assert!(shape.is_depthwise() && shape.batch == 16);
        assert_eq!(shape.out_size(), [56, 56]);
    }
}
