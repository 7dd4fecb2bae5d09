//! Calls that must be refused, by an error that tells what was expected and what was got.
use anyhow::Result;
use lacuna::matrix::generate;
use lacuna::{CsrMatrix, Device, Error};

use super::shapes::with_values;
use crate::expect::refused;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("transpose/refusals/other_transpose", "an update from another pattern", other_transpose),
        Case::new("transpose/refusals/other_device", "streams and values of another device", other_device),
        Case::new("transpose/refusals/lengths", "values of the wrong number", lengths),
    ]
}

fn matrix(device: &Device, seed: u64) -> Result<CsrMatrix> {
    Ok(CsrMatrix::new(device, &with_values(generate::uniform(12, 12, 0.5, seed)?, seed)?)?)
}

fn other_transpose(cx: &Context<'_>) -> Result<f64> {
    let (a, mut other) = (matrix(cx.device, 1)?, matrix(cx.device, 1)?);
    let is_other = |error: &Error| matches!(error, Error::OtherTranspose { operation: "transpose" });
    let early = other.update_from(cx.stream, &a);
    refused("before A was transposed", early, is_other, &["`transposed`"])?;
    let mut t = a.transposed(cx.stream)?;
    refused("an equal matrix", other.update_from(cx.stream, &a), is_other, &["`transposed`"])?;
    refused("an equal pattern", t.update_from(cx.stream, &other), is_other, &["`transposed`"])?;
    Ok(0.0)
}

fn other_device(cx: &Context<'_>) -> Result<f64> {
    let a = matrix(cx.device, 1)?;
    let mut t = a.transposed(cx.stream)?;
    let elsewhere = Device::simulator();
    let stream = elsewhere.stream()?;
    let is_device = |error: &Error| matches!(error, Error::OtherDevice { operation: "transpose", .. });
    refused("transposed", a.transposed(&stream), is_device, &["the stream"])?;
    refused("update_from", t.update_from(&stream, &a), is_device, &["the stream"])?;
    let strange = elsewhere.zeros::<f32>(a.nnz())?;
    let mut out = cx.device.zeros::<f32>(a.nnz())?;
    let pattern = a.transposed_pattern(cx.stream)?;
    let result = pattern.gather(cx.stream, strange.as_slice(), out.as_slice_mut());
    refused("gather", result, is_device, &["the values of A"])?;
    Ok(0.0)
}

fn lengths(cx: &Context<'_>) -> Result<f64> {
    let a = matrix(cx.device, 1)?;
    let pattern = a.transposed_pattern(cx.stream)?;
    let is_length = |error: &Error| matches!(error, Error::Length { operation: "transpose", .. });
    let values = cx.device.zeros::<u16>(a.nnz() + 1)?;
    let mut out = cx.device.zeros::<u16>(a.nnz())?;
    let long = pattern.gather(cx.stream, values.as_slice(), out.as_slice_mut());
    let (got, expected) = ((a.nnz() + 1).to_string(), a.nnz().to_string());
    refused("a value too many", long, is_length, &["the values of A ", &got, &expected])?;
    let short = pattern.gather(cx.stream, values.slice(1..)?, out.slice_mut(1..)?);
    refused("no room for one", short, is_length, &["the values of Aᵀ"])?;
    Ok(0.0)
}
