//! Bias and activation of dense matrices.
//!
//! [`conform()`] is the check that nearly all cases share; the other modules make matrices for it.
mod conform;
mod problem;
mod refusals;

pub use conform::conform;
pub use problem::Dense;

use anyhow::{Result, ensure};
use lacuna::bias_act::{Activation, Algorithm, Bias, Operands, Options};
use lacuna::{Autotuner, BiasAct};

use crate::expect::same_numbers;
use crate::{Case, Context, tuned};

/// Name, what it is, rows and columns.
type Shape = (&'static str, &'static str, [usize; 2]);

const SHAPES: [Shape; 12] = [
    ("none", "no elements", [0, 7]),
    ("no_columns", "rows without elements", [5, 0]),
    ("single", "one element", [1, 1]),
    ("row", "a row of more than a tile's columns", [1, 2500]),
    ("column", "a column of more than a tile's rows", [300, 1]),
    ("vector", "rows of one vector of halves", [70, 8]),
    ("around_vectors", "rows that end beside a vector", [33, 31]),
    ("pixels", "7 × 7 pixels a channel", [36, 49]),
    ("tile", "whole tiles of 32 lanes", [32, 256]),
    ("beside_tiles", "a row and a vector more than tiles", [65, 264]),
    ("wide", "two tiles of 256 lanes and a part", [6, 4104]),
    ("odd_wide", "more than two tiles of single elements", [5, 523]),
];

/// All cases of bias and activation.
pub(crate) fn cases() -> Vec<Case> {
    let shapes = SHAPES.into_iter().map(|(name, about, [rows, columns])| {
        let check = move |cx: &Context<'_>| conform(cx, &Dense::drawn(rows, columns, cx.seed)?);
        Case::new(format!("bias_act/shapes/{name}"), about, check)
    });
    let values = [
        Case::new("bias_act/values/strange", "NaN, ±∞, -0, subnormal and huge numbers", |cx| {
            conform(cx, &Dense::strange(40, 41)?)
        }),
        Case::new("bias_act/values/strange_vectors", "the same, by vectors", |cx| {
            conform(cx, &Dense::strange(41, 48)?)
        }),
        Case::new("bias_act/values/signs", "-0 and NaN stay where nothing is added", signs),
        Case::new("bias_act/values/gelu", "GELU from -20 to 20, densely", gelu),
        Case::new("bias_act/tuned/file", "a measured plan is right, and found again in its file", file),
    ];
    shapes.chain(values).chain(refusals::cases()).collect()
}

/// What relu and a clamp leave: the bits, also of -0 beside +0. A GPU makes one NaN of all that it adds to.
fn signs(cx: &Context<'_>) -> Result<f64> {
    let host = [-0.0_f32, 0.0, f32::NAN, f32::NEG_INFINITY, f32::INFINITY, -1e-45, 1e-45, -7.0];
    let limited = |lo: f32, hi: f32| {
        host.map(|x| {
            if x < lo {
                lo
            } else if x > hi {
                hi
            } else {
                x
            }
        })
    };
    let expected = [
        (Activation::Identity, host),
        (Activation::Relu, limited(0.0, f32::INFINITY)),
        (Activation::Clamp { lo: -1.0, hi: 6.0 }, limited(-1.0, 6.0)),
    ];
    for (activation, expected) in expected {
        let mut matrix = cx.device.upload(&host)?;
        let plan = BiasAct::plan_with(cx.device, 1, host.len(), Options::default().activation(activation))?;
        plan.run_in_place(cx.stream, matrix.as_slice_mut(), None, None)?;
        same_numbers(&format!("{activation:?}"), &expected, &matrix.download(cx.stream)?, 0)?;
    }
    Ok(0.0)
}

/// Where its parts meet, and where its result becomes nothing.
fn gelu(cx: &Context<'_>) -> Result<f64> {
    let host: Vec<f32> = (-5120..5120).map(|i| (i as f32 + 0.37) / 256.0).collect();
    let problem = Dense::of(host, 1024)?;
    conform::as_type::<f32>(cx, &problem, &[(Algorithm::Auto, Activation::Gelu, Bias::PerColumn)])
}

fn file(cx: &Context<'_>) -> Result<f64> {
    let tune = |tuner: &Autotuner, stream: &lacuna::Stream| {
        tuner.tune(stream, BiasAct::<f32>::plan_with(cx.device, 90, 260, Options::default().relu())?, &())
    };
    let input = cx.device.upload(&vec![-1.0_f32; 90 * 260])?;
    let run = |plan: &BiasAct| {
        let mut out = cx.device.upload(&vec![f32::NAN; 90 * 260])?;
        let (input, out_slice) = (input.as_slice(), out.as_slice_mut());
        plan.run(cx.stream, Operands { input, bias: None, residual: None, out: out_slice })?;
        Ok(out.download(cx.stream)?)
    };
    let (_, out) = tuned::same(cx, tune, |plan| *plan.choice(), run, 260)?;
    ensure!(out.iter().all(|&x| x == 0.0), "a tuned ReLU leaves numbers below 0");
    Ok(0.0)
}
