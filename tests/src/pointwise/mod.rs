//! Pointwise convolution with sparse weights.
//!
//! [`conform()`] is the check that nearly all cases share; the other modules make maps for it.
mod conform;
mod maps;
mod place;
mod refusals;

pub use conform::conform;
pub use maps::Maps;

use anyhow::{Result, ensure};
use lacuna::conv::Shape;
use lacuna::matrix::{Csr, generate};
use lacuna::pointwise::{Operands, Options};
use lacuna::{Autotuner, CsrMatrix, SparsePointwiseConv};

use crate::expect::same_bits;
use crate::{Case, Context};

/// Name, what it is, the shape, and the part of the weights that is zero.
type Layer = (&'static str, &'static str, Shape, f64);

const fn layer(channels: usize, size: [usize; 2], filters: usize) -> Shape {
    Shape::new(channels, size, filters, [1, 1])
}

const LAYERS: [Layer; 15] = [
    ("pixel", "one pixel, one weight", layer(1, [1, 1], 1), 0.0),
    ("vectors", "pixels that are whole vectors", layer(24, [8, 8], 32), 0.7),
    ("odd", "7 × 7 pixels: rows that are not aligned", layer(19, [7, 7], 33), 0.7),
    ("batch", "two images", layer(16, [4, 6], 20).batch(2), 0.8),
    ("batch_odd", "three images of an odd number of pixels", layer(9, [5, 3], 10).batch(3), 0.6),
    ("long", "sums that are long enough for split products", layer(160, [4, 4], 16).batch(2), 0.5),
    ("stride", "every other pixel", layer(11, [8, 9], 13).strides([2, 2]).batch(2), 0.6),
    (
        "stride_wide",
        "strides that differ, one of them beyond the map",
        layer(5, [7, 4], 6).strides([3, 5]),
        0.4,
    ),
    ("padding", "zeros around", layer(6, [5, 4], 9).padding([1, 2]).batch(2), 0.5),
    (
        "stride_padding",
        "every other pixel, which begin outside",
        layer(7, [6, 7], 8).strides([2, 3]).padding([1, 2]).batch(2),
        0.5,
    ),
    ("outside", "strides that meet padding alone", layer(3, [2, 2], 4).strides([3, 3]).padding([1, 1]), 0.3),
    ("empty", "no weights: the bias alone", layer(8, [4, 4], 8).batch(2), 1.0),
    ("no_channels", "nothing to sum", layer(0, [3, 3], 4).batch(2), 0.0),
    ("no_filters", "no results", layer(4, [3, 3], 0), 0.0),
    ("no_images", "nothing to do", layer(4, [3, 3], 5).batch(0), 0.5),
];

/// All cases of pointwise convolution.
pub(crate) fn cases() -> Vec<Case> {
    let layers = LAYERS.into_iter().map(|(name, about, shape, sparsity)| {
        let check = move |cx: &Context<'_>| conform(cx, &Maps::drawn(shape, sparsity, cx.seed)?, false);
        Case::new(format!("pointwise/layers/{name}"), about, check)
    });
    let others = [
        Case::new("pointwise/weights/empty_rows", "filters without weights", |cx| {
            conform(cx, &Maps::with_empty_rows(layer(12, [5, 5], 10).batch(2), cx.seed)?, false)
        }),
        Case::new("pointwise/weights/algorithms", "every legal algorithm, aligned", |cx| {
            conform(cx, &Maps::drawn(layer(70, [4, 4], 40).batch(2), 0.05, cx.seed)?, true)
        }),
        Case::new(
            "pointwise/weights/algorithms_odd",
            "every legal algorithm, rows that are not aligned",
            |cx| conform(cx, &Maps::drawn(layer(20, [3, 5], 9).batch(2), 0.5, cx.seed)?, true),
        ),
        Case::new("pointwise/weights/changed", "other values of the same pattern", changed),
        Case::new("pointwise/values/strange", "NaN, ±∞, -0, subnormal and huge numbers", |cx| {
            conform(cx, &Maps::strange(layer(30, [5, 6], 12).batch(2), cx.seed)?, false)
        }),
        Case::new("pointwise/values/strange_padding", "the same, with zeros around", |cx| {
            let shape = layer(30, [5, 6], 12).strides([2, 1]).padding([1, 1]);
            conform(cx, &Maps::strange(shape, cx.seed)?, false)
        }),
        Case::new("pointwise/tuned/memory", "a measured plan gives what it gave before", tuned),
    ];
    layers.chain(others).chain(refusals::cases()).collect()
}

/// A plan and its memory serve again: other maps and weights leave nothing of the ones before.
fn changed(cx: &Context<'_>) -> Result<f64> {
    let shape = layer(4, [3, 4], 5).strides([2, 2]).padding([1, 0]);
    let maps = Maps::drawn(shape, 0.5, cx.seed)?;
    let first = CsrMatrix::new(cx.device, &maps.weights)?;
    let others = generate::random_values(first.nnz(), cx.seed ^ 7);
    let second = first.with_values(&others)?;
    let fresh = CsrMatrix::new(cx.device, &Csr::with_values(maps.weights.pattern().clone(), others)?)?;
    let plan = SparsePointwiseConv::plan(&first, shape, Options::default())?;
    let run = |plan: &SparsePointwiseConv, weights: &CsrMatrix, input: &[f32]| -> Result<Vec<f32>> {
        let x = cx.device.upload(input)?;
        let mut out = cx.device.upload(&vec![f32::NAN; plan.output_len()])?;
        let (input, out_slice) = (x.as_slice(), out.as_slice_mut());
        plan.run(cx.stream, Operands { weights, input, bias: None, out: out_slice })?;
        Ok(out.download(cx.stream)?)
    };
    let other: Vec<f32> = maps.input.iter().map(|x| 2.0 - x).collect();
    run(&plan, &first, &vec![f32::NAN; maps.input.len()])?;
    let got = run(&plan, &second, &other)?;
    let expected = run(&SparsePointwiseConv::plan(&fresh, shape, Options::default())?, &fresh, &other)?;
    ensure!(got.iter().all(|x| x.is_finite()), "what a run before gathered is still there");
    same_bits("a used plan, and a new one", &expected, &got, 0)?;
    Ok(0.0)
}

fn tuned(cx: &Context<'_>) -> Result<f64> {
    let shape = layer(16, [8, 8], 24).batch(2);
    let maps = Maps::drawn(shape, 0.8, cx.seed)?;
    let weights = CsrMatrix::new(cx.device, &maps.weights)?;
    let plan = SparsePointwiseConv::plan(&weights, shape, Options::default().relu())?;
    let plan = plan.tuned(&Autotuner::in_memory(), cx.stream, &weights)?;
    let (x, bias) = (cx.device.upload(&maps.input)?, cx.device.upload(&maps.bias)?);
    let mut out = cx.device.upload(&vec![f32::NAN; plan.output_len()])?;
    let operands = Operands {
        weights: &weights,
        input: x.as_slice(),
        bias: Some(bias.as_slice()),
        out: out.as_slice_mut(),
    };
    plan.run(cx.stream, operands)?;
    let shape = lacuna_cases::conv::oracle_shape(shape, shape.batch);
    let reference = lacuna_reference::pointwise(&shape, &maps.weights, &maps.input)?;
    let arithmetic = plan.choice().entry.tile.scheme.arithmetic();
    let reference = reference.precision(crate::spmm::arithmetic::precision_on(arithmetic))?;
    let epilogue = lacuna_reference::Epilogue {
        bias: Some(&maps.bias),
        lo: 0.0,
        ..lacuna_reference::Epilogue::default()
    };
    Ok(reference.check_with(&epilogue, &out.download(cx.stream)?)?.worst_over_bound)
}
