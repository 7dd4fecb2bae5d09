//! Runs of a packed network: on one device, or by workers.
use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use lacuna::spdnn::{Features, Inference, PackedNetwork, Workers};
use lacuna::{Device, SparseNetwork, Stream};

use super::measure::Measured;
use super::part::Part;
use super::record::{Times, WorkersRecord};
use crate::model;
use crate::timing::{Timing, replays};

/// Bytes of a part of the weights that is sent while layers run.
const PART_BYTES: usize = 4 << 20;

/// What runs gave, and how long they took; the times are those of a record.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) inference: Inference,
    /// For each category a checksum of its scores, where they were fetched.
    pub(super) sums: Option<Vec<u64>>,
    pub(super) workspace_bytes: usize,
    pub(super) times: Times,
    /// The median of this rank's own times of the same.
    pub(super) own_us: Option<f64>,
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
    let ranks = how.ranks;
    let stream = device.stream()?;
    let mut on_device = SparseNetwork::from_packed(device, packed)?;
    let mut workspace = on_device.workspace(features.rows())?;
    let mut samples = on_device.upload(&stream, features)?;
    let (_, launches) = device.record(|| on_device.run(&stream, &samples, &mut workspace))?;
    let inference = workspace.inference(&stream)?;
    let outputs = on_device.outputs();
    let sums = if Part::is_summed(features.rows(), outputs) {
        Some(Part::sums(&inference, &workspace.scores(&stream)?, outputs))
    } else {
        None
    };

    let (mut times, mut own_us) = (Times::default(), None);
    if !device.is_simulator() {
        // A run is long enough for the events' resolution.
        let run = |stream: &Stream| Ok(on_device.run(stream, &samples, &mut workspace)?);
        let all_layers = replays(&stream, how.samples, 1, run, || ranks.barrier())?;
        times.layers_us = Some(ranks.slowest(all_layers));
        times.weights_us = Some(ranks.slowest(by_host(how, || Ok(on_device.replace_weights(packed)?))?));
        // The paper's kernels read numbers, row by row: what is sent would be another thing.
        if samples.is_binary() {
            let streamed = SparseNetwork::streamed(device, packed, PART_BYTES)?;
            let pinned = features.pin(device)?;
            times.features_us = Some(ranks.slowest(by_host(how, || {
                samples.send(&stream, &pinned)?;
                Ok(stream.synchronize()?)
            })?));
            let own = by_host(how, || {
                samples.send(&stream, &pinned)?;
                streamed.run(&stream, &samples, &mut workspace)?;
                let again = workspace.inference(&stream)?;
                anyhow::ensure!(again == inference, "two runs have different results");
                Ok(())
            })?;
            own_us = Some(Timing::of(own.clone()).median);
            times.whole_us = Some(ranks.slowest(own));
        }
        if how.profile {
            let mut us = on_device.profile(&stream, &samples, &mut workspace)?;
            ranks.max(&mut us);
            times.layer_us = Some(us);
        }
    }
    Ok(Runs {
        inference,
        sums,
        workspace_bytes: workspace.bytes(),
        times,
        own_us,
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
    how: Measured<'_>,
) -> Result<Runs> {
    let mut fit = packed.fit(features, limit.unwrap_or(usize::MAX))?;
    // Weights begin in the host's memory.
    fit.part_bytes = Some(PART_BYTES);
    let mut workers = Workers::new(devices, packed, fit)?;
    let mut dealt = workers.deal(features)?;
    let inference = workers.run(&mut dealt)?;
    let (mut own_us, mut whole_us) = (None, None);
    if !devices[0].is_simulator() {
        let own = by_host(how, || {
            let again = workers.run(&mut dealt)?;
            anyhow::ensure!(again == inference, "two runs have different results");
            Ok(())
        })?;
        own_us = Some(Timing::of(own.clone()).median);
        whole_us = Some(how.ranks.slowest(own));
    }
    let shares = dealt.shares().iter().map(|share| (share.rows, share.us)).collect();
    Ok(Runs {
        inference,
        sums: None,
        workspace_bytes: dealt.workspace_bytes(),
        times: Times { whole_us, ..Times::default() },
        own_us,
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

/// Times by the host's clock on this rank, after one that warms up. All ranks begin together.
fn by_host(how: Measured<'_>, mut once: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    once()?;
    let mut timed = || {
        how.ranks.barrier();
        let start = Instant::now();
        once()?;
        Ok(start.elapsed().as_secs_f64() * 1e6)
    };
    (0..how.samples).map(|_| timed()).collect()
}
