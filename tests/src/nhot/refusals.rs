//! Calls that must be refused, by an error that tells what was expected and what was got.
use anyhow::Result;
use lacuna::{Bags, Device, Error, NHot, nhot};

use crate::expect::refused;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("nhot/refusals/bags", "offsets, indices and weights that cannot be", bags),
        Case::new("nhot/refusals/options", "padding, strides and algorithms that cannot be", options),
        Case::new("nhot/refusals/operands", "operands of other lengths, bags and devices", operands),
        Case::new("nhot/refusals/unaligned", "an algorithm that addresses do not allow", unaligned),
    ]
}

fn is_parameter(error: &Error) -> bool {
    matches!(error, Error::Parameter { operation: "embedding-bag lookup", .. })
}

fn is_length(error: &Error) -> bool {
    matches!(error, Error::Length { operation: "embedding-bag lookup", .. })
}

fn is_illegal(error: &Error) -> bool {
    matches!(error, Error::Illegal { operation: "embedding-bag lookup", .. })
}

fn some(device: &Device) -> Result<Bags> {
    Ok(Bags::new(device, 5, &[0, 2, 3], &[4, 0, 4])?)
}

fn bags(cx: &Context<'_>) -> Result<f64> {
    let new = |offsets: &[usize], indices: &[u32]| Bags::new(cx.device, 5, offsets, indices);
    refused("no offsets", new(&[], &[]), is_parameter, &["the offsets", "one more than bags", "none"])?;
    refused("a start", new(&[1, 2], &[1, 2]), is_parameter, &["from 0 to 2", "from 1 to 2"])?;
    refused("an end", new(&[0, 1], &[1, 2]), is_parameter, &["from 0 to 2", "from 0 to 1"])?;
    refused("a far end", new(&[0, 3], &[1, 2]), is_parameter, &["from 0 to 2", "from 0 to 3"])?;
    refused("a descent", new(&[0, 2, 1, 2], &[1, 2]), is_parameter, &["ascending", "2, then 1 (number 2)"])?;
    refused("an index", new(&[0, 2], &[4, 5]), is_parameter, &["an index", "5 (number 1 of 2)", "below 5"])?;
    let wide = Bags::new(cx.device, 5, &[0, 1], &[1_u64 << 40]);
    refused("a wide index", wide, is_parameter, &["1099511627776"])?;
    let is_too_large = |error: &Error| matches!(error, Error::TooLarge { .. });
    let many = Bags::<u32>::new(cx.device, 1 << 32, &[0], &[]);
    refused("a long table", many, is_too_large, &["the number of rows of the table", "4294967295"])?;
    refused("weights", some(cx.device)?.with_weights(&[1.0]), is_length, &["weights", "has 1", "3"])?;
    Ok(0.0)
}

fn options(cx: &Context<'_>) -> Result<f64> {
    let bags = some(cx.device)?;
    let plan = |columns: usize, options| NHot::<f32>::plan_with(&bags, columns, options);
    let padding = nhot::Options::default().padding_index(Some(5));
    refused("padding", plan(8, padding), is_parameter, &["the padding index is 5", "below 5"])?;
    let stride = nhot::Options::default().table_stride(7);
    refused("the table's stride", plan(8, stride), is_parameter, &["the stride of the table is 7", "8"])?;
    let stride = nhot::Options::default().out_stride(7);
    refused("the result's stride", plan(8, stride), is_parameter, &["the stride of the result is 7", "8"])?;
    let subwarps = |vector, lanes| {
        nhot::Options::default().algorithm(nhot::Algorithm::Subwarp { vector, lanes, chunks: 1, split: 1 })
    };
    refused("lanes", plan(8, subwarps(4, 5)), is_illegal, &["lanes: 5", "lanes: 32"])?;
    refused("columns", plan(7, subwarps(4, 32)), is_illegal, &["7 columns", "vector: 1"])?;
    let is_too_large = |error: &Error| matches!(error, Error::TooLarge { .. });
    let wide = plan(1 << 30, nhot::Options::default());
    refused("width", wide, is_too_large, &["the number of columns"])?;
    Ok(0.0)
}

fn operands(cx: &Context<'_>) -> Result<f64> {
    let (bags, others) = (some(cx.device)?, some(cx.device)?);
    let plan = NHot::<f32>::plan(&bags, 3)?;
    let (table, mut out) = (cx.device.zeros::<f32>(15)?, cx.device.zeros::<f32>(6)?);
    let table = table.as_slice();
    let mut run = |stream, bags, table, skipped| plan.run(stream, bags, table, out.slice_mut(skipped..)?);
    refused(
        "the table",
        run(cx.stream, &bags, table.part(1..)?, 0),
        is_length,
        &["the table", "14", "15", "5×3"],
    )?;
    refused("the result", run(cx.stream, &bags, table, 1), is_length, &["the result", "5", "6", "2×3"])?;
    let is_other = |error: &Error| matches!(error, Error::OtherPattern { operation: "embedding-bag lookup" });
    refused("bags", run(cx.stream, &others, table, 0), is_other, &["plan again"])?;
    let is_device =
        |error: &Error| matches!(error, Error::OtherDevice { operation: "embedding-bag lookup", .. });
    let elsewhere = Device::simulator();
    let stream = elsewhere.stream()?;
    refused("stream", run(&stream, &bags, table, 0), is_device, &["the stream is on"])?;
    let far = elsewhere.zeros::<f32>(15)?;
    refused("device", run(cx.stream, &bags, far.as_slice(), 0), is_device, &["the table is on"])?;

    let (mut gradient, output_gradient) = (cx.device.zeros::<f32>(15)?, cx.device.zeros::<f32>(6)?);
    let result = plan.backward_table(cx.stream, &bags, output_gradient.slice(1..)?, gradient.as_slice_mut());
    refused("output_gradient", result, is_length, &["the gradient of the result", "5", "6"])?;
    let result = plan.backward_table(cx.stream, &bags, output_gradient.as_slice(), gradient.slice_mut(1..)?);
    refused("the table's gradient", result, is_length, &["the gradient of the table", "14", "15"])?;
    let result = plan.backward_named(cx.stream, &bags, output_gradient.as_slice(), gradient.slice_mut(..9)?);
    refused("the named rows' gradient", result, is_length, &["named rows", "9", "6", "2×3"])?;
    let result =
        plan.backward_weights(cx.stream, &bags, output_gradient.as_slice(), table, gradient.slice_mut(..2)?);
    refused("the weights' gradient", result, is_length, &["the gradient of the weights", "2", "3"])?;
    Ok(0.0)
}

fn unaligned(cx: &Context<'_>) -> Result<f64> {
    let bags = some(cx.device)?;
    let subwarps = nhot::Algorithm::Subwarp { vector: 4, lanes: 32, chunks: 1, split: 1 };
    let plan = NHot::<f32>::plan_with(&bags, 8, nhot::Options::default().algorithm(subwarps))?;
    let (table, mut out) = (cx.device.zeros::<f32>(41)?, cx.device.zeros::<f32>(16)?);
    let result = plan.run(cx.stream, &bags, table.slice(1..)?, out.as_slice_mut());
    refused("an odd address", result, is_illegal, &["not aligned", "vector: 4", "vector: 1"])?;
    Ok(0.0)
}
