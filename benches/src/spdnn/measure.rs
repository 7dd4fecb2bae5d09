//! One network on one device, by one algorithm: checked, then timed or modelled.
use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use lacuna::spdnn::{Features, Inference, Options, PackedNetwork, Report};
use lacuna::{Device, SparseNetwork, Stream};
use lacuna_models::challenge::EDGES;

use super::part::{Part, RankRecord, Whole};
use super::{LayerError, Network, Ranks, Record, Share};
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
    /// The ranks that share the images.
    pub ranks: &'m Ranks,
    /// Which images this one has.
    pub share: &'m Share,
}

/// Bytes of a part of the weights that is sent while layers run.
const PART_BYTES: usize = 4 << 20;

/// Measures a network with the `features` of this rank's share. The first rank gets the record of all; the others get none.
///
/// # Errors
/// What the library says. A wrong result is no error: the record tells it.
pub fn measure(
    device: &Device,
    network: &Network,
    features: &Features,
    how: Measured<'_>,
    expected: &mut Expected,
) -> Result<Option<Record>> {
    let challenge = network.challenge();
    let (layers, images, ranks) = (challenge.layers(), network.images.rows(), how.ranks);
    let start = Instant::now();
    let packed =
        PackedNetwork::from_fn::<LayerError>(device, layers, how.share.most(), how.options, |layer| {
            network.layer(layer)
        })?;
    let pack_s = start.elapsed().as_secs_f64();
    let stream = device.stream()?;
    let mut on_device = SparseNetwork::from_packed(device, &packed)?;
    let mut workspace = on_device.workspace(features.rows())?;
    let mut samples = on_device.upload(&stream, features)?;
    let (_, launches) = device.record(|| on_device.run(&stream, &samples, &mut workspace))?;
    let inference = workspace.inference(&stream)?;
    let report = on_device.report();
    let outputs = on_device.outputs();
    let sums = if Part::is_summed(images, outputs) {
        Some(Part::sums(&inference, &workspace.scores(&stream)?, outputs))
    } else {
        None
    };

    let [mut weights_us, mut features_us, mut layers_us, mut whole_us] = [None; 4];
    let (mut layer_us, mut own_us) = (None, None);
    if !device.is_simulator() {
        let run = |stream: &Stream| on_device.run(stream, &samples, &mut workspace);
        layers_us = Some(ranks.slowest(replays(&stream, how, run)?));
        weights_us = Some(ranks.slowest(by_host(how, || Ok(on_device.replace_weights(&packed)?))?));
        // The paper's kernels read numbers, row by row: what is sent would be another thing.
        if samples.is_binary() {
            let streamed = SparseNetwork::streamed(device, &packed, PART_BYTES)?;
            let pinned = features.pin(device)?;
            features_us = Some(ranks.slowest(by_host(how, || {
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
            whole_us = Some(ranks.slowest(own));
        }
        if how.profile {
            let mut us = on_device.profile(&stream, &samples, &mut workspace)?;
            ranks.max(&mut us);
            layer_us = Some(us);
        }
    }
    let edges: usize = report.iter().map(|layer| layer.edges).sum();
    let stored: usize = report.iter().map(|layer| layer.stored).sum();
    let edges_each = EDGES * challenge.neurons();
    let part = Part {
        rank: RankRecord {
            images: features.rows(),
            whole_us: own_us,
            effective_edges: effective_edges(&inference, features.rows(), layers, edges_each),
        },
        source: network.source.into(),
        categories: Part::categories(how.share, &inference),
        sums,
        live: inference.live().to_vec(),
        model_us: model::times(&launches),
    };
    let Some(parts) = ranks.gather(part)? else { return Ok(None) };
    let Whole { categories, scores, live, effective_edges, model_us, ranks: shares } = Whole::of(parts)?;
    let same = expected.first.get_or_insert_with(|| categories.clone()) == &categories;
    let reference = expected.reference.as_ref().map(|(sample, found)| {
        let ours = sample.iter().copied().filter(|&image| categories.binary_search(&(image as u32)).is_ok());
        (sample.len(), ours.eq(found.iter().copied()))
    });
    Ok(Some(Record {
        op: "spdnn",
        neurons: challenge.neurons(),
        layers,
        images,
        source: network.source.into(),
        algorithm: how.name.into(),
        kernels: kernels(&report),
        prune: how.options.prune,
        nominal_edges: challenge.edges(images),
        effective_edges,
        padding: stored as f64 / edges.max(1) as f64,
        weight_bytes: packed.bytes(),
        workspace_bytes: workspace.bytes(),
        images_s: network.images_s,
        pack_s,
        ranks: ranks.size(),
        shares: if ranks.size() == 1 { Vec::new() } else { shares },
        weights_us,
        features_us,
        layers_us,
        whole_us,
        model_us,
        live: live.iter().map(|&(layer, rows)| (layer + 1, rows)).collect(),
        layer_us,
        categories: categories.len(),
        scores,
        official: network.truth.as_ref().map(|truth| *truth == categories),
        reference,
        same,
        machine: MachineRecord::of(device),
    }))
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
fn effective_edges(inference: &Inference, images: usize, layers: usize, edges: usize) -> u64 {
    let mut lists = inference.live().iter().peekable();
    let mut rows = images;
    let mut sum = 0;
    for layer in 0..layers {
        sum += (rows * edges) as u64;
        if let Some(&(_, live)) = lists.next_if(|&&(listed, _)| listed == layer) {
            rows = live;
        }
    }
    sum
}

/// Times of a graph of one run on this rank, after one that warms up. A run is long enough for the events' resolution.
fn replays(
    stream: &Stream,
    how: Measured<'_>,
    run: impl FnOnce(&Stream) -> lacuna::Result<()>,
) -> Result<Vec<f64>> {
    let mut graph = stream.capture(run)?;
    let mut timed = || -> Result<f64> {
        how.ranks.barrier();
        let start = stream.event()?;
        // SAFETY: the operands are alive in the caller, and nothing else uses them.
        unsafe { graph.replay(stream)? };
        let end = stream.event()?;
        end.synchronize()?;
        Ok(end.microseconds_since(&start)?)
    };
    timed()?;
    (0..how.samples).map(|_| timed()).collect()
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
