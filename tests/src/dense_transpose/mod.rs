//! Transposes of dense matrices.
//!
//! [`conform()`] is the check that nearly all cases share; `huge` has what 32 bits cannot count.
mod conform;
mod huge;
mod refusals;

pub use conform::{Shape, conform};

use anyhow::Result;
use half::{bf16, f16};
use lacuna::DenseTranspose;
use lacuna::matrix::generate;
use lacuna_reference::dense_transpose;

use crate::{Case, Context, Number};

/// Name, what it is, and matrices × rows × columns.
const SHAPES: [(&str, &str, [usize; 3]); 18] = [
    ("none", "no matrices", [0, 3, 4]),
    ("no_rows", "no rows", [1, 0, 7]),
    ("no_columns", "rows without elements", [2, 5, 0]),
    ("single", "one element", [1, 1, 1]),
    ("row", "a row of more than a tile's columns", [1, 1, 300]),
    ("column", "a column of more than a tile's rows", [1, 300, 1]),
    ("pair", "one pair of each of two rows", [1, 2, 2]),
    ("small", "many matrices, smaller than a pair in one direction", [20, 3, 2]),
    ("tile_of_words", "a whole tile of 32 bits", [1, 32, 64]),
    ("tile_of_halves", "a whole tile of 16 bits", [1, 64, 64]),
    ("tiles", "whole tiles in both directions", [1, 128, 128]),
    ("above_tiles", "a pair more than tiles", [1, 66, 130]),
    ("below_tiles", "an element less than tiles", [1, 63, 127]),
    ("odd_columns", "even rows, odd columns", [1, 40, 97]),
    ("odd_rows", "odd rows, even columns", [1, 97, 40]),
    ("pixels", "channels × 7 × 7 pixels of images", [3, 24, 49]),
    ("channels", "7 × 7 pixels × channels of images", [3, 49, 24]),
    ("heads", "heads of 64 × tokens", [4, 64, 100]),
];

/// All cases of transposes of dense matrices.
pub(crate) fn cases() -> Vec<Case> {
    let shapes = SHAPES.into_iter().map(|(name, about, shape)| {
        Case::new(format!("dense_transpose/shapes/{name}"), about, move |cx| conform(cx, shape))
    });
    let others = [
        Case::new("dense_transpose/values/bits", "every number of 16 bits, and NaN with payloads", bits),
        Case::new(
            "dense_transpose/values/there_and_back",
            "NCHW to NHWC and back is the same",
            there_and_back,
        ),
    ];
    shapes.chain(others).chain(huge::cases()).chain(refusals::cases()).collect()
}

/// All bit patterns of 16 bits, and of 32 bits those that a computation would change.
fn bits(cx: &Context<'_>) -> Result<f64> {
    let of_all = [256, 256];
    as_they_are(cx, of_all, &(0..=u16::MAX).map(f16::from_bits).collect::<Vec<_>>())?;
    as_they_are(cx, of_all, &(0..=u16::MAX).map(bf16::from_bits).collect::<Vec<_>>())?;
    let strange =
        [0x8000_0000, 0x7f80_0001, 0xff80_0001, 0x7fc0_dead, 0xffff_ffff, 1, 0x807f_ffff, 0x7f80_0000];
    as_they_are(cx, [2, 4], &strange.map(f32::from_bits))
}

fn as_they_are<T: Number>(cx: &Context<'_>, [rows, columns]: [usize; 2], host: &[T]) -> Result<f64> {
    let (matrix, mut out) = (cx.device.upload(host)?, cx.device.upload(&vec![T::CANARY; host.len()])?);
    let plan = DenseTranspose::<T>::plan(cx.device, rows, columns)?;
    plan.run(cx.stream, matrix.as_slice(), out.as_slice_mut())?;
    let report = dense_transpose(host, 1, [rows, columns])?.check(&out.download(cx.stream)?)?;
    Ok(report.worst_over_bound)
}

fn there_and_back(cx: &Context<'_>) -> Result<f64> {
    let (images, channels, pixels) = (2, 24, 5 * 9);
    let host = generate::random_values(images * channels * pixels, cx.seed);
    let options = lacuna::dense_transpose::Options::default().batch(images);
    let to_nhwc = DenseTranspose::plan_with(cx.device, channels, pixels, options)?;
    let to_nchw = DenseTranspose::plan_with(cx.device, pixels, channels, options)?;
    let nchw = cx.device.upload(&host)?;
    let [mut nhwc, mut back] = [cx.device.zeros::<f32>(host.len())?, cx.device.zeros::<f32>(host.len())?];
    to_nhwc.run(cx.stream, nchw.as_slice(), nhwc.as_slice_mut())?;
    to_nchw.run(cx.stream, nhwc.as_slice(), back.as_slice_mut())?;
    crate::expect::same_bits("there and back", &host, &back.download(cx.stream)?, pixels)?;
    Ok(0.0)
}
