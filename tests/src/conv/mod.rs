//! Convolution of feature maps.
//!
//! [`conform()`] is the check that nearly all cases share; the other modules make maps for it.
mod conform;
mod cudnn;
mod maps;
mod refusals;

pub use conform::conform;
use conform::conform_by;
pub use maps::Maps;

use lacuna::conv::{Algorithm, Shape};

use crate::{Case, Context};

/// Name, what it is, the shape, and the part of zeros.
type Layer = (&'static str, &'static str, Shape, f64);

const fn square(channels: usize, size: [usize; 2], filters: usize) -> Shape {
    Shape::new(channels, size, filters, [3, 3]).padding([1, 1])
}

const LAYERS: [Layer; 38] = [
    ("pixel", "one pixel, one filter", square(1, [1, 1], 1), 0.0),
    ("tile", "a tile of each kernel, and channels for all warps", square(8, [7, 7], 64), 0.6),
    ("odd", "tiles that are cut on both sides, and a filter more than a group", square(5, [13, 9], 33), 0.5),
    ("split", "channels that are split over blocks, unevenly", square(70, [7, 6], 40), 0.8),
    ("batch", "three images", square(9, [8, 15], 10).batch(3), 0.7),
    ("inside", "no padding", Shape::new(4, [9, 10], 8, [3, 3]), 0.5),
    ("wide_padding", "more padding than a filter meets", square(3, [4, 3], 5).padding([3, 4]), 0.3),
    ("no_zeros", "dense maps", square(10, [9, 9], 20), 0.0),
    ("all_zeros", "maps without anything", square(10, [9, 9], 20), 1.0),
    ("pointwise", "1 × 1 taps", Shape::new(17, [8, 9], 35, [1, 1]), 0.6),
    (
        "pointwise_deep",
        "1 × 1 taps, channels that warps and blocks share, vectors of pixels and of filters",
        Shape::new(232, [5, 8], 36, [1, 1]).batch(2),
        0.5,
    ),
    (
        "pointwise_stride",
        "1 × 1 taps, every other pixel",
        Shape::new(20, [9, 7], 8, [1, 1]).strides([2, 2]).batch(2),
        0.5,
    ),
    (
        "panels_stride",
        "channels and filters in eights, with taps and strides that differ by direction",
        Shape::new(24, [9, 14], 40, [2, 5]).strides([1, 3]).padding([0, 2]).batch(3),
        0.5,
    ),
    ("stride", "3 × 3 taps, two pixels apart", square(6, [17, 12], 36).strides([2, 2]), 0.6),
    (
        "five_stride",
        "5 × 5 taps, two pixels apart",
        Shape::new(9, [11, 13], 33, [5, 5]).padding([2, 2]).strides([2, 2]),
        0.6,
    ),
    ("seven_unit", "7 × 7 taps", Shape::new(5, [9, 8], 34, [7, 7]).padding([3, 3]), 0.6),
    ("five", "5 × 5 taps", Shape::new(5, [12, 11], 34, [5, 5]).padding([2, 2]), 0.6),
    (
        "seven",
        "7 × 7 taps, two pixels apart",
        Shape::new(3, [20, 19], 9, [7, 7]).padding([3, 3]).strides([2, 2]),
        0.2,
    ),
    (
        "few_channels",
        "3 × 3 taps, two pixels apart, of three channels: tiles that are cut, and filters of several groups",
        square(3, [21, 38], 71).strides([2, 2]).batch(2),
        0.3,
    ),
    (
        "few_channels_eights",
        "the same with filters in eights, of four channels",
        square(4, [21, 38], 72).strides([2, 2]).batch(2),
        0.3,
    ),
    (
        "seven_eights",
        "7 × 7 taps, two pixels apart, with filters in eights",
        Shape::new(3, [20, 19], 40, [7, 7]).padding([3, 3]).strides([2, 2]),
        0.2,
    ),
    (
        "oblong",
        "taps and strides that differ by direction",
        Shape::new(4, [9, 14], 7, [2, 5]).strides([1, 3]).padding([0, 2]),
        0.4,
    ),
    (
        "depthwise",
        "a filter a channel, vectors of channels",
        Shape::depthwise(36, [13, 9], [3, 3]).padding([1, 1]).batch(2),
        0.5,
    ),
    (
        "depthwise_odd",
        "channels that are no whole vectors",
        Shape::depthwise(7, [6, 11], [3, 3]).padding([1, 1]),
        0.3,
    ),
    (
        "depthwise_stride",
        "every other pixel",
        Shape::depthwise(8, [12, 15], [3, 3]).padding([1, 1]).strides([2, 2]),
        0.5,
    ),
    (
        "depthwise_five",
        "5 × 5 taps, every other pixel",
        Shape::depthwise(4, [11, 11], [5, 5]).padding([2, 2]).strides([2, 2]),
        0.4,
    ),
    (
        "depthwise_wide",
        "rows of more than a warp",
        Shape::depthwise(3, [5, 140], [3, 3]).padding([1, 1]),
        0.4,
    ),
    (
        "depthwise_wide_stride",
        "the same, every other pixel, and a last strip that shares rows with the one before",
        Shape::depthwise(3, [9, 136], [3, 3]).padding([1, 1]).strides([2, 2]),
        0.4,
    ),
    (
        "depthwise_five_wide",
        "5 × 5 taps, rows of more than a warp",
        Shape::depthwise(2, [6, 72], [5, 5]).padding([2, 2]).batch(2),
        0.4,
    ),
    (
        "depthwise_five_wide_stride",
        "the same, every other pixel",
        Shape::depthwise(2, [7, 136], [5, 5]).padding([2, 2]).strides([2, 2]),
        0.4,
    ),
    (
        "depthwise_planes",
        "small planes, more than two blocks have, that are no whole vectors",
        Shape::depthwise(35, [7, 7], [3, 3]).padding([1, 1]),
        0.4,
    ),
    (
        "depthwise_planes_even",
        "planes of 14 × 14 pixels",
        Shape::depthwise(17, [14, 14], [3, 3]).padding([1, 1]).batch(2),
        0.4,
    ),
    (
        "depthwise_planes_stride",
        "the same, every other pixel",
        Shape::depthwise(33, [14, 14], [3, 3]).padding([1, 1]).strides([2, 2]),
        0.4,
    ),
    (
        "depthwise_unpadded",
        "padding that is not half of the taps",
        Shape::depthwise(8, [8, 12], [3, 3]).padding([2, 0]),
        0.4,
    ),
    (
        "depthwise_inner",
        "no padding, every other pixel",
        Shape::depthwise(6, [17, 10], [3, 3]).strides([2, 2]).batch(2),
        0.4,
    ),
    (
        "depthwise_any",
        "2 × 4 taps",
        Shape::depthwise(5, [7, 10], [2, 4]).padding([0, 1]).strides([1, 3]),
        0.4,
    ),
    ("no_result", "filters larger than the map", Shape::new(2, [2, 2], 3, [3, 3]), 0.5),
    ("no_channels", "nothing to sum: the bias alone", Shape::new(0, [4, 4], 3, [3, 3]).padding([1, 1]), 0.5),
];

/// All cases of convolution.
pub(crate) fn cases() -> Vec<Case> {
    let layers = LAYERS.into_iter().map(|(name, about, shape, zeros)| {
        let check = move |cx: &Context<'_>| conform(cx, &Maps::drawn(shape, zeros, cx.seed));
        Case::new(format!("conv/layers/{name}"), about, check)
    });
    let strange = Case::new("conv/values/strange", "NaN, ±∞, -0, subnormal and huge numbers", |cx| {
        conform(cx, &Maps::strange(square(9, [9, 8], 6), cx.seed))?;
        conform(cx, &Maps::strange(Shape::new(9, [4, 9], 12, [1, 1]), cx.seed))?;
        conform(cx, &Maps::strange(square(3, [5, 9], 20), cx.seed))?;
        conform(cx, &Maps::strange(square(1, [9, 18], 40), cx.seed))?;
        conform(cx, &Maps::strange(square(16, [5, 5], 24).batch(3), cx.seed))
    });
    let depthwise = Case::new("conv/values/strange_depthwise", "the same, with a filter a channel", |cx| {
        let shape = Shape::depthwise(8, [8, 12], [3, 3]).padding([1, 1]);
        conform(cx, &Maps::strange(shape, cx.seed))?;
        conform(cx, &Maps::strange(shape.strides([2, 2]), cx.seed))?;
        let planes = |side| Shape::depthwise(5, [side, side], [3, 3]).padding([1, 1]);
        conform(cx, &Maps::strange(planes(7), cx.seed))?;
        conform(cx, &Maps::strange(planes(14).strides([2, 2]), cx.seed))
    });
    let panels = |pixels, filters| Algorithm::WgmmaPanels { pixels, filters };
    let about = "panels: more channels and filters than one has, and tiles with pixels of several images";
    let tiles = Case::new("conv/layers/panels", about, move |cx| {
        let maps = Maps::drawn(square(72, [5, 6], 136).batch(5), 0.5, cx.seed);
        let worst = conform_by(cx, &maps, panels(128, 64))?.max(conform_by(cx, &maps, panels(128, 128))?);
        Ok(worst.max(conform_by(cx, &maps, panels(256, 128))?))
    });
    let about = "panels: more tiles than a GPU has blocks, with sums in the first ones that are made again";
    let in_turn = Case::new("conv/layers/panels_in_turn", about, move |cx| {
        // 134 tiles, two of which a block takes one after another.
        let maps = Maps::drawn(Shape::new(72, [16, 17], 8456, [1, 1]), 0.5, cx.seed).with_infinities();
        conform_by(cx, &maps, panels(256, 128))
    });
    let about = "few channels on tensor cores: more tiles than a GPU has blocks, with sums in the first ones that are made again";
    let few_in_turn = Case::new("conv/layers/few_channels_in_turn", about, |cx| {
        // A tile an image, and 4 blocks a multiprocessor.
        let maps =
            Maps::drawn(square(3, [7, 9], 16).strides([2, 2]).batch(531), 0.5, cx.seed).with_infinities();
        conform_by(cx, &maps, Algorithm::FewChannelsMma { rows: 4, filters: 32 })
    });
    layers
        .chain([strange, depthwise, tiles, in_turn, few_in_turn])
        .chain(cudnn::cases())
        .chain(refusals::cases())
        .collect()
}
