//! Calls that must be refused, by an error that tells what was expected and what was got.
use anyhow::Result;
use lacuna::{CsrMatrix, Device, Error, SparseSoftmax, softmax};

use super::with_lengths;
use crate::expect::refused;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("softmax/refusals/other_pattern", "matrices of another pattern", other_pattern),
        Case::new("softmax/refusals/other_device", "a stream of another device", other_device),
        Case::new("softmax/refusals/batch", "a batch that is not the plan's", batch),
        Case::new("softmax/refusals/options", "scales and algorithms that cannot be", options),
    ]
}

fn matrix(device: &Device) -> Result<CsrMatrix> {
    Ok(CsrMatrix::new(device, &with_lengths(&[5, 0, 40], 1)?)?)
}

fn other_pattern(cx: &Context<'_>) -> Result<f64> {
    let (x, mut other) = (matrix(cx.device)?, matrix(cx.device)?);
    let plan = SparseSoftmax::plan(&x)?;
    let mut own = x.with_zeros::<f32>(1)?;
    let is_other = |error: &Error| matches!(error, Error::OtherPattern { operation: "sparse softmax" });
    let says = ["another matrix"];
    refused("y", plan.run(cx.stream, &x, &mut other), is_other, &says)?;
    refused("x", plan.run(cx.stream, &other, &mut own), is_other, &says)?;
    refused("in place", plan.run_in_place(cx.stream, &mut other), is_other, &says)?;
    refused("dy", plan.backward(cx.stream, &x, &other, &mut own), is_other, &says)?;
    refused("y of the gradient", plan.backward(cx.stream, &other, &x, &mut own), is_other, &says)?;
    refused("dx", plan.backward(cx.stream, &x, &x, &mut other), is_other, &says)?;
    refused("dy in place", plan.backward_in_place(cx.stream, &x, &mut other), is_other, &says)?;
    Ok(0.0)
}

fn other_device(cx: &Context<'_>) -> Result<f64> {
    let mut x = matrix(cx.device)?;
    let stream = Device::simulator().stream()?;
    let is_device = |error: &Error| matches!(error, Error::OtherDevice { operation: "sparse softmax", .. });
    let result = SparseSoftmax::plan(&x)?.run_in_place(&stream, &mut x);
    refused("stream", result, is_device, &["the stream is on", "simulator"])?;
    Ok(0.0)
}

fn batch(cx: &Context<'_>) -> Result<f64> {
    let x = matrix(cx.device)?;
    let plan = SparseSoftmax::plan_with(&x, softmax::Options::default().batch(3))?;
    let (three, mut two) = (x.with_zeros::<f32>(3)?, x.with_zeros::<f32>(2)?);
    let is_parameter = |error: &Error| matches!(error, Error::Parameter { operation: "sparse softmax", .. });
    refused("x", plan.run(cx.stream, &x, &mut two), is_parameter, &["the batch of x", "1", "3"])?;
    refused("y", plan.run(cx.stream, &three, &mut two), is_parameter, &["the batch of y", "2", "3"])?;
    let result = plan.backward_in_place(cx.stream, &three, &mut two);
    refused("dy", result, is_parameter, &["the batch of dy", "2", "3"])?;
    Ok(0.0)
}

fn options(cx: &Context<'_>) -> Result<f64> {
    let x = matrix(cx.device)?;
    let is_parameter = |error: &Error| matches!(error, Error::Parameter { what: "the scale", .. });
    for (scale, says) in [(0.0, "0"), (f32::NAN, "NaN"), (f32::NEG_INFINITY, "-inf"), (1e-33, "2^-100")] {
        let result = SparseSoftmax::plan_with(&x, softmax::Options::default().scale(scale));
        refused("scale", result, is_parameter, &["sparse softmax", says])?;
    }
    let is_illegal = |error: &Error| matches!(error, Error::Illegal { operation: "sparse softmax", .. });
    let strange = softmax::Options::default().algorithm(softmax::Algorithm::Subwarp { lanes: 16 });
    let result = SparseSoftmax::plan_with(&x, strange);
    refused("lanes", result, is_illegal, &["lanes: 16", "f32", "lanes: 256", "lanes: 32", "lanes: 8"])?;
    Ok(0.0)
}
