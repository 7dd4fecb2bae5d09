//! Calls that must be refused, by an error that tells what was expected and what was got.
use anyhow::Result;
use lacuna::bias_act::{Activation, Algorithm, Bias, Operands, Options};
use lacuna::{BiasAct, Buffer, Device, Error};

use crate::expect::refused;
use crate::{Case, Context};

const NAME: &str = "bias and activation";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("bias_act/refusals/options", "options that cannot be", options),
        Case::new("bias_act/refusals/operands", "operands that do not fit", operands),
    ]
}

fn is_parameter(error: &Error) -> bool {
    matches!(error, Error::Parameter { operation: NAME, .. })
}

fn options(cx: &Context<'_>) -> Result<f64> {
    let plan = |rows, columns, options| BiasAct::<f32>::plan_with(cx.device, rows, columns, options);
    let base = Options::default();
    let clamp = |lo, hi| base.activation(Activation::Clamp { lo, hi });
    refused("order", plan(4, 6, clamp(1.0, 0.5)), is_parameter, &["the clamp", "1, 0.5"])?;
    refused("NaN", plan(4, 6, clamp(f32::NAN, 0.5)), is_parameter, &["the clamp", "NaN"])?;
    let channels = |channels| base.bias(Bias::PerChannel { channels });
    refused("channels", plan(4, 6, channels(3)), is_parameter, &["the number of channels", "4 rows", "3"])?;
    refused("no channels", plan(4, 6, channels(0)), is_parameter, &["the number of channels"])?;
    refused("stride of x", plan(4, 6, base.input_stride(5)), is_parameter, &["the stride of x", "6", "5"])?;
    refused("residual", plan(4, 6, base.residual_stride(5)), is_parameter, &["the stride of the residual"])?;
    refused("result", plan(4, 6, base.out_stride(5)), is_parameter, &["the stride of the result"])?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: NAME, .. });
    let vectors = base.algorithm(Algorithm::RowTile { vector: 4, lanes: 32 });
    refused("vectors", plan(4, 6, vectors), is_illegal, &["6 columns", "vector: 1"])?;
    let is_large = |error: &Error| matches!(error, Error::TooLarge { .. });
    refused("columns", plan(1, 1 << 30, base), is_large, &["the number of columns"])?;
    refused("rows", plan(1 << 32, 1, base), is_large, &["the number of rows"])?;
    refused("stride", plan(2, 4, base.out_stride(1 << 30)), is_large, &["the stride of the result"])?;
    Ok(0.0)
}

fn operands(cx: &Context<'_>) -> Result<f64> {
    let plan = BiasAct::<f32>::plan(cx.device, 3, 5)?;
    let run = |x: &Buffer<f32>, bias: &Buffer<f32>, residual: &Buffer<f32>, out: usize| {
        let mut out = cx.device.zeros(out)?;
        let (bias, residual) = (Some(bias.as_slice()), Some(residual.as_slice()));
        plan.run(cx.stream, Operands { input: x.as_slice(), bias, residual, out: out.as_slice_mut() })
    };
    let [whole, bias, short] = [15, 5, 14].map(|len| cx.device.zeros::<f32>(len));
    let (whole, bias, short) = (whole?, bias?, short?);
    run(&whole, &bias, &whole, 15)?;
    let is_length = |error: &Error| matches!(error, Error::Length { operation: NAME, .. });
    refused("x", run(&short, &bias, &whole, 15), is_length, &["x", "14", "15", "3×5"])?;
    refused("bias", run(&whole, &short, &whole, 15), is_length, &["the bias", "14", "5", "PerColumn"])?;
    refused("residual", run(&whole, &bias, &short, 15), is_length, &["the residual", "14", "15"])?;
    refused("result", run(&whole, &bias, &whole, 16), is_length, &["the result", "16", "15"])?;

    let mut matrix = cx.device.zeros::<f32>(15)?;
    let other = Options::default().out_stride(6);
    let other = BiasAct::<f32>::plan_with(cx.device, 3, 5, other)?;
    let result = other.run_in_place(cx.stream, matrix.as_slice_mut(), None, None);
    refused("strides in place", result, is_parameter, &["in place", "that of x, 5", "6"])?;

    let elsewhere = Device::simulator();
    let (foreign, is_device) = (elsewhere.zeros::<f32>(15)?, |error: &Error| {
        matches!(error, Error::OtherDevice { operation: NAME, .. })
    });
    refused("x elsewhere", run(&foreign, &bias, &whole, 15), is_device, &["x is on", "simulator"])?;
    let result = plan.run_in_place(&elsewhere.stream()?, matrix.as_slice_mut(), None, None);
    refused("stream", result, is_device, &["the stream is on", "simulator"])?;
    Ok(0.0)
}
