//! Calls that must be refused, by an error that tells what was expected and what was got.
use anyhow::Result;
use half::f16;
use lacuna::dense_transpose::{Algorithm, Options};
use lacuna::{DenseTranspose, Device, Error};

use crate::expect::refused;
use crate::{Case, Context};

const NAME: &str = "transpose of dense matrices";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("dense_transpose/refusals/options", "options that cannot be", options),
        Case::new("dense_transpose/refusals/operands", "operands that do not fit", operands),
    ]
}

fn options(cx: &Context<'_>) -> Result<f64> {
    let plan = |rows, columns, options| DenseTranspose::<f32>::plan_with(cx.device, rows, columns, options);
    let base = Options::default();
    let is_parameter = |error: &Error| matches!(error, Error::Parameter { operation: NAME, .. });
    refused("input", plan(4, 6, base.input_stride(5)), is_parameter, &["the stride of the input", "6", "5"])?;
    refused(
        "result",
        plan(4, 6, base.out_stride(3)),
        is_parameter,
        &["the stride of the result", "rows = 4", "3"],
    )?;
    let batch = base.batch(2);
    let overlap = plan(4, 6, batch.out_batch_stride(23));
    refused("overlap", overlap, is_parameter, &["the batch stride of the result", "24", "23"])?;
    let beside = plan(4, 6, batch.out_stride(7).out_batch_stride(4));
    refused("side by side", beside, is_parameter, &["the batch stride of the result", "side by side"])?;
    refused("one result", plan(4, 6, batch.out_batch_stride(0)), is_parameter, &["the batch stride"])?;
    // One matrix may be transposed more than once.
    plan(4, 6, batch.input_batch_stride(0))?;
    plan(4, 6, batch.out_stride(8).out_batch_stride(4))?;

    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: NAME, .. });
    let of_halves = base.algorithm(Algorithm::Tile { rows: 64, columns: 64 });
    refused("tile", plan(4, 6, of_halves), is_illegal, &["f32", "rows: 32"])?;
    DenseTranspose::<f16>::plan_with(cx.device, 4, 6, of_halves)?;

    let is_large = |error: &Error| matches!(error, Error::TooLarge { .. });
    refused("columns", plan(1, 1 << 30, base), is_large, &["the number of columns"])?;
    refused("rows", plan(1 << 30, 1, base), is_large, &["the number of rows"])?;
    refused("stride", plan(2, 4, base.out_stride(1 << 30)), is_large, &["the stride of the result"])?;
    refused("batch", plan(2, 4, base.batch(usize::MAX)), is_large, &["the number of elements of the input"])?;
    Ok(0.0)
}

fn operands(cx: &Context<'_>) -> Result<f64> {
    let plan = DenseTranspose::<f32>::plan(cx.device, 3, 5)?;
    let run = |input: usize, out: usize| {
        let (input, mut out) = (cx.device.zeros(input)?, cx.device.zeros(out)?);
        plan.run(cx.stream, input.as_slice(), out.as_slice_mut())
    };
    run(15, 15)?;
    let is_length = |error: &Error| matches!(error, Error::Length { operation: NAME, .. });
    refused("input", run(14, 15), is_length, &["the input", "14", "15", "3×5"])?;
    refused("result", run(15, 16), is_length, &["the result", "16", "15", "5×3"])?;

    let elsewhere = Device::simulator();
    let is_device = |error: &Error| matches!(error, Error::OtherDevice { operation: NAME, .. });
    let [here, mut out] = [cx.device.zeros::<f32>(15)?, cx.device.zeros::<f32>(15)?];
    let [foreign, mut foreign_out] = [elsewhere.zeros::<f32>(15)?, elsewhere.zeros::<f32>(15)?];
    let result = plan.run(cx.stream, foreign.as_slice(), out.as_slice_mut());
    refused("input elsewhere", result, is_device, &["the input is on", "simulator"])?;
    let result = plan.run(cx.stream, here.as_slice(), foreign_out.as_slice_mut());
    refused("result elsewhere", result, is_device, &["the result is on", "simulator"])?;
    let result = plan.run(&elsewhere.stream()?, here.as_slice(), out.as_slice_mut());
    refused("stream", result, is_device, &["the stream is on", "simulator"])?;
    Ok(0.0)
}
