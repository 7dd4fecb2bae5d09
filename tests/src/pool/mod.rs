//! Pooling of feature maps.
//!
//! [`conform()`] is the check that nearly all cases share; the other modules make maps for it.
mod conform;
mod maps;
mod refusals;

pub use conform::conform;
pub use maps::Maps;

use anyhow::{Result, ensure};
use lacuna::pool::{MapLayout, Mode, Operands, Options, Shape};
use lacuna::{Autotuner, Pool};

use crate::expect::same_numbers;
use crate::{Case, Context, tuned};

/// Name, what it is, and the shape.
type Layer = (&'static str, &'static str, Shape);

/// Windows of 3 × 3 pixels, with one pixel of padding.
const fn three(channels: usize, size: [usize; 2], stride: usize) -> Shape {
    Shape::new(channels, size, [3, 3]).strides([stride, stride]).padding([1, 1])
}

const LAYERS: [Layer; 27] = [
    ("pixel", "one pixel", Shape::new(1, [1, 1], [1, 1])),
    ("copy", "windows of one pixel", Shape::new(3, [5, 4], [1, 1])),
    ("subsample", "windows of one pixel, others between", Shape::new(9, [5, 7], [1, 1]).strides([2, 3])),
    ("two", "2 × 2 pixels", Shape::new(8, [8, 8], [2, 2])),
    ("two_odd", "a row and a column are left over", Shape::new(7, [9, 7], [2, 2]).batch(2)),
    ("two_padded", "padding of half a window", Shape::new(4, [6, 5], [2, 2]).padding([1, 1])),
    ("two_overlapping", "2 × 2 pixels, one apart", Shape::new(4, [5, 6], [2, 2]).strides([1, 1])),
    ("stem", "3 × 3 pixels, two apart", three(16, [14, 12], 2)),
    ("stem_odd", "strips that are cut", three(5, [13, 11], 2).batch(3)),
    ("same", "3 × 3 pixels, one apart", three(16, [6, 7], 1)),
    ("same_odd", "strips that are cut, channels that are no vectors", three(3, [7, 5], 1).batch(2)),
    ("inside", "3 × 3 pixels without padding", Shape::new(8, [9, 10], [3, 3]).strides([2, 2])),
    ("narrow", "a map of one column", three(8, [9, 1], 1)),
    ("flat", "a map of one row", three(8, [1, 9], 2)),
    ("five", "5 × 5 pixels", Shape::new(6, [9, 8], [5, 5]).strides([1, 1]).padding([2, 2])),
    (
        "oblong",
        "windows, strides and padding that differ by direction",
        Shape::new(8, [9, 14], [2, 5]).strides([1, 3]).padding([1, 2]),
    ),
    (
        "apart",
        "pixels between windows, of which none has them",
        Shape::new(8, [11, 8], [2, 2]).strides([3, 4]),
    ),
    (
        "over_all",
        "each window has the whole map",
        Shape::new(4, [2, 3], [4, 6]).strides([1, 1]).padding([2, 3]),
    ),
    ("row", "a window a row", Shape::new(5, [6, 9], [1, 9])),
    ("global", "7 × 7 pixels", Shape::global(40, [7, 7]).batch(3)),
    ("global_vectors", "planes of whole vectors, channels of more than a warp's", Shape::global(264, [4, 4])),
    ("global_oblong", "planes of several warps", Shape::global(3, [23, 19]).batch(2)),
    ("global_large", "planes of a block", Shape::global(2, [48, 45])),
    ("global_pixel", "maps of one pixel", Shape::global(37, [1, 1]).batch(2)),
    ("no_result", "windows larger than the map", Shape::new(2, [2, 2], [3, 3])),
    ("no_channels", "maps without channels", three(0, [4, 4], 1)),
    ("no_images", "no maps", Shape::global(4, [4, 4]).batch(0)),
];

/// All cases of pooling.
pub(crate) fn cases() -> Vec<Case> {
    let layers = LAYERS.into_iter().map(|(name, about, shape)| {
        let check = move |cx: &Context<'_>| conform(cx, &Maps::drawn(shape, cx.seed));
        Case::new(format!("pool/layers/{name}"), about, check)
    });
    let strange = |name: &str, shape: Shape, step: usize| {
        let check = move |cx: &Context<'_>| conform(cx, &Maps::strange(shape, step, cx.seed));
        Case::new(format!("pool/values/{name}"), "NaN, ±∞, -0, subnormal and huge numbers", check)
    };
    let values = [
        strange("strange", three(9, [9, 8], 2), 7),
        strange("strange_same", three(8, [9, 8], 1), 13),
        strange("strange_any", Shape::new(8, [8, 9], [4, 4]).strides([3, 2]).padding([2, 1]), 13),
        strange("strange_only", Shape::new(8, [8, 9], [2, 2]), 1),
        strange("strange_global", Shape::global(24, [6, 6]), 47),
        Case::new("pool/values/negative", "padding is no pixel of 0", |cx| {
            conform(cx, &Maps::negative(three(8, [6, 5], 2), cx.seed))
        }),
        Case::new("pool/values/nan", "NaN before and after greater and smaller numbers", nan),
        Case::new("pool/tuned/file", "a measured plan is right, and found again in its file", file),
    ];
    layers.chain(values).chain(refusals::cases()).collect()
}

/// One pixel of a window is NaN, wherever it stands; a window of -∞ alone stays that.
fn nan(cx: &Context<'_>) -> Result<f64> {
    let (nan, small) = (f32::NAN, f32::NEG_INFINITY);
    let windows: [([f32; 4], f32); 8] = [
        ([nan, 1.0, 2.0, 3.0], nan),
        ([3.0, nan, 2.0, 1.0], nan),
        ([1.0, f32::INFINITY, nan, 0.0], nan),
        ([small, small, small, nan], nan),
        ([-nan, 1.0, 2.0, 3.0], nan),
        ([small; 4], small),
        ([small, small, -7.0, small], -7.0),
        ([0.0, f32::INFINITY, small, 1.0], f32::INFINITY),
    ];
    // A window a channel, as all of a map and as a part of one.
    let input: Vec<f32> = windows.iter().flat_map(|(pixels, _)| *pixels).collect();
    let expected = windows.map(|(_, greatest)| greatest);
    for shape in [
        Shape::global(8, [2, 2]),
        Shape::new(8, [2, 2], [2, 2]).strides([1, 1]),
        Shape::new(4, [4, 2], [2, 2]),
    ] {
        let plan = Pool::plan(cx.device, shape, Options::default())?;
        let (x, mut out) = (cx.device.upload(&input)?, cx.device.upload(&[0.0_f32; 8])?);
        plan.run(cx.stream, Operands { input: x.as_slice(), out: out.as_slice_mut() })?;
        same_numbers(&format!("{shape:?}"), &expected, &out.download(cx.stream)?, 0)?;
    }
    Ok(0.0)
}

fn file(cx: &Context<'_>) -> Result<f64> {
    let shape = three(64, [28, 27], 2);
    let options = Options::default().mode(Mode::AverageExcludePadding).layout(MapLayout::Nhwc);
    let tune = |tuner: &Autotuner, stream: &lacuna::Stream| {
        tuner.tune(stream, Pool::<f32>::plan(cx.device, shape, options)?, &())
    };
    let input = cx.device.upload(&vec![-3.0_f32; shape.input_len()])?;
    let run = |plan: &Pool| {
        let mut out = cx.device.upload(&vec![f32::NAN; shape.output_len()])?;
        plan.run(cx.stream, Operands { input: input.as_slice(), out: out.as_slice_mut() })?;
        Ok(out.download(cx.stream)?)
    };
    let (_, out) = tuned::same(cx, tune, |plan| *plan.choice(), run, shape.channels)?;
    ensure!(out.iter().all(|x| (x + 3.0).abs() < 1e-5), "the mean of equal numbers is another");
    Ok(0.0)
}
