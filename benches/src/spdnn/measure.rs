//! One network on one device, by one algorithm: checked, then timed or modelled.
use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use lacuna::spdnn::{Features, Inference, Options, PackedNetwork, Report};
use lacuna::{Device, SparseNetwork, Stream};
use lacuna_models::challenge::EDGES;

use super::{LayerError, Network, Record};
use crate::machine::MachineRecord;
use crate::model;
use crate::timing::Timing;

/// What the results of a network are compared with.
#[derive(Debug, Default)]
pub struct Expected {
    /// The images that the reference inferred, and those of them that are categories.
    pub reference: Option<(Vec<usize>, Vec<usize>)>,
    /// The categories of the algorithm that came first.
    pub first: Option<Vec<u32>>,
}

/// How a network is measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'m> {
    /// The algorithm's name.
    pub name: &'m str,
    /// The network's options.
    pub options: Options,
    /// Samples of a time.
    pub samples: u32,
    /// Whether layers are timed by themselves too.
    pub profile: bool,
}

/// Bytes of a part of the weights that is sent while layers run.
const PART_BYTES: usize = 4 << 20;

/// Measures a network.
///
/// # Errors
/// What the library says. A wrong result is no error: the record tells it.
pub fn measure(
    device: &Device,
    network: &Network,
    features: &Features,
    how: Measured<'_>,
    expected: &mut Expected,
) -> Result<Record> {
    let challenge = network.challenge();
    let (layers, images) = (challenge.layers(), features.rows());
    let start = Instant::now();
    let packed = PackedNetwork::from_fn::<LayerError>(device, layers, images, how.options, |layer| {
        network.layer(layer)
    })?;
    let pack_s = start.elapsed().as_secs_f64();
    let stream = device.stream()?;
    let mut on_device = SparseNetwork::from_packed(device, &packed)?;
    let mut workspace = on_device.workspace(images)?;
    let mut samples = on_device.upload(&stream, features)?;
    let (_, launches) = device.record(|| on_device.run(&stream, &samples, &mut workspace))?;
    let inference = workspace.inference(&stream)?;
    let report = on_device.report();

    let [mut weights_us, mut features_us, mut layers_us, mut whole_us] = [None; 4];
    let mut layer_us = None;
    if !device.is_simulator() {
        layers_us =
            Some(replays(&stream, how.samples, |stream| on_device.run(stream, &samples, &mut workspace))?);
        weights_us = Some(by_host(how.samples, || Ok(on_device.replace_weights(&packed)?))?);
        // The paper's kernels read numbers, row by row: what is sent would be another thing.
        if samples.is_binary() {
            let streamed = SparseNetwork::streamed(device, &packed, PART_BYTES)?;
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
    let edges: usize = report.iter().map(|layer| layer.edges).sum();
    let stored: usize = report.iter().map(|layer| layer.stored).sum();
    let categories = inference.categories().to_vec();
    let same = expected.first.get_or_insert_with(|| categories.clone()) == &categories;
    let reference = expected.reference.as_ref().map(|(sample, found)| {
        let ours = sample.iter().copied().filter(|&image| categories.binary_search(&(image as u32)).is_ok());
        (sample.len(), ours.eq(found.iter().copied()))
    });
    Ok(Record {
        op: "spdnn",
        neurons: challenge.neurons(),
        layers,
        images,
        source: network.source.into(),
        algorithm: how.name.into(),
        kernels: kernels(&report),
        prune: how.options.prune,
        nominal_edges: challenge.edges(images),
        effective_edges: effective_edges(&inference, images, layers, EDGES * challenge.neurons()),
        padding: stored as f64 / edges.max(1) as f64,
        weight_bytes: packed.bytes(),
        workspace_bytes: workspace.bytes(),
        images_s: network.images_s,
        pack_s,
        weights_us,
        features_us,
        layers_us,
        whole_us,
        model_us: model::times(&launches),
        live: inference.live().iter().map(|&(layer, rows)| (layer + 1, rows)).collect(),
        layer_us,
        categories: categories.len(),
        official: network.truth.as_ref().map(|truth| *truth == categories),
        reference,
        same,
        machine: MachineRecord::of(device),
    })
}

/// The kernels, with how many layers each has.
fn kernels(report: &[Report]) -> BTreeMap<String, usize> {
    let mut kernels = BTreeMap::new();
    for layer in report {
        *kernels.entry(layer.choice.entry.name.to_owned()).or_insert(0) += 1;
    }
    kernels
}

/// Edges of the images that layers worked on: those of the last list before each.
fn effective_edges(inference: &Inference, images: usize, layers: usize, edges: usize) -> u128 {
    let mut lists = inference.live().iter().peekable();
    let mut rows = images;
    let mut sum = 0;
    for layer in 0..layers {
        sum += (rows * edges) as u128;
        if let Some(&(_, live)) = lists.next_if(|&&(listed, _)| listed == layer) {
            rows = live;
        }
    }
    sum
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
