//! Calls that must be refused, by an error that tells what was expected and what was got.
use anyhow::Result;
use lacuna::layer_norm::{Algorithm, Operands, Options, Shape};
use lacuna::{Buffer, Device, Error, LayerNorm};

use crate::expect::refused;
use crate::{Case, Context};

const NAME: &str = "layer normalisation";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("layer_norm/refusals/options", "options that cannot be", options),
        Case::new("layer_norm/refusals/operands", "operands that do not fit", operands),
    ]
}

fn is_parameter(error: &Error) -> bool {
    matches!(error, Error::Parameter { operation: NAME, .. })
}

fn options(cx: &Context<'_>) -> Result<f64> {
    let plan = |shape, options| LayerNorm::<f32>::plan_with(cx.device, shape, options);
    let base = Options::default();
    let rows = |rows, features| Shape::Rows { rows, features };
    let maps = |images, channels, pixels| Shape::Maps { images, channels, pixels };
    for (epsilon, got) in [(-1e-5, "-0.00001"), (f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        refused("epsilon", plan(rows(4, 6), base.epsilon(epsilon)), is_parameter, &["epsilon", got])?;
    }
    let (x, result) = (base.input_stride(5), base.out_stride(5));
    refused("stride of x", plan(rows(4, 6), x), is_parameter, &["the stride of x", "6", "5"])?;
    refused("result", plan(maps(2, 2, 3), result), is_parameter, &["the stride of the result", "6", "5"])?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: NAME, .. });
    let vectors = base.algorithm(Algorithm::Rows { vector: 4, lanes: 32 });
    refused("vectors", plan(rows(4, 6), vectors), is_illegal, &["features: 6", "vector: 1"])?;
    refused("rows of maps", plan(maps(2, 4, 3), vectors), is_illegal, &["Channels"])?;
    let channels = base.algorithm(Algorithm::Channels);
    refused("channels of rows", plan(rows(4, 6), channels), is_illegal, &["Rows"])?;
    let is_large = |error: &Error| matches!(error, Error::TooLarge { .. });
    refused("features", plan(rows(1, 1 << 30), base), is_large, &["the number of features"])?;
    refused("rows", plan(rows(1 << 32, 1), base), is_large, &["the number of rows"])?;
    refused("images", plan(maps(1 << 32, 1, 2), base), is_large, &["the number of images"])?;
    refused("image", plan(maps(1, 1 << 20, 1 << 20), base), is_large, &["elements of an image"])?;
    refused("stride", plan(rows(2, 4), base.out_stride(1 << 30)), is_large, &["the stride of the result"])?;
    Ok(0.0)
}

fn operands(cx: &Context<'_>) -> Result<f64> {
    let shape = Shape::Rows { rows: 3, features: 5 };
    let plan = LayerNorm::<f32>::plan(cx.device, shape)?;
    let run = |x: &Buffer<f32>, weight: &Buffer<f32>, bias: &Buffer<f32>, out: usize| {
        let mut out = cx.device.zeros(out)?;
        let (weight, bias) = (Some(weight.as_slice()), Some(bias.as_slice()));
        plan.run(cx.stream, Operands { input: x.as_slice(), weight, bias, out: out.as_slice_mut() })
    };
    let [whole, one, short] = [15, 5, 14].map(|len| cx.device.zeros::<f32>(len));
    let (whole, one, short) = (whole?, one?, short?);
    run(&whole, &one, &one, 15)?;
    let is_length = |error: &Error| matches!(error, Error::Length { operation: NAME, .. });
    refused("x", run(&short, &one, &one, 15), is_length, &["x", "14", "15", "3×5"])?;
    refused("weight", run(&whole, &short, &one, 15), is_length, &["the weight", "14", "5"])?;
    refused("bias", run(&whole, &one, &short, 15), is_length, &["the bias", "14", "5"])?;
    refused("result", run(&whole, &one, &one, 16), is_length, &["the result", "16", "15"])?;

    let mut tokens = cx.device.zeros::<f32>(15)?;
    let other = LayerNorm::<f32>::plan_with(cx.device, shape, Options::default().out_stride(6))?;
    let result = other.run_in_place(cx.stream, tokens.as_slice_mut(), None, None);
    refused("strides in place", result, is_parameter, &["in place", "that of x, 5", "6"])?;

    let elsewhere = Device::simulator();
    let foreign = elsewhere.zeros::<f32>(15)?;
    let is_device = |error: &Error| matches!(error, Error::OtherDevice { operation: NAME, .. });
    refused("x elsewhere", run(&foreign, &one, &one, 15), is_device, &["x is on", "simulator"])?;
    let result = plan.run_in_place(&elsewhere.stream()?, tokens.as_slice_mut(), None, None);
    refused("stream", result, is_device, &["the stream is on", "simulator"])?;
    Ok(0.0)
}
