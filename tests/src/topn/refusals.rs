//! Calls that must be refused, by an error that tells what was expected and what was got.
use anyhow::Result;
use lacuna::{Device, Error, TopN, topn};

use crate::expect::refused;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("topn/refusals/n", "N = 0, and more than a row has", n),
        Case::new("topn/refusals/options", "temperatures, strides and algorithms that cannot be", options),
        Case::new("topn/refusals/lengths", "buffers that are too short or too long", lengths),
        Case::new("topn/refusals/other_device", "operands of another device", other_device),
    ]
}

fn n(cx: &Context<'_>) -> Result<f64> {
    let is_n = |error: &Error| matches!(error, Error::Parameter { operation: "top-N", what: "N", .. });
    refused("0", TopN::<f32>::plan(cx.device, 3, 40, 0), is_n, &["N is 0", "from 1 to the 40 elements"])?;
    refused("41", TopN::<f32>::plan(cx.device, 3, 40, 41), is_n, &["N is 41", "40"])?;
    refused("1 of none", TopN::<f32>::plan(cx.device, 3, 0, 1), is_n, &["N is 1", "0"])?;
    Ok(0.0)
}

fn options(cx: &Context<'_>) -> Result<f64> {
    let plan = |options| TopN::<f32>::plan_with(cx.device, 3, 40, 5, options);
    let is_temperature = |error: &Error| matches!(error, Error::Parameter { what: "the temperature", .. });
    for (temperature, says) in [(0.0, "0"), (-1.0, "-1"), (f32::NAN, "NaN"), (f32::INFINITY, "2^100")] {
        let result = plan(topn::Options::default().temperature(temperature));
        refused("temperature", result, is_temperature, &["top-N", says])?;
    }
    let is_stride = |error: &Error| matches!(error, Error::Parameter { operation: "top-N", .. });
    let result = plan(topn::Options::default().row_stride(39));
    refused("stride", result, is_stride, &["the stride of the logits", "40", "39"])?;
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: "top-N", .. });
    let strange = topn::Algorithm::RadixSelect { threads: 96, capacity: 10_240, chunks: 1 };
    let result = plan(topn::Options::default().algorithm(strange));
    refused("threads", result, is_illegal, &["threads: 96", "f32", "5 of 40", "threads: 256", "Insertion"])?;
    let result = plan(topn::Options::default().algorithm(topn::Algorithm::Insertion { chunks: 0 }));
    refused("no chunks", result, is_illegal, &["chunks: 0", "chunks: 1"])?;
    Ok(0.0)
}

fn lengths(cx: &Context<'_>) -> Result<f64> {
    let plan = TopN::<f32>::plan_with(cx.device, 3, 40, 5, topn::Options::default().row_stride(50))?;
    let zeros = |len| cx.device.zeros::<f32>(len);
    let (logits, mut values, mut indices) = (zeros(140)?, zeros(15)?, cx.device.zeros::<u32>(15)?);
    let is_length = |error: &Error| matches!(error, Error::Length { operation: "top-N", .. });
    for len in [139, 151] {
        let other = zeros(len)?;
        let result = plan.run(cx.stream, other.as_slice(), values.as_slice_mut(), indices.as_slice_mut());
        refused("logits", result, is_length, &["the logits", &len.to_string(), "140"])?;
    }
    for len in [14, 16] {
        let (mut other, mut others) = (zeros(len)?, cx.device.zeros::<u32>(len)?);
        let result = plan.run(cx.stream, logits.as_slice(), other.as_slice_mut(), indices.as_slice_mut());
        refused("values", result, is_length, &["the values", &len.to_string(), "15"])?;
        let result = plan.run(cx.stream, logits.as_slice(), values.as_slice_mut(), others.as_slice_mut());
        refused("indices", result, is_length, &["the indices", &len.to_string(), "15"])?;
    }
    let mut sums = zeros(4)?;
    let (logits, values, indices) = (logits.as_slice(), values.as_slice_mut(), indices.as_slice_mut());
    let result = plan.run_with_log_sum_exp(cx.stream, logits, values, indices, sums.as_slice_mut());
    refused("log-sum-exps", result, is_length, &["the log-sum-exps", "4", "3", "one a row"])?;
    Ok(0.0)
}

fn other_device(cx: &Context<'_>) -> Result<f64> {
    let plan = TopN::<f32>::plan(cx.device, 3, 40, 5)?;
    let other = Device::simulator();
    let (logits, mut values, mut indices) =
        (cx.device.zeros::<f32>(120)?, cx.device.zeros::<f32>(15)?, cx.device.zeros::<u32>(15)?);
    let is_device = |error: &Error| matches!(error, Error::OtherDevice { operation: "top-N", .. });
    let stream = other.stream()?;
    let result = plan.run(&stream, logits.as_slice(), values.as_slice_mut(), indices.as_slice_mut());
    refused("stream", result, is_device, &["the stream is on"])?;
    let elsewhere = other.zeros::<f32>(120)?;
    let result = plan.run(cx.stream, elsewhere.as_slice(), values.as_slice_mut(), indices.as_slice_mut());
    refused("logits", result, is_device, &["the logits"])?;
    let mut elsewhere = other.zeros::<f32>(15)?;
    let result = plan.run(cx.stream, logits.as_slice(), elsewhere.as_slice_mut(), indices.as_slice_mut());
    refused("values", result, is_device, &["the values"])?;
    Ok(0.0)
}
