//! DenseNet.
use super::expect;
use crate::network::{Concat, Conv, Linear, Network, NetworkError, Pool, Scale, Shape};

/// DenseNet-BC: Huang, Liu, van der Maaten, Weinberger, *Densely Connected Convolutional Networks* (CVPR 2017), table 1.
///
/// Names are torchvision's: `features.conv0`, `features.norm0`; `features.denseblock<b>.denselayer<l>.` with `norm1`, `conv1`, `norm2`, `conv2`;
/// `features.transition<b>.norm` and `.conv`; `features.norm5`; `classifier`. (Its oldest files have `norm.1` for `norm1`, and so on.)
///
/// The norm before a layer's first convolution cannot be folded: what it reads, others read too. It is a pass of its own; all other norms are folded. With
/// one image in NCHW each layer writes its channels into the block's map, and nothing is copied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseNet {
    /// Layers of each block.
    pub blocks: [usize; 4],
    /// Channels that a layer adds; the stem has twice as many, and a layer's bottleneck four times.
    pub growth: usize,
    /// Rows and columns of the input.
    pub size: [usize; 2],
    /// Classes.
    pub classes: usize,
}

impl DenseNet {
    /// DenseNet-121.
    pub const D121: Self = Self { blocks: [6, 12, 24, 16], growth: 32, size: [224, 224], classes: 1000 };
    /// DenseNet-169.
    pub const D169: Self = Self { blocks: [6, 12, 32, 32], ..Self::D121 };
    /// DenseNet-201.
    pub const D201: Self = Self { blocks: [6, 12, 48, 32], ..Self::D121 };

    /// The network for so many images. Its result are scores, images × classes, without softmax.
    ///
    /// # Errors
    /// [`NetworkError::Size`] for a block without layers, and a growth that is not 1 to 2¹⁶; [`NetworkError::Layer`] for sizes that do not fit.
    pub fn network(&self, images: usize) -> Result<Network, NetworkError> {
        let Self { blocks, growth, .. } = *self;
        let has_layers = blocks.iter().all(|&layers| layers > 0);
        expect(has_layers, "DenseNet", "layers of a block", "at least 1", format!("{blocks:?}"))?;
        expect((1..=1 << 16).contains(&growth), "DenseNet", "the growth", "1 to 65536", growth)?;
        let mut builder = Network::builder(Shape::maps(images, 3, self.size));
        let stem = Conv::new(2 * growth, [7, 7]).strides([2, 2]).padding([3, 3]);
        let mut x =
            builder.layer("features.conv0", stem.norm("features.norm0").relu(), &[builder.input()])?;
        x = builder.layer("features.pool0", Pool::max([3, 3], [2, 2]).padding([1, 1]), &[x])?;
        let mut channels = 2 * growth;
        for (block, layers) in blocks.into_iter().enumerate() {
            let block = block + 1;
            for layer in 1..=layers {
                let prefix = format!("features.denseblock{block}.denselayer{layer}");
                let name = |part: &str| format!("{prefix}.{part}");
                let y = builder.layer(name("norm1"), Scale::norm().relu(), &[x])?;
                let conv = Conv::new(4 * growth, [1, 1]).norm(name("norm2")).relu();
                let y = builder.layer(name("conv1"), conv, &[y])?;
                let y = builder.layer(name("conv2"), Conv::new(growth, [3, 3]).padding([1, 1]), &[y])?;
                x = builder.layer(name("concat"), Concat, &[x, y])?;
                channels += growth;
            }
            if block < blocks.len() {
                let name = |part: &str| format!("features.transition{block}.{part}");
                channels /= 2;
                x = builder.layer(name("norm"), Scale::norm().relu(), &[x])?;
                x = builder.layer(name("conv"), Conv::new(channels, [1, 1]), &[x])?;
                x = builder.layer(name("pool"), Pool::average([2, 2], [2, 2]), &[x])?;
            }
        }
        x = builder.layer("features.norm5", Scale::norm().relu(), &[x])?;
        x = builder.layer("pool", Pool::global_average(), &[x])?;
        x = builder.layer("classifier", Linear::new(self.classes), &[x])?;
        builder.finish(x)
    }
}
