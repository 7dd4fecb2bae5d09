//! `spdnn`: a network of the Sparse DNN Challenge.

use anyhow::Result;
use lacuna::Device;
use lacuna::spdnn::{Algorithm, Features, Options};
use lacuna_cases::data::Data;
use lacuna_cases::exit::{Outcome, Usage};
use lacuna_models::challenge::IMAGES;

use crate::cli::{SpdnnOptions, Switch};
use crate::record::append;
use crate::spdnn::{Expected, Measured, Network, Ranks, Record, measure, published};
use crate::timing::Timing;

/// Images on the simulator, if nothing is said.
const SIMULATED_IMAGES: usize = 96;
/// Groups and tiles of the kernels of groups.
const GROUPS: [(u32, u32); 6] = [(16, 4), (16, 1), (4, 4), (4, 1), (1, 4), (1, 1)];
/// The other algorithms: what the library chooses, the paper's two, and those beside groups.
const NAMED: [(&str, Algorithm); 6] = [
    ("auto", Algorithm::Auto),
    ("baseline", Algorithm::Baseline),
    ("staged", Algorithm::StagedEll),
    ("mma", Algorithm::GroupMma),
    ("fused", Algorithm::FusedLayers),
    ("tiles", Algorithm::GroupTiles { outputs: 16, tiles: 2 }),
];

/// Measures a network, on all ranks of a job where `mpirun` started it. The first one checks and prints.
///
/// # Errors
/// A size, data or a device that cannot be used.
pub fn spdnn(options: &SpdnnOptions) -> Result<Outcome> {
    Ranks::run(|ranks| of_rank(options, ranks))
}

fn of_rank(options: &SpdnnOptions, ranks: &Ranks) -> Result<Outcome> {
    let device = ranks.device(&options.device)?;
    let data = Data::find(options.data.as_deref())?;
    let usual = if device.is_simulator() { SIMULATED_IMAGES } else { IMAGES };
    let images = options.images.unwrap_or(usual);
    let mut network = Network::new(options.neurons, options.layers, images, &data, options.cache.as_deref())?;
    network.f16_weights = options.f16_weights;
    let share = ranks.share(network.images.rows());
    let features = Features::binary(share.of(&network.images)?.as_ref());
    if ranks.is_first() {
        println!(
            "{} neurons, {} layers, {} images ({}); {} on {}",
            options.neurons,
            options.layers,
            network.images.rows(),
            network.source,
            env!("LACUNA_REVISION"),
            device.info().name
        );
    }
    let mut expected = Expected::default();
    if options.verify > 0 && ranks.is_first() {
        let (sample, reference) = network.reference(options.verify)?;
        let found = reference.categories()?.into_iter().map(|row| sample[row as usize]).collect();
        expected.reference = Some((sample, found));
    }
    if ranks.size() > 1 && options.gpus > 1 {
        return Err(Usage("a rank has one GPU: start more ranks in place of `--gpus`".into()).into());
    }
    let devices = devices(&device, options)?;
    let limit = options.memory_limit.map(|gigabytes| (gigabytes * 1e9) as usize);
    let are_workers = devices.len() > 1 || limit.is_some();
    let mut outcome = Outcome::Good;
    for (name, algorithm) in algorithms(options)? {
        let how = Measured {
            name: &name,
            options: Options::default().algorithm(algorithm).prune(!options.no_prune),
            samples: options.samples,
            profile: options.profile,
            passes: options.passes == Switch::On,
            workers: are_workers.then_some((&devices[..], limit)),
            ranks,
            share: &share,
        };
        let Some(record) = measure(&device, &network, &features, how, &mut expected)? else { continue };
        print(&record);
        if !record.is_right() {
            outcome = Outcome::Failure;
        }
        append(options.out.as_deref(), &record)?;
    }
    if let Some(paper) = published(options.neurons, options.layers).filter(|_| ranks.is_first()) {
        println!(
            "the paper (Table I), TeraEdges/s: {} on one V100, {} on one A100, {} on 768 V100",
            paper.v100, paper.a100, paper.v100_768
        );
    }
    Ok(outcome)
}

/// The devices that share the images: this one and those after it.
fn devices(first: &Device, options: &SpdnnOptions) -> Result<Vec<Device>> {
    let mut devices = vec![first.clone()];
    let index = options.device.strip_prefix("cuda:").and_then(|index| index.parse().ok()).unwrap_or(0);
    for next in 1..options.gpus as usize {
        devices.push(if first.is_simulator() { Device::simulator() } else { Device::cuda(index + next)? });
    }
    Ok(devices)
}

/// The algorithms to measure, with their names.
fn algorithms(options: &SpdnnOptions) -> Result<Vec<(String, Algorithm)>> {
    let groups = |(outputs, tiles)| (format!("{outputs}x{tiles}"), Algorithm::InputGroups { outputs, tiles });
    let [_, paper @ .., mma, fused, tiles] = NAMED.map(|(name, algorithm)| (name.to_owned(), algorithm));
    let name = &options.algorithm;
    let of_groups = || {
        let (outputs, tiles) = name.split_once('x')?;
        Some(Algorithm::InputGroups { outputs: outputs.parse().ok()?, tiles: tiles.parse().ok()? })
    };
    let named = NAMED.iter().find(|(known, _)| known == name).map(|&(_, algorithm)| algorithm);
    let wrong = || {
        Usage(format!(
            "there is no algorithm `{name}`: expected `auto`, `baseline`, `staged`, `tiles`, `mma`, `fused`, or as `16x4`"
        ))
    };
    let mut algorithms = vec![(name.clone(), named.or_else(of_groups).ok_or_else(wrong)?)];
    if options.compare_baseline {
        algorithms.extend(paper);
    }
    if options.all_algorithms {
        algorithms.extend([mma, fused, tiles]);
        algorithms.extend(GROUPS.map(groups));
    }
    Ok(algorithms)
}

fn print(record: &Record) {
    println!("{}:", record.algorithm);
    let kernels: Vec<String> =
        record.kernels.iter().map(|(name, layers)| format!("{layers} × {name}")).collect();
    println!("  kernels                {}", kernels.join(", "));
    let timed = |what: &str, timing: &Option<Timing>| {
        if let Some(Timing { median, min, max }) = timing {
            println!("  {what:22} {median:12.1} us ({min:.1} to {max:.1})");
        }
    };
    println!("  images, packing        {:12.2} s {:.2} s", record.images_s, record.pack_s);
    if let Some(passes) = &record.passes {
        println!(
            "  passes                 {} neurons merged, {} constant, {} dead; {} of {} weights left",
            passes.merged, passes.constant, passes.dead, passes.edges_left, passes.edges
        );
    }
    if let Some(workers) = &record.workers {
        let shares: Vec<String> =
            workers.shares.iter().map(|(images, us)| format!("{images} in {us:.0} us")).collect();
        println!(
            "  workers                {}; at most {} images at once, {:.2} GB each",
            shares.join(", "),
            workers.rows,
            workers.bytes as f64 / 1e9
        );
    }
    timed("weights to device", &record.times.weights_us);
    timed("images to device", &record.times.features_us);
    timed("all layers", &record.times.layers_us);
    timed("host to host", &record.times.whole_us);
    let rate = |what: &str, timing: &Option<Timing>| {
        if let Some(Timing { median, .. }) = timing {
            let [nominal, effective] =
                [record.nominal_edges, record.effective_edges].map(|edges| Record::tera(edges, *median));
            println!("  {what:22} {nominal:12.2} TeraEdges/s nominal, {effective:.2} effective");
        }
    };
    rate("layers", &record.times.layers_us);
    rate("host to host", &record.times.whole_us);
    for (rank, share) in record.shares.iter().enumerate() {
        let us = share.whole_us.map_or_else(String::new, |us| format!(", host to host {us:.1} us"));
        let edges = share.effective_edges as f64 / 1e9;
        println!("  rank {rank:<17} {:12} images, {edges:.3} effective GigaEdges{us}", share.images);
    }
    for (machine, us) in &record.model_us {
        println!("  modelled on {machine:10} {us:12.1} us");
    }
    println!(
        "  stored over weights    {:12.3}; {:.1} MB of weights, {:.1} MB between layers",
        record.padding,
        record.weight_bytes as f64 / 1e6,
        record.workspace_bytes as f64 / 1e6
    );
    let live: Vec<String> = record.live.iter().map(|(layer, rows)| format!("{layer}:{rows}")).collect();
    println!("  live after layer       {}", live.join(" "));
    if let Some(layers) = &record.times.layer_us {
        let layers: Vec<String> = layers.iter().map(|us| format!("{us:.1}")).collect();
        println!("  us a layer             {}", layers.join(" "));
    }
    let verdict = |is: bool| if is { "right" } else { "WRONG" };
    print!("  categories             {:12}", record.categories);
    if let Some(official) = record.official {
        print!("; against the official ones {}", verdict(official));
    }
    if let Some((count, agrees)) = record.reference {
        print!("; against the reference on {count} images {}", verdict(agrees));
    }
    if let Some(scores) = &record.scores {
        print!("; scores {scores}");
    }
    println!("; the same as the first {}", verdict(record.same));
}
