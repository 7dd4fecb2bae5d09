//! Layer normalisation.
//!
//! [`conform()`] is the check that nearly all cases share; the other modules make tokens for it.
mod conform;
mod problem;
mod refusals;

pub use conform::conform;
pub use problem::Tokens;

use anyhow::{Result, ensure};
use half::bf16;
use lacuna::layer_norm::{Operands, Shape};
use lacuna::{Autotuner, LayerNorm};

use crate::{Case, Context, tuned};

/// Name, what it is, rows and features.
type Rows = (&'static str, &'static str, [usize; 2]);
/// Name, what it is, images, channels and pixels.
type Maps = (&'static str, &'static str, [usize; 3]);

const ROWS: [Rows; 11] = [
    ("none", "no rows", [0, 7]),
    ("no_features", "rows without features", [5, 0]),
    ("one_feature", "one feature: its own mean", [70, 1]),
    ("single_row", "one row", [1, 1024]),
    ("below_warp", "a feature less than a warp", [9, 31]),
    ("warp", "a warp of features", [17, 32]),
    ("above_warp", "a feature more than a warp", [8, 33]),
    ("vector", "rows of one vector of halves", [33, 8]),
    ("whole", "whole chunks of vectors of a warp", [9, 1024]),
    ("beside_chunks", "a vector more than a block's chunk", [1, 8200]),
    ("odd_long", "a feature more than many chunks", [2, 4097]),
];

const MAPS: [Maps; 7] = [
    ("none", "no pixels", [3, 4, 0]),
    ("one_pixel", "maps of one pixel are rows", [9, 40, 1]),
    ("small", "small maps: a warp has pixels of several images", [5, 12, 7]),
    ("one_channel", "one channel: its own mean", [2, 1, 33]),
    ("warp", "a warp of pixels, a chunk of channels", [2, 32, 32]),
    ("beside_chunks", "a channel more than chunks, a pixel more than a warp", [1, 65, 33]),
    ("many_channels", "many channels", [1, 1030, 3]),
];

/// All cases of layer normalisation.
pub(crate) fn cases() -> Vec<Case> {
    let rows = ROWS.into_iter().map(|(name, about, [rows, features])| {
        let check =
            move |cx: &Context<'_>| conform(cx, &Tokens::drawn(Shape::Rows { rows, features }, cx.seed));
        Case::new(format!("layer_norm/rows/{name}"), about, check)
    });
    let maps = MAPS.into_iter().map(|(name, about, [images, channels, pixels])| {
        let shape = Shape::Maps { images, channels, pixels };
        let check = move |cx: &Context<'_>| conform(cx, &Tokens::drawn(shape, cx.seed));
        Case::new(format!("layer_norm/maps/{name}"), about, check)
    });
    let values = [
        Case::new("layer_norm/values/constant", "tokens of one number each: no variance", constant),
        Case::new("layer_norm/values/offset", "a mean of 10⁶ and deviations of 1", offset),
        Case::new("layer_norm/values/not_finite", "NaN and ±∞ make their own tokens NaN", not_finite),
        Case::new("layer_norm/values/subnormal", "subnormal numbers, and squares that vanish", subnormal),
        Case::new("layer_norm/values/huge", "squares that overflow give the bias", huge),
        Case::new("layer_norm/tuned/file", "a measured plan is right, and found again in its file", file),
    ];
    rows.chain(maps).chain(values).chain(refusals::cases()).collect()
}

/// Rows, and maps of as many features, with numbers of their own: of drawn ones, and of the token's index.
fn both(cx: &Context<'_>, epsilon: f32, of: impl Fn(usize, f32) -> f32) -> Result<f64> {
    let (features, pixels) = (67, 19);
    let rows = Tokens::drawn(Shape::Rows { rows: pixels, features }, cx.seed).epsilon(epsilon);
    let maps = Shape::Maps { images: 1, channels: features, pixels };
    let maps = Tokens::drawn(maps, cx.seed).epsilon(epsilon);
    let worst = conform(cx, &rows.with(|at, x| of(at / features, x)))?;
    Ok(worst.max(conform(cx, &maps.with(|at, x| of(at % pixels, x)))?))
}

fn constant(cx: &Context<'_>) -> Result<f64> {
    both(cx, 1e-5, |token, _| 0.1 * token as f32)
}

/// A formula of one pass has nothing right here, and one that rounds the mean to f32 has errors of some percent.
fn offset(cx: &Context<'_>) -> Result<f64> {
    both(cx, 1e-5, |token, x| 1e6 * (token as f32 - 3.0) + 0.25 * x)
}

fn not_finite(cx: &Context<'_>) -> Result<f64> {
    both(cx, 1e-5, |token, x| match token {
        // One number in four, or so.
        1 if x > 2.0 => f32::NAN,
        3 if x > 2.0 => f32::INFINITY,
        4 if x > 2.0 => f32::NEG_INFINITY,
        6 if x.abs() > 2.0 => x.signum() * f32::INFINITY,
        _ => x,
    })
}

fn subnormal(cx: &Context<'_>) -> Result<f64> {
    // From 10⁻³⁸ up to where squares are normal numbers.
    let scaled = |token: usize, x: f32| x * 10_f32.powi(2 * token as i32 - 40);
    Ok(both(cx, 0.0, scaled)?.max(both(cx, 1e-40, scaled)?))
}

/// Results are the bias where the squares overflow; the oracle knows, too, where they just may.
fn huge(cx: &Context<'_>) -> Result<f64> {
    let worst = both(cx, 1e-5, |token, x| x * 10_f32.powi(17 + token as i32))?;
    let (rows, features) = (3, 70);
    let host: Vec<bf16> =
        (0..rows * features).map(|i| bf16::from_f32(if i % 2 == 0 { 1e25 } else { -1e25 })).collect();
    let bias: Vec<bf16> = (0..features).map(|i| bf16::from_f32(i as f32)).collect();
    let (mut tokens, bias_there) = (cx.device.upload(&host)?, cx.device.upload(&bias)?);
    let plan = LayerNorm::<bf16>::plan(cx.device, Shape::Rows { rows, features })?;
    plan.run_in_place(cx.stream, tokens.as_slice_mut(), None, Some(bias_there.as_slice()))?;
    let got = tokens.download(cx.stream)?;
    ensure!(got.chunks(features).all(|row| row == bias), "not the bias");
    Ok(worst)
}

fn file(cx: &Context<'_>) -> Result<f64> {
    let shape = Shape::Rows { rows: 90, features: 260 };
    let tune = |tuner: &Autotuner, stream: &lacuna::Stream| {
        tuner.tune(stream, LayerNorm::<f32>::plan(cx.device, shape)?, &())
    };
    let host: Vec<f32> = (0..90 * 260).map(|i| if i % 2 == 0 { 1.0 } else { 3.0 }).collect();
    let input = cx.device.upload(&host)?;
    let run = |plan: &LayerNorm| {
        let mut out = cx.device.upload(&vec![f32::NAN; 90 * 260])?;
        let (input, out_slice) = (input.as_slice(), out.as_slice_mut());
        plan.run(cx.stream, Operands { input, weight: None, bias: None, out: out_slice })?;
        Ok(out.download(cx.stream)?)
    };
    let (_, out) = tuned::same(cx, tune, |plan| *plan.choice(), run, 260)?;
    ensure!(out.iter().all(|x| (x.abs() - 1.0).abs() < 1e-5), "a tuned plan gives other numbers");
    Ok(0.0)
}
