//! The layers that are measured: poolings of known networks.
use lacuna::pool::{Mode, Shape};

/// A layer of a network.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    /// The network.
    pub network: &'static str,
    /// What is made of windows.
    pub mode: Mode,
    /// The sizes, of one image.
    pub shape: Shape,
}

/// Square windows on square maps.
const fn layer(
    network: &'static str,
    mode: Mode,
    [channels, side]: [usize; 2],
    [window, stride, padding]: [usize; 3],
) -> Layer {
    let shape = Shape::new(channels, [side; 2], [window; 2]).strides([stride; 2]).padding([padding; 2]);
    Layer { network, mode, shape }
}

/// The mean of whole maps.
const fn global(network: &'static str, channels: usize, side: usize) -> Layer {
    Layer { network, mode: Mode::AverageIncludePadding, shape: Shape::global(channels, [side; 2]) }
}

/// All layers.
pub const LAYERS: [Layer; 24] = [
    layer("ResNet-50", Mode::Max, [64, 112], [3, 2, 1]),
    layer("VGG-16", Mode::Max, [64, 224], [2, 2, 0]),
    layer("VGG-16", Mode::Max, [128, 112], [2, 2, 0]),
    layer("VGG-16", Mode::Max, [256, 56], [2, 2, 0]),
    layer("VGG-16", Mode::Max, [512, 28], [2, 2, 0]),
    layer("VGG-16", Mode::Max, [512, 14], [2, 2, 0]),
    layer("GoogLeNet", Mode::Max, [192, 28], [3, 1, 1]),
    layer("GoogLeNet", Mode::Max, [480, 14], [3, 1, 1]),
    layer("GoogLeNet", Mode::Max, [832, 7], [3, 1, 1]),
    layer("Inception-v3", Mode::AverageIncludePadding, [192, 35], [3, 1, 1]),
    layer("Inception-v3", Mode::AverageIncludePadding, [768, 17], [3, 1, 1]),
    layer("Inception-v3", Mode::AverageExcludePadding, [1280, 8], [3, 1, 1]),
    layer("DenseNet-201", Mode::AverageIncludePadding, [128, 56], [2, 2, 0]),
    layer("DenseNet-201", Mode::AverageIncludePadding, [256, 28], [2, 2, 0]),
    layer("DenseNet-201", Mode::AverageIncludePadding, [896, 14], [2, 2, 0]),
    layer("YOLOv3-SPP", Mode::Max, [512, 19], [5, 1, 2]),
    layer("YOLOv3-SPP", Mode::Max, [512, 19], [9, 1, 4]),
    layer("YOLOv3-SPP", Mode::Max, [512, 19], [13, 1, 6]),
    global("ResNet-50", 2048, 7),
    global("MobileNetV1", 1024, 7),
    global("DenseNet-201", 1920, 7),
    global("SE-ResNet-50", 256, 56),
    global("SE-ResNet-50", 512, 28),
    global("SE-ResNet-50", 1024, 14),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_networks() {
        let sizes = |name| {
            let of_network = LAYERS.iter().filter(move |layer| layer.network == name);
            of_network.map(|layer| layer.shape.out_size()[0]).collect::<Vec<_>>()
        };
        assert_eq!(sizes("VGG-16"), [112, 56, 28, 14, 7]);
        assert_eq!(sizes("ResNet-50"), [56, 1]);
        assert_eq!(sizes("YOLOv3-SPP"), [19; 3]);
        assert!(LAYERS.iter().filter(|layer| layer.shape.is_global()).count() == 6);
    }
}
