//! What an autotuner must do in every operation.
use anyhow::{Result, ensure};
use lacuna::{Autotuner, Device, Error, Stream};

use crate::Context;
use crate::expect::refused;

/// Makes a plan with a tuner, and again with another that has the first one's file alone: what was measured must be found
/// there. On the simulator, which has no time, nothing is measured. A stream elsewhere must be refused.
pub(crate) fn twice<P: std::fmt::Debug>(
    cx: &Context<'_>,
    plan: impl Fn(&Autotuner, &Stream) -> lacuna::Result<P>,
) -> Result<[P; 2]> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("tune.json");
    let measured = usize::from(!cx.device.is_simulator());
    let tuner = Autotuner::open(&path);
    let first = plan(&tuner, cx.stream)?;
    ensure!(tuner.warnings().is_empty(), "{:?}", tuner.warnings());
    ensure!(tuner.problems() == measured, "{} problems are known", tuner.problems());
    ensure!(path.exists() == (measured > 0), "the file is there where nothing was measured, or not");
    let later = Autotuner::open(&path);
    ensure!(later.problems() == measured, "{} problems are in the file", later.problems());
    let second = plan(&later, cx.stream)?;
    ensure!(later.problems() == measured, "what is in the file was measured again");

    let elsewhere = plan(&tuner, &Device::simulator().stream()?);
    let is_other = |error: &Error| matches!(error, Error::OtherDevice { .. });
    refused("a stream elsewhere", elsewhere, is_other, &["tuning", "the stream", "simulator"])?;
    Ok([first, second])
}
