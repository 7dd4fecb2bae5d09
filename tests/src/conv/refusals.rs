//! Calls that must be refused, by an error that tells what was expected and what was got.
use anyhow::Result;
use lacuna::conv::{Activation, Algorithm, MapLayout, Operands, Options, Shape};
use lacuna::{Buffer, Conv, Device, Error};

use crate::expect::refused;
use crate::{Case, Context};

const NAME: &str = "convolution";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("conv/refusals/plans", "shapes and options that cannot be", plans),
        Case::new("conv/refusals/gaps", "gaps between channels that cannot be", gaps),
        Case::new("conv/refusals/cudnn", "cuDNN on the simulator, and without channels", cudnn),
        Case::new("conv/refusals/operands", "operands that do not fit", operands),
    ]
}

fn is_parameter(error: &Error) -> bool {
    matches!(error, Error::Parameter { operation: NAME, .. })
}

fn plans(cx: &Context<'_>) -> Result<f64> {
    let base = Shape::new(4, [8, 8], 5, [3, 3]);
    let plan = |shape, options| Conv::<f32>::plan(cx.device, shape, options);
    let usual = Options::default();
    refused(
        "taps",
        plan(Shape::new(4, [8, 8], 5, [0, 3]), usual),
        is_parameter,
        &["taps", "at least 1", "[0, 3]"],
    )?;
    refused(
        "strides",
        plan(base.strides([1, 0]), usual),
        is_parameter,
        &["strides", "at least 1", "[1, 0]"],
    )?;
    let mut grouped = base;
    grouped.groups = 2;
    refused("groups", plan(grouped, usual), is_parameter, &["the number of groups", "channels, 4", "2"])?;
    let clamp = |lo, hi| usual.activation(Activation::Clamp { lo, hi });
    refused("order", plan(base, clamp(1.0, 0.5)), is_parameter, &["the clamp", "1, 0.5"])?;
    refused("NaN", plan(base, clamp(f32::NAN, 0.5)), is_parameter, &["the clamp", "NaN"])?;
    refused("zeros", plan(base, usual.zeros(1.5)), is_parameter, &["the part of zeros", "0 to 1", "1.5"])?;
    refused("zeros", plan(base, usual.zeros(f64::NAN)), is_parameter, &["the part of zeros", "NaN"])?;
    refused(
        "splits",
        plan(base, usual.splits(0)),
        is_parameter,
        &["the number of splits", "at least 1", "0"],
    )?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: NAME, .. });
    let tile = usual.algorithm(Algorithm::SparseTile { tile: [5, 3], filters: 2 });
    refused("tile", plan(base, tile), is_illegal, &["[5, 3]", "Direct"])?;
    let is_large = |error: &Error| matches!(error, Error::TooLarge { .. });
    let large = Shape::new(1 << 12, [1 << 10, 1 << 10], 1, [1, 1]);
    refused("image", plan(large, usual), is_large, &["the bytes of an image"])?;
    refused("size", plan(Shape::new(1, [usize::MAX, 1], 1, [1, 1]), usual), is_large, &["a size of"])?;
    refused("padding", plan(base.padding([usize::MAX / 2, 0]), usual), is_large, &["a size of"])?;
    refused("batch", plan(base.batch(1 << 40), usual), is_large, &["the pixels of the results"])?;
    Ok(0.0)
}

/// Gaps between channels.
fn gaps(cx: &Context<'_>) -> Result<f64> {
    let base = Shape::new(2, [8, 8], 3, [3, 3]);
    let plan = |options| Conv::<f32>::plan(cx.device, base, options);
    let usual = Options::default();
    let short = usual.input_channel_stride(63);
    refused("overlap", plan(short), is_parameter, &["the stride of the input", "at least H·W = 64", "63"])?;
    let short = usual.out_channel_stride(35);
    refused("overlap", plan(short), is_parameter, &["the stride of the result", "at least H·W = 36", "35"])?;
    let last = usual.out_channel_stride(40).layout(MapLayout::Nhwc);
    refused("NHWC", plan(last), is_parameter, &["the layout", "NCHW", "Nhwc"])?;
    let is_large = |error: &Error| matches!(error, Error::TooLarge { .. });
    let far = usual.input_channel_stride(1 << 29);
    refused("an image of 2 GiB", plan(far), is_large, &["the bytes of an image with its gaps"])?;
    // As many elements as a channel has are no gap.
    plan(usual.input_channel_stride(64).out_channel_stride(36))?;

    let plan = plan(usual.input_channel_stride(70).out_channel_stride(40))?;
    let filters = plan.pack(cx.stream, cx.device.zeros(base.filters_len())?.as_slice())?;
    let run = |input: usize, out: usize| {
        let (input, mut out) = (cx.device.zeros(input)?, cx.device.zeros(out)?);
        plan.run(cx.stream, Operands::new(input.as_slice(), &filters, out.as_slice_mut()))
    };
    let is_length = |error: &Error| matches!(error, Error::Length { operation: NAME, .. });
    for (input, out) in [(134, 116), (140, 120)] {
        run(input, out)?;
    }
    refused("a short input", run(133, 116), is_length, &["the input", "2×64, 70 elements", "133"])?;
    refused("a short result", run(134, 115), is_length, &["the result", "3×36, 40 elements", "115"])?;
    refused("a long result", run(134, 121), is_length, &["the result", "121"])?;
    Ok(0.0)
}

fn cudnn(cx: &Context<'_>) -> Result<f64> {
    let plan = |shape| Conv::<f32>::plan(cx.device, shape, Options::default().algorithm(Algorithm::CuDnn));
    if cx.device.is_simulator() {
        let is_unsupported = |error: &Error| matches!(error, Error::Unsupported { .. });
        let says = ["the simulator", "cuDNN", "leave the choice"];
        refused("the simulator", plan(Shape::new(4, [8, 8], 5, [3, 3])), is_unsupported, &says)?;
        return Ok(0.0);
    }
    // Where the library is not there that is said first.
    let is_refusal =
        |error: &Error| matches!(error, Error::Illegal { operation: NAME, .. } | Error::NoLibrary { .. });
    refused("no channels", plan(Shape::new(0, [4, 4], 3, [3, 3])), is_refusal, &["cuDNN"])?;
    Ok(0.0)
}

fn operands(cx: &Context<'_>) -> Result<f64> {
    let shape = Shape::new(2, [4, 3], 5, [3, 3]).padding([1, 1]);
    let plan = Conv::<f32>::plan(cx.device, shape, Options::default())?;
    let zeros = |len: usize| cx.device.zeros::<f32>(len);
    let filters = plan.pack(cx.stream, zeros(90)?.as_slice())?;
    let run = |input: &Buffer<f32>, bias: &Buffer<f32>, residual: &Buffer<f32>, out: usize| {
        let mut out = zeros(out)?;
        let operands = Operands {
            bias: Some(bias.as_slice()),
            residual: Some(residual.as_slice()),
            ..Operands::new(input.as_slice(), &filters, out.as_slice_mut())
        };
        plan.run(cx.stream, operands)
    };
    let [input, bias, result] = [zeros(24)?, zeros(5)?, zeros(60)?];
    run(&input, &bias, &result, 60)?;
    let is_length = |error: &Error| matches!(error, Error::Length { operation: NAME, .. });
    refused("input", run(&bias, &bias, &result, 60), is_length, &["the input", "24", "5", "maps of 2×4×3"])?;
    refused("bias", run(&input, &input, &result, 60), is_length, &["the bias", "24", "one a filter"])?;
    refused("residual", run(&input, &bias, &input, 60), is_length, &["the residual", "60", "24"])?;
    refused("result", run(&input, &bias, &result, 61), is_length, &["the result", "60", "61", "5×4×3"])?;
    refused("filters", plan.pack(cx.stream, input.as_slice()), is_length, &["the filters", "90", "5×2×3×3"])?;

    let other = Conv::<f32>::plan(cx.device, Shape::new(2, [4, 3], 5, [1, 1]), Options::default())?;
    let other = other.pack(cx.stream, zeros(10)?.as_slice())?;
    let mut out = zeros(60)?;
    let result = plan.run(cx.stream, Operands::new(input.as_slice(), &other, out.as_slice_mut()));
    refused("filters of another shape", result, is_parameter, &["packed filters", "[5, 2, 9]", "[5, 2, 1]"])?;

    let elsewhere = Device::simulator();
    let is_device = |error: &Error| matches!(error, Error::OtherDevice { operation: NAME, .. });
    let foreign = elsewhere.zeros::<f32>(24)?;
    refused(
        "input elsewhere",
        run(&foreign, &bias, &input, 60),
        is_device,
        &["the input is on", "simulator"],
    )?;
    Ok(0.0)
}
