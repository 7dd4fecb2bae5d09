//! What a device must refuse, by an error that tells what was expected and what was got.
use anyhow::{Result, bail, ensure};
use lacuna::{Device, Error};

use crate::expect::refused;
use crate::{Case, Context, Effort};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("device/refusals/upload_length", "uploads of the wrong length", upload_length),
        Case::new("device/refusals/ranges", "slices out of range", ranges),
        Case::new("device/refusals/other_stream", "downloads through another device's stream", other_stream),
        Case::new("device/refusals/out_of_memory", "buffers larger than the memory", out_of_memory)
            .effort(Effort::Slow),
        Case::new("device/refusals/no_gpu", "GPUs that are not there", no_gpu),
    ]
}

fn upload_length(cx: &Context<'_>) -> Result<f64> {
    let mut buffer = cx.device.zeros::<f32>(10)?;
    let is_length = |error: &Error| matches!(error, Error::Length { .. });
    refused("11 into 10", buffer.upload(&[0.0; 11]), is_length, &["11", "10 are expected"])?;
    let mut part = buffer.slice_mut(2..5)?;
    refused("none into 3", part.upload(&[]), is_length, &["0 elements", "3 are expected"])?;
    Ok(0.0)
}

fn ranges(cx: &Context<'_>) -> Result<f64> {
    let mut buffer = cx.device.zeros::<f32>(10)?;
    let is_range = |error: &Error| matches!(error, Error::Range { .. });
    refused("0..11 of 10", buffer.slice(..11), is_range, &["0..11", "10"])?;
    refused("11.. of 10", buffer.slice(11..), is_range, &["11", "10"])?;
    let (late, early) = (5, 4);
    refused("5..4 of 10", buffer.slice_mut(late..early), is_range, &["5..4", "10"])?;
    refused("to the last usize", buffer.slice(0..=usize::MAX), is_range, &["10"])?;
    refused("6 of a part of 5", buffer.slice(5..)?.part(..6), is_range, &["0..6", "5"])?;
    Ok(0.0)
}

fn other_stream(cx: &Context<'_>) -> Result<f64> {
    let stream = Device::simulator().stream()?;
    let buffer = cx.device.zeros::<f32>(10)?;
    let is_other = |error: &Error| matches!(error, Error::OtherDevice { .. });
    refused("another simulator's stream", buffer.download(&stream), is_other, &["the stream", "simulator"])?;
    Ok(0.0)
}

fn out_of_memory(cx: &Context<'_>) -> Result<f64> {
    let full = |error: &Error| matches!(error, Error::OutOfMemory { .. } | Error::SimulatorMemory(_));
    let bytes = 1u64 << 45;
    let asked = bytes.to_string();
    refused("2^45 bytes", cx.device.uninitialized::<u64>(1 << 42), full, &[&asked])?;
    let uncountable = |error: &Error| matches!(error, Error::TooLarge { .. });
    refused("2^64 bytes", cx.device.zeros::<u64>(1 << 61), uncountable, &["at most"])?;
    // The device goes on after that.
    ensure!(cx.device.zeros::<u32>(1)?.download(cx.stream)? == [0]);
    Ok(0.0)
}

/// What `Device::cuda` says depends on the build and the machine; it must say it, and not panic.
fn no_gpu(_: &Context<'_>) -> Result<f64> {
    match Device::cuda(0) {
        Err(Error::NoCuda) => ensure!(!cfg!(feature = "cuda"), "a build with CUDA says it has none"),
        Ok(_) if cfg!(feature = "cuda") => {}
        Err(error) if cfg!(feature = "cuda") && error.is_missing() => {}
        Err(error) => bail!("GPU 0: unexpected error: {error}"),
        Ok(_) => bail!("GPU 0 in a build without CUDA"),
    }
    refused("GPU 9999", Device::cuda(9999), Error::is_missing, &[])?;
    match Device::best() {
        // A GPU that cannot be used is not passed over in silence.
        Err(error @ (Error::BrokenDriver { .. } | Error::OldGpu { .. })) => {
            ensure!(Device::cuda(0).is_err(), "the best device is refused, and GPU 0 is not: {error}");
        }
        best => drop(best?),
    }
    Ok(0.0)
}
