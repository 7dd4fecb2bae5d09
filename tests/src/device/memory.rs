//! Buffers and slices hold what is put into them.
use anyhow::{Result, ensure};

use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("device/memory/round_trip", "what is uploaded comes back", round_trip),
        Case::new("device/memory/slices", "a part is written, and nothing beside it", slices),
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
