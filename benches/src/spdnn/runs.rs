//! Runs of a packed network: on one device, or by workers.
use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use lacuna::spdnn::{Features, Inference, PackedNetwork, Workers};
use lacuna::{Device, SparseNetwork, Stream};

use super::measure::Measured;
use super::record::WorkersRecord;
use crate::model;
use crate::timing::Timing;

/// Bytes of a part of the weights that is sent while layers run.
const PART_BYTES: usize = 4 << 20;

/// What runs gave, and how long they took; the times are those of a record.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) inference: Inference,
    pub(super) workspace_bytes: usize,
    pub(super) weights_us: Option<Timing>,
    pub(super) features_us: Option<Timing>,
    pub(super) layers_us: Option<Timing>,
    pub(super) whole_us: Option<Timing>,
    pub(super) layer_us: Option<Vec<f64>>,
    pub(super) model_us: BTreeMap<String, f64>,
    pub(super) workers: Option<WorkersRecord>,
}

/// Runs on one device, with all that it takes.
///
/// # Errors
/// What the library says; two runs with different results.
pub(super) fn alone(
    device: &Device,
    packed: &PackedNetwork,
    features: &Features,
    how: Measured<'_>,
) -> Result<Runs> {
    let images = features.rows();
    let stream = device.stream()?;
    let mut on_device = SparseNetwork::from_packed(device, packed)?;
    let mut workspace = on_device.workspace(images)?;
    let mut samples = on_device.upload(&stream, features)?;
    let (_, launches) = device.record(|| on_device.run(&stream, &samples, &mut workspace))?;
    let inference = workspace.inference(&stream)?;

    let [mut weights_us, mut features_us, mut layers_us, mut whole_us] = [None; 4];
    let mut layer_us = None;
    if !device.is_simulator() {
        layers_us =
            Some(replays(&stream, how.samples, |stream| on_device.run(stream, &samples, &mut workspace))?);
        weights_us = Some(by_host(how.samples, || Ok(on_device.replace_weights(packed)?))?);
        // The paper's kernels read numbers, row by row: what is sent would be another thing.
        if samples.is_binary() {
            let streamed = SparseNetwork::streamed(device, packed, PART_BYTES)?;
            let pinned = features.pin(device)?;
            features_us = Some(by_host(how.samples, || {
                samples.send(&stream, &pinned)?;
                Ok(stream.synchronize()?)
            })?);
            whole_us = Some(by_host(how.samples, || {
                samples.send(&stream, &pinned)?;
                streamed.run(&stream, &samples, &mut workspace)?;
                let again = workspace.inference(&stream)?;
                anyhow::ensure!(again == inference, "two runs have different results");
                Ok(())
            })?);
        }
        if how.profile {
            layer_us = Some(on_device.profile(&stream, &samples, &mut workspace)?);
        }
    }
    Ok(Runs {
        inference,
        workspace_bytes: workspace.bytes(),
        weights_us,
        features_us,
        layers_us,
        whole_us,
        layer_us,
        model_us: model::times(&launches),
        workers: None,
    })
}

/// Runs by workers, one a device, with at most `limit` bytes of each: from weights and images in the host's memory to categories there.
///
/// # Errors
/// As [`alone`].
pub(super) fn on_workers(
    devices: &[Device],
    limit: Option<usize>,
    packed: &PackedNetwork,
    features: &Features,
    samples: u32,
) -> Result<Runs> {
    let mut fit = packed.fit(features, limit.unwrap_or(usize::MAX))?;
    // Weights begin in the host's memory.
    fit.part_bytes = Some(PART_BYTES);
    let mut workers = Workers::new(devices, packed, fit)?;
    let mut dealt = workers.deal(features)?;
    let inference = workers.run(&mut dealt)?;
    let mut whole_us = None;
    if !devices[0].is_simulator() {
        whole_us = Some(by_host(samples, || {
            let again = workers.run(&mut dealt)?;
            anyhow::ensure!(again == inference, "two runs have different results");
            Ok(())
        })?);
    }
    let shares = dealt.shares().iter().map(|share| (share.rows, share.us)).collect();
    Ok(Runs {
        inference,
        workspace_bytes: dealt.workspace_bytes(),
        weights_us: None,
        features_us: None,
        layers_us: None,
        whole_us,
        layer_us: None,
        model_us: BTreeMap::new(),
        workers: Some(WorkersRecord {
            limit,
            bytes: fit.bytes,
            part_bytes: fit.part_bytes,
            rows: fit.rows,
            shares,
        }),
    })
}

/// Times of a graph of one run, after one that warms up. A run is long enough for the events' resolution.
fn replays(stream: &Stream, samples: u32, run: impl FnOnce(&Stream) -> lacuna::Result<()>) -> Result<Timing> {
    let mut graph = stream.capture(run)?;
    let mut timed = || -> Result<f64> {
        let start = stream.event()?;
        // SAFETY: the operands are alive in the caller, and nothing else uses them.
        unsafe { graph.replay(stream)? };
        let end = stream.event()?;
        end.synchronize()?;
        Ok(end.microseconds_since(&start)?)
    };
    timed()?;
    Ok(Timing::of((0..samples).map(|_| timed()).collect::<Result<_>>()?))
}

/// Times by the host's clock, after one that warms up.
fn by_host(samples: u32, mut once: impl FnMut() -> Result<()>) -> Result<Timing> {
    once()?;
    let mut timed = || {
        let start = Instant::now();
        once()?;
        Ok(start.elapsed().as_secs_f64() * 1e6)
    };
    Ok(Timing::of((0..samples).map(|_| timed()).collect::<Result<_>>()?))
}
