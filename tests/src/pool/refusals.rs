//! Calls that must be refused, by an error that tells what was expected and what was got.
use anyhow::Result;
use lacuna::pool::{Algorithm, MapLayout, Operands, Options, Shape};
use lacuna::{Buffer, Device, Error, Pool};

use crate::expect::refused;
use crate::{Case, Context};

const NAME: &str = "pooling";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("pool/refusals/plans", "shapes and options that cannot be", plans),
        Case::new("pool/refusals/operands", "operands that do not fit", operands),
    ]
}

fn plans(cx: &Context<'_>) -> Result<f64> {
    let base = Shape::new(4, [8, 8], [3, 3]);
    let usual = Options::default();
    let plan = |shape, options| Pool::<f32>::plan(cx.device, shape, options);
    let is_parameter = |error: &Error| matches!(error, Error::Parameter { operation: NAME, .. });
    let window = Shape::new(4, [8, 8], [0, 3]).strides([1, 1]);
    refused("window", plan(window, usual), is_parameter, &["the window", "at least 1", "[0, 3]"])?;
    let strides = base.strides([1, 0]);
    refused("strides", plan(strides, usual), is_parameter, &["strides", "at least 1", "[1, 0]"])?;
    let empty = Shape::new(4, [8, 0], [3, 3]);
    refused("map", plan(empty, usual), is_parameter, &["rows and columns of the map", "[8, 0]"])?;
    // Half of three, rounded down.
    plan(base.padding([1, 1]), usual)?;
    let padding = base.padding([1, 2]);
    refused("padding", plan(padding, usual), is_parameter, &["the padding", "[1, 1]", "half", "[1, 2]"])?;

    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: NAME, .. });
    let planes = usual.algorithm(Algorithm::Planes { vector: 1 });
    refused("planes", plan(base, planes), is_illegal, &["Planes", "Any { vector: 1 }"])?;
    refused("planes", plan(Shape::global(4, [8, 8]), planes.layout(MapLayout::Nhwc)), is_illegal, &["Nhwc"])?;
    let vectors = usual.algorithm(Algorithm::Any { vector: 4 });
    refused("vectors of NCHW", plan(base, vectors), is_illegal, &["Any { vector: 4 }"])?;
    plan(base, vectors.layout(MapLayout::Nhwc))?;

    let is_large = |error: &Error| matches!(error, Error::TooLarge { .. });
    let large = Shape::new(1 << 12, [1 << 10, 1 << 10], [1, 1]);
    refused("image", plan(large, usual), is_large, &["the bytes of an image"])?;
    refused("size", plan(Shape::new(1, [usize::MAX, 1], [1, 1]), usual), is_large, &["a size of"])?;
    refused("strides", plan(base.strides([1, usize::MAX]), usual), is_large, &["a size of"])?;
    refused("batch", plan(base.batch(1 << 60), usual), is_large, &["the number of input elements"])?;

    let apart = |stride| usual.input_channel_stride(stride);
    refused("overlap", plan(base, apart(63)), is_parameter, &["the stride of the input", "H·W = 64", "63"])?;
    let last = apart(70).layout(MapLayout::Nhwc);
    refused("NHWC", plan(base, last), is_parameter, &["the layout", "NCHW", "Nhwc"])?;
    let says = ["the bytes of an image with its gaps"];
    refused("an image of 2 GiB", plan(base, apart(1 << 29)), is_large, &says)?;
    Ok(0.0)
}

fn operands(cx: &Context<'_>) -> Result<f64> {
    let shape = Shape::new(2, [4, 3], [2, 2]).strides([1, 1]).batch(2);
    let plan = Pool::<f32>::plan(cx.device, shape, Options::default())?;
    let run = |input: &Buffer<f32>, out: usize| {
        let mut out = cx.device.zeros(out)?;
        plan.run(cx.stream, Operands { input: input.as_slice(), out: out.as_slice_mut() })
    };
    let (input, short) = (cx.device.zeros::<f32>(48)?, cx.device.zeros::<f32>(47)?);
    run(&input, 24)?;
    let is_length = |error: &Error| matches!(error, Error::Length { operation: NAME, .. });
    refused("input", run(&short, 24), is_length, &["the input", "48", "47", "2 maps of 2×4×3"])?;
    refused("result", run(&input, 25), is_length, &["the result", "24", "25", "2 maps of 2×3×2"])?;

    let vectors = Options::default().layout(MapLayout::Nhwc).algorithm(Algorithm::Any { vector: 4 });
    let plan_of_vectors = Pool::<f32>::plan(cx.device, Shape::new(4, [2, 2], [2, 2]), vectors)?;
    let mut out = cx.device.zeros::<f32>(4)?;
    let result =
        plan_of_vectors.run(cx.stream, Operands { input: input.slice(1..17)?, out: out.as_slice_mut() });
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: NAME, .. });
    refused("alignment", result, is_illegal, &["the maps are not aligned"])?;

    let elsewhere = Device::simulator();
    let foreign = elsewhere.zeros::<f32>(48)?;
    let is_device = |error: &Error| matches!(error, Error::OtherDevice { operation: NAME, .. });
    refused("input elsewhere", run(&foreign, 24), is_device, &["the input is on", "simulator"])?;
    let mut out = cx.device.zeros::<f32>(24)?;
    let operands = Operands { input: input.as_slice(), out: out.as_slice_mut() };
    let result = plan.run(&elsewhere.stream()?, operands);
    refused("stream", result, is_device, &["the stream is on", "simulator"])?;
    Ok(0.0)
}
