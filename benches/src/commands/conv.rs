//! `conv`: layers of convolutional networks.
use std::collections::BTreeMap;

use anyhow::Result;
use half::{bf16, f16};
use lacuna_cases::Number;
use lacuna_cases::data::Data;
use lacuna_cases::exit::Outcome;
use lacuna_vendor::Search;
use lacuna_vendor::cudnn::CuDnn;

use crate::cli::{ConvOptions, ConvSuite, MapValue};
use crate::conv::{
    CUDNN_BF16, CUDNN_F16, CUDNN_F32, CUDNN_TF32, How, Input, LAYERS, Layer, Peers, Record, drawn, measure,
    mobilenet, real,
};
use crate::copies::COPY;
use crate::record::append;
use crate::timing::Speeds;
use crate::{energy, machine};

/// Products of a layer at most on the simulator.
const SIMULATED: usize = 20_000_000;

/// Measures layers.
///
/// # Errors
/// Data or a device that cannot be used.
pub fn conv(options: &ConvOptions) -> Result<Outcome> {
    match options.how.value {
        MapValue::F32 => of_type::<f32>(options),
        MapValue::F16 => of_type::<f16>(options),
        MapValue::Bf16 => of_type::<bf16>(options),
    }
}

fn of_type<T: Number>(options: &ConvOptions) -> Result<Outcome> {
    let device = machine::device(&options.how.device)?;
    let counter = options.energy.then(|| energy::counter(&device)).flatten();
    let how = How {
        layout: options.how.layout.into(),
        samples: options.how.samples,
        all_algorithms: options.how.all_algorithms,
        all_splits: options.all_splits,
        checked: 2,
        seed: options.how.seed,
        counter: counter.as_ref(),
    };
    println!("{} on {}", env!("LACUNA_REVISION"), device.info().name);
    let mut outcome = Outcome::Good;
    let library = options.peers.then(|| CuDnn::load(&Search::from_env()));
    if let Some(Err(missing)) = &library {
        eprintln!("lacuna-bench: {missing}");
    }
    let mut peers = Peers::new(library.and_then(Result::ok));
    let mut records = Vec::new();
    let mut run = |input: &Input| -> Result<()> {
        if device.is_simulator()
            && input.shape.output_len() * input.shape.filters_len() / input.shape.filters > SIMULATED
        {
            return Ok(());
        }
        let beside = if options.peers && !device.is_simulator() {
            peers.measure::<T>(&device, input, how)?
        } else {
            BTreeMap::new()
        };
        for mut record in measure::<T>(&device, input, how)? {
            record.peers.clone_from(&beside);
            print(&record);
            if !record.is_right() {
                outcome = Outcome::Failure;
            }
            append(options.how.out.as_deref(), &record)?;
            records.push(record);
        }
        Ok(())
    };
    let drawn = |layer: &Layer, zeros| drawn(layer, options.batch, zeros, options.how.seed);
    match options.suite {
        ConvSuite::Maps => {
            let mut data = Data::find(options.data.as_deref())?;
            for input in real(&mut data)? {
                run(&input)?;
            }
        }
        ConvSuite::Layers => {
            for layer in &LAYERS {
                for &zeros in &options.zeros {
                    run(&drawn(layer, zeros))?;
                }
            }
        }
        // Zeros save nothing here.
        ConvSuite::Depthwise => {
            for layer in options.widths.iter().flat_map(|&width| mobilenet(width)) {
                run(&drawn(&layer, 0.0))?;
            }
        }
    }
    summarize(&records);
    Ok(outcome)
}

/// Speeds of the library's choice over each peer's, by part of zeros.
fn summarize(records: &[Record]) {
    let mut levels: Vec<Option<f64>> = Vec::new();
    for record in records {
        if !levels.contains(&record.level) {
            levels.push(record.level);
        }
    }
    for level in levels {
        for peer in [CUDNN_F32, CUDNN_TF32, CUDNN_F16, CUDNN_BF16, COPY] {
            let of_level = records.iter().filter(|record| record.chosen && record.level == level);
            let speeds = of_level.filter_map(|record| record.speedup(peer));
            if let Some(Speeds { count, mean, least, .. }) = Speeds::of(speeds) {
                let what = level.map_or("real maps".into(), |level| format!("{:.0} % zeros", level * 100.0));
                println!("{what}: {mean:.2} × the speed of {peer} ({least:.2} at least, {count} layers)");
            }
        }
    }
}

fn print(record: &Record) {
    let Record { case, batch, channels, size: [height, width], filters, zeros, .. } = record;
    let layer = format!("{case} {batch}× {channels} {height}×{width} {filters}");
    let time = match (&record.time_us, record.model_us.get("H200")) {
        (Some(timing), _) => format!("{:9.2} us{}", timing.median, mj(record.energy_mj)),
        (None, Some(us)) => format!("{us:9.2} us (model of an H200)"),
        _ => String::new(),
    };
    let verdict = if record.is_right() { "" } else { " WRONG" };
    let peers = record.peers.iter().map(|(name, peer)| {
        format!("  {name} {:.2}{} ({})", peer.time.median, mj(peer.energy_mj), peer.algorithm)
    });
    let peers: String = if record.chosen { peers.collect() } else { String::new() };
    println!("{layer:48} {zeros:5.2} {time}{verdict}  {} ×{}{peers}", record.algorithm, record.splits);
}

/// The energy of a call in words, where it is known.
fn mj(energy: Option<f64>) -> String {
    energy.map_or_else(String::new, |mj| format!(" {mj:.3} mJ"))
}
