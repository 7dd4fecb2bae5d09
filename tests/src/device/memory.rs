//! Buffers and slices hold what is put into them.
use anyhow::{Result, ensure};
use lacuna::{Device, Error};

use crate::expect::refused;
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("device/memory/round_trip", "what is uploaded comes back", round_trip),
        Case::new("device/memory/slices", "a part is written, and nothing beside it", slices),
        Case::new("device/memory/copy", "a part is copied in the stream's order, once or recorded", copy),
        Case::new("device/memory/empty", "buffers and parts without elements", empty),
        Case::new("device/memory/alignment", "buffers start at multiples of 256 bytes", alignment),
    ]
}

fn round_trip(cx: &Context<'_>) -> Result<f64> {
    let floats = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::from_bits(1), 1.5];
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let buffer = cx.device.upload(&floats)?;
    ensure!(bits(&buffer.download(cx.stream)?) == bits(&floats), "f32 values changed on the way");
    let shorts: Vec<u16> = (0..1001).collect();
    ensure!(cx.device.upload(&shorts)?.download(cx.stream)? == shorts, "u16 values changed on the way");
    let mut words = cx.device.zeros::<u64>(77)?;
    ensure!(words.download(cx.stream)? == [0; 77], "`zeros` are not all zero");
    words.upload(&[u64::MAX; 77])?;
    ensure!(words.download(cx.stream)? == [u64::MAX; 77], "an upload did not replace the contents");
    Ok(0.0)
}

fn slices(cx: &Context<'_>) -> Result<f64> {
    let mut buffer = cx.device.upload(&(0..100u32).collect::<Vec<_>>())?;
    buffer.slice_mut(10..=12)?.upload(&[7, 8, 9])?;
    let part = buffer.slice(9..)?.part(..5)?;
    ensure!(part.download(cx.stream)? == [9, 7, 8, 9, 13], "a slice has the wrong elements");
    let expected: Vec<u32> = (0..10).chain([7, 8, 9]).chain(13..100).collect();
    ensure!(buffer.download(cx.stream)? == expected, "a slice's upload changed its neighbours");
    Ok(0.0)
}

fn copy(cx: &Context<'_>) -> Result<f64> {
    let from = cx.device.upload(&(0..100u32).collect::<Vec<_>>())?;
    let mut to = cx.device.zeros::<u32>(50)?;
    cx.stream.copy(from.slice(11..51)?, to.slice_mut(5..45)?)?;
    let expected: Vec<u32> = [0; 5].into_iter().chain(11..51).chain([0; 5]).collect();
    ensure!(to.download(cx.stream)? == expected, "a copy has the wrong elements, or changed its neighbours");
    if !cx.device.is_simulator() {
        let mut graph = cx.stream.capture(|stream| stream.copy(from.slice(..50)?, to.as_slice_mut()))?;
        ensure!(to.download(cx.stream)? == expected, "recording did the work");
        // SAFETY: both buffers live to the end of this function, and only this stream uses them.
        unsafe { graph.replay(cx.stream)? };
        ensure!(to.download(cx.stream)? == (0..50).collect::<Vec<_>>(), "a recorded copy was not replayed");
    }
    cx.stream.copy(from.slice(3..3)?, to.slice_mut(50..)?)?;

    let is_length = |error: &Error| matches!(error, Error::Length { .. });
    let shorter = cx.stream.copy(from.slice(..49)?, to.as_slice_mut());
    refused("a source that is too short", shorter, is_length, &["copy", "50", "49"])?;
    let is_other = |error: &Error| matches!(error, Error::OtherDevice { .. });
    let other = Device::simulator();
    let elsewhere = cx.stream.copy(other.zeros(50)?.as_slice(), to.as_slice_mut());
    refused("a source elsewhere", elsewhere, is_other, &["copy", "the source"])?;
    let elsewhere = other.stream()?.copy(from.slice(..50)?, to.as_slice_mut());
    refused("another device's stream", elsewhere, is_other, &["copy"])?;
    Ok(0.0)
}

fn empty(cx: &Context<'_>) -> Result<f64> {
    let mut none = cx.device.upload::<f32>(&[])?;
    none.upload(&[])?;
    ensure!(none.is_empty() && none.download(cx.stream)?.is_empty(), "an empty buffer has elements");
    let some = cx.device.zeros::<f32>(3)?;
    ensure!(some.slice(3..)?.download(cx.stream)?.is_empty(), "the end of a buffer has elements");
    Ok(0.0)
}

fn alignment(cx: &Context<'_>) -> Result<f64> {
    let buffers = (1..20).map(|len| cx.device.zeros::<u16>(len)).collect::<lacuna::Result<Vec<_>>>()?;
    for buffer in &buffers {
        let address = buffer.as_slice().address();
        ensure!(address.is_multiple_of(256), "{} elements start at {address:#x}", buffer.len());
    }
    Ok(0.0)
}
