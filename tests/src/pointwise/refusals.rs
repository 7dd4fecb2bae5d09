//! Calls that must be refused, by an error that tells what was expected and what was got.
use anyhow::Result;
use lacuna::conv::Shape;
use lacuna::matrix::Csr;
use lacuna::pointwise::{Activation, Operands, Options};
use lacuna::{Buffer, CsrMatrix, Device, Error, SparsePointwiseConv, spmm};

use crate::expect::refused;
use crate::{Case, Context};

const NAME: &str = "sparse pointwise convolution";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("pointwise/refusals/plans", "shapes and options that cannot be", plans),
        Case::new("pointwise/refusals/operands", "operands that do not fit", operands),
    ]
}

fn is_parameter(error: &Error) -> bool {
    matches!(error, Error::Parameter { operation: NAME, .. })
}

/// Three filters of two channels, the last of them without weights.
fn weights(device: &Device) -> Result<CsrMatrix> {
    Ok(CsrMatrix::new(device, &Csr::new(3, 2, vec![0, 2, 3, 3], vec![0, 1, 1], vec![1.0, 2.0, 3.0])?)?)
}

fn plans(cx: &Context<'_>) -> Result<f64> {
    let weights = weights(cx.device)?;
    let plan = |shape, options| SparsePointwiseConv::plan(&weights, shape, options);
    let usual = Options::default();
    let base = Shape::new(2, [4, 5], 3, [1, 1]);
    plan(base, usual)?;
    let taps = Shape::new(2, [4, 5], 3, [3, 1]);
    refused("taps", plan(taps, usual), is_parameter, &["taps", "[3, 1]", "[1, 1]", "Conv"])?;
    let depthwise = Shape::depthwise(3, [4, 5], [1, 1]);
    refused("groups", plan(depthwise, usual), is_parameter, &["groups", "3", "Conv"])?;
    for shape in [Shape::new(3, [4, 5], 3, [1, 1]), Shape::new(2, [4, 5], 2, [1, 1])] {
        let says = ["filters and channels of the weights", "[3, 2]", "the shape's"];
        refused("weights", plan(shape, usual), is_parameter, &says)?;
    }
    let two = weights.with_value_batch(2, &[1.0_f32; 6])?;
    let batch = SparsePointwiseConv::plan(&two, base.batch(2), usual);
    refused("a batch of weights", batch, is_parameter, &["the batch of the weights", "1", "2"])?;
    let is_of_shape = |error: &Error| matches!(error, Error::Parameter { .. });
    refused("strides", plan(base.strides([0, 1]), usual), is_of_shape, &["strides", "[0, 1]"])?;
    let clamp = usual.activation(Activation::Clamp { lo: 1.0, hi: 0.5 });
    refused("clamp", plan(base, clamp), is_parameter, &["the clamp", "1, 0.5"])?;
    let channel = usual.input_channel_stride(19);
    refused("input", plan(base, channel), is_parameter, &["the stride of the input", "20", "19"])?;
    let channel = usual.out_channel_stride(19);
    refused("result", plan(base, channel), is_parameter, &["the stride of the result", "20", "19"])?;
    let image = usual.out_image_stride(59);
    refused("images", plan(base.batch(2), image), is_parameter, &["the image stride of the result", "59"])?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { .. });
    let algorithm = spmm::Algorithm::RowSplit { vector: 3, lanes: 5, split: 1, warps: 1 };
    refused("algorithm", plan(base, usual.algorithm(algorithm)), is_illegal, &["lanes: 5"])?;
    let is_large = |error: &Error| matches!(error, Error::TooLarge { .. });
    let large = Shape::new(2, [1 << 15, 1 << 15], 3, [1, 1]);
    refused("image", plan(large, usual), is_large, &["the bytes of an image"])?;
    let apart = usual.input_image_stride(1 << 30);
    plan(base.batch(2), apart)?;
    refused("apart", plan(base.batch(2).strides([2, 2]), apart), is_large, &["image stride", "gathered"])?;
    Ok(0.0)
}

fn operands(cx: &Context<'_>) -> Result<f64> {
    let weights = weights(cx.device)?;
    let shape = Shape::new(2, [4, 5], 3, [1, 1]).batch(2);
    // Ten channels a map.
    let options = Options::default().out_image_stride(200);
    let plan = SparsePointwiseConv::plan(&weights, shape, options)?;
    let zeros = |len: usize| cx.device.zeros::<f32>(len);
    let run = |weights: &CsrMatrix, input: &Buffer<f32>, bias: &Buffer<f32>, out: usize| {
        let mut out = zeros(out)?;
        let (bias, out) = (Some(bias.as_slice()), out.as_slice_mut());
        plan.run(cx.stream, Operands { weights, input: input.as_slice(), bias, out })
    };
    let [input, bias] = [zeros(80)?, zeros(3)?];
    for len in [260, 400] {
        run(&weights, &input, &bias, len)?;
    }
    let is_length = |error: &Error| matches!(error, Error::Length { operation: NAME, .. });
    refused(
        "input",
        run(&weights, &bias, &bias, 260),
        is_length,
        &["the input", "80", "3 elements", "2×20"],
    )?;
    refused("bias", run(&weights, &input, &input, 260), is_length, &["the bias", "80", "one a filter"])?;
    for len in [259, 401] {
        let says = ["the result", "260", &len.to_string(), "200 elements apart"];
        refused("result", run(&weights, &input, &bias, len), is_length, &says)?;
    }
    let other = self::weights(cx.device)?;
    let is_pattern = |error: &Error| matches!(error, Error::OtherPattern { operation: NAME });
    refused("weights", run(&other, &input, &bias, 260), is_pattern, &["plan again"])?;
    let two = weights.with_value_batch(2, &[1.0_f32; 6])?;
    let says = ["the batch of the weights", "1", "2"];
    refused("a batch of weights", run(&two, &input, &bias, 260), is_parameter, &says)?;

    let elsewhere = Device::simulator();
    let is_device = |error: &Error| matches!(error, Error::OtherDevice { operation: NAME, .. });
    let foreign = elsewhere.zeros::<f32>(80)?;
    let result = run(&weights, &foreign, &bias, 260);
    refused("input elsewhere", result, is_device, &["the input is on", "simulator"])?;
    let stream = elsewhere.stream()?;
    let mut out = zeros(260)?;
    let operands =
        Operands { weights: &weights, input: input.as_slice(), bias: None, out: out.as_slice_mut() };
    refused("a stream elsewhere", plan.run(&stream, operands), is_device, &["the stream is on"])?;
    Ok(0.0)
}
