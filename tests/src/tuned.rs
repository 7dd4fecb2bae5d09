//! What an autotuner must do in every operation.
use anyhow::{Result, ensure};
use lacuna::{Autotuner, Device, Error, Stream};

use crate::Context;
use crate::expect::{refused, same_bits};

/// Tunes a plan [twice], which must take the same `kernels` and give the same bits, rows of `n` of them, when it is `run`: gives
/// the plan and its result.
pub(crate) fn same<P: std::fmt::Debug, K: PartialEq + std::fmt::Debug>(
    cx: &Context<'_>,
    plan: impl Fn(&Autotuner, &Stream) -> lacuna::Result<P>,
    kernels: impl Fn(&P) -> K,
    mut run: impl FnMut(&P) -> Result<Vec<f32>>,
    n: usize,
) -> Result<(P, Vec<f32>)> {
    let [first, second] = twice(cx, plan)?;
    let (kept, found) = (kernels(&first), kernels(&second));
    ensure!(kept == found, "{kept:?}, then {found:?}");
    let result = run(&first)?;
    same_bits("measured, then found", &result, &run(&second)?, n)?;
    Ok((first, result))
}

/// Makes a plan with a tuner, and again with another that has the first one's file alone: what was measured must be found
/// there. On the simulator, which has no time, nothing is measured. A stream elsewhere must be refused.
fn twice<P: std::fmt::Debug>(
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
