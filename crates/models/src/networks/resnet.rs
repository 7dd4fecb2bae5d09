//! ResNet with bottlenecks.
use super::expect;
use crate::network::{Builder, Conv, Linear, Network, NetworkError, Pool, Shape, ValueId};

/// ResNet-50 and deeper: He, Zhang, Ren, Sun, *Deep Residual Learning for Image Recognition* (CVPR 2016), table 1.
///
/// As torchvision has it, the strides are on the 3×3 taps of a block ("v1.5"). Names: `conv1`, `bn1`;
/// `layer<stage>.<block>.conv<1 to 3>` with `bn<1 to 3>`, `…downsample.0` with `…downsample.1`; `fc`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResNet {
    /// Blocks of each stage.
    pub blocks: [usize; 4],
    /// Channels of the first stage's bottlenecks; its results have four times as many, and each stage twice as many as the one before.
    pub width: usize,
    /// Rows and columns of the input.
    pub size: [usize; 2],
    /// Classes.
    pub classes: usize,
}

impl ResNet {
    /// ResNet-50.
    pub const R50: Self = Self { blocks: [3, 4, 6, 3], width: 64, size: [224, 224], classes: 1000 };
    /// ResNet-101.
    pub const R101: Self = Self { blocks: [3, 4, 23, 3], ..Self::R50 };
    /// ResNet-152.
    pub const R152: Self = Self { blocks: [3, 8, 36, 3], ..Self::R50 };

    /// The network for so many images. Its result are scores, images × classes, without softmax.
    ///
    /// # Errors
    /// [`NetworkError::Size`] for a stage without blocks, and a width that is not 1 to 2¹⁶; [`NetworkError::Layer`] for sizes that do not fit.
    pub fn network(&self, images: usize) -> Result<Network, NetworkError> {
        let has_blocks = self.blocks.iter().all(|&blocks| blocks > 0);
        expect(has_blocks, "ResNet", "blocks of a stage", "at least 1", format!("{:?}", self.blocks))?;
        let is_width = (1..=1 << 16).contains(&self.width);
        expect(is_width, "ResNet", "the width", "1 to 65536", self.width)?;
        let mut builder = Network::builder(Shape::maps(images, 3, self.size));
        let stem = Conv::new(self.width, [7, 7]).strides([2, 2]).padding([3, 3]).norm("bn1").relu();
        let mut x = builder.layer("conv1", stem, &[builder.input()])?;
        x = builder.layer("maxpool", Pool::max([3, 3], [2, 2]).padding([1, 1]), &[x])?;
        for (stage, blocks) in self.blocks.into_iter().enumerate() {
            for block in 0..blocks {
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                let prefix = format!("layer{}.{block}", stage + 1);
                x = bottleneck(&mut builder, &prefix, x, self.width << stage, stride, block == 0)?;
            }
        }
        x = builder.layer("avgpool", Pool::global_average(), &[x])?;
        x = builder.layer("fc", Linear::new(self.classes), &[x])?;
        builder.finish(x)
    }
}

/// 1×1, 3×3 and 1×1 taps, and what goes round them.
fn bottleneck(
    builder: &mut Builder,
    prefix: &str,
    x: ValueId,
    width: usize,
    stride: usize,
    is_first: bool,
) -> Result<ValueId, NetworkError> {
    let name = |part: &str| format!("{prefix}.{part}");
    let y = builder.layer(name("conv1"), Conv::new(width, [1, 1]).norm(name("bn1")).relu(), &[x])?;
    let conv = Conv::new(width, [3, 3]).strides([stride, stride]).padding([1, 1]);
    let y = builder.layer(name("conv2"), conv.norm(name("bn2")).relu(), &[y])?;
    let residual = if is_first {
        let conv = Conv::new(4 * width, [1, 1]).strides([stride, stride]).norm(name("downsample.1"));
        builder.layer(name("downsample.0"), conv, &[x])?
    } else {
        x
    };
    let conv = Conv::new(4 * width, [1, 1]).norm(name("bn3")).residual().relu();
    builder.layer(name("conv3"), conv, &[y, residual])
}
