//! One network on one device, by one algorithm: checked, then timed or modelled.
use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use indicatif::ProgressBar;
use lacuna::Device;
use lacuna::spdnn::{Features, Options, PackedNetwork, Passed, Passes, Report, simplify};
use lacuna_models::challenge::EDGES;
use rayon::prelude::*;

use super::part::{Part, RankRecord, Whole, images_of_layers};
use super::record::PassesRecord;
use super::runs::{alone, on_workers};
use super::{LayerError, Network, Ranks, Record, Share};
use crate::machine::MachineRecord;

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
    /// Whether passes make the network smaller.
    pub passes: bool,
    /// The GPUs that share the images, and the bytes of each that may be used; none: one GPU, and all that it takes.
    pub workers: Option<(&'m [Device], Option<usize>)>,
    /// The ranks that share the images.
    pub ranks: &'m Ranks,
    /// Which images this one has.
    pub share: &'m Share,
}

/// Layers that are made at once where passes take them in order.
const AT_ONCE: usize = 32;

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
    let (packed, passed) = pack(device, network, how)?;
    let pack_s = start.elapsed().as_secs_f64();
    let report = packed.report();
    let run = match how.workers {
        Some((devices, limit)) => on_workers(devices, limit, &packed, features, how)?,
        None => alone(device, &packed, features, how)?,
    };
    let inference = &run.inference;
    let edges: usize = report.iter().map(|layer| layer.edges).sum();
    let stored: usize = report.iter().map(|layer| layer.stored).sum();
    let edges_each = EDGES * challenge.neurons();
    let part = Part {
        rank: RankRecord {
            images: features.rows(),
            whole_us: run.own_us,
            effective_edges: images_of_layers(0..layers, features.rows(), inference.live())
                .map(|rows| (rows * edges_each) as u64)
                .sum(),
        },
        source: network.source.into(),
        categories: Part::categories(how.share, inference),
        sums: run.sums,
        live: inference.live().to_vec(),
        model_us: run.model_us,
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
        f16_weights: network.f16_weights,
        prune: how.options.prune,
        passes: passed,
        workers: run.workers,
        nominal_edges: challenge.edges(images),
        effective_edges,
        padding: stored as f64 / edges.max(1) as f64,
        weight_bytes: packed.bytes(),
        workspace_bytes: run.workspace_bytes,
        images_s: network.images_s,
        pack_s,
        ranks: ranks.size(),
        shares: if ranks.size() == 1 { Vec::new() } else { shares },
        times: run.times,
        model_us,
        live: live.iter().map(|&(layer, rows)| (layer + 1, rows)).collect(),
        categories: categories.len(),
        scores,
        official: network.truth.as_ref().map(|truth| *truth == categories),
        reference,
        same,
        machine: MachineRecord::of(device),
    }))
}

/// Packs the network; with passes, in order, as each layer depends on the one before.
fn pack(
    device: &Device,
    network: &Network,
    how: Measured<'_>,
) -> Result<(PackedNetwork, Option<PassesRecord>)> {
    let layers = network.challenge().layers();
    // indicatif draws on stderr, and only where that is a terminal.
    let progress = if how.ranks.is_first() { ProgressBar::new(layers as u64) } else { ProgressBar::hidden() };
    let layer = |layer| {
        progress.inc(1);
        network.layer(layer)
    };
    if !how.passes {
        let packed =
            PackedNetwork::from_fn::<LayerError>(device, layers, how.share.most(), how.options, layer)?;
        return Ok((packed, None));
    }
    let some = |first: usize| {
        let made: Vec<_> = (first..layers.min(first + AT_ONCE)).into_par_iter().map(layer).collect();
        made
    };
    let small = simplify::<LayerError>((0..layers).step_by(AT_ONCE).flat_map(some), Passes::default())?;
    let packed = PackedNetwork::new(device, &small.layers, how.share.most(), how.options)?;
    let Passed { edges, edges_left, constant, merged, dead, regrouped, .. } = small.total();
    Ok((packed, Some(PassesRecord { merged, constant, dead, regrouped, edges, edges_left })))
}

/// The kernels, with how many layers each has.
fn kernels(report: &[Report]) -> BTreeMap<String, usize> {
    let mut kernels = BTreeMap::new();
    for layer in report {
        *kernels.entry(layer.choice.entry.name.to_owned()).or_insert(0) += 1;
    }
    kernels
}
