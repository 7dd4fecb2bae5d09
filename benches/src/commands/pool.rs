//! `pool`: layers of convolutional networks.
use std::fs::OpenOptions;
use std::io::Write as _;

use anyhow::{Context as _, Result};
use half::{bf16, f16};
use lacuna_cases::Number;
use lacuna_cases::exit::{Outcome, Usage};

use crate::cli::{MapValue, PoolOptions};
use crate::copies::COPY;
use crate::machine;
use crate::pool::{How, LAYERS, Layer, Record, measure};
use crate::timing::Speeds;

/// The largest error of a right result over its bound.
const RIGHT: f64 = 1.0;
/// Pixels of a layer at most on the simulator.
const SIMULATED: usize = 500_000;

/// Measures layers.
///
/// # Errors
/// A device that cannot be used; a name that no layer has.
pub fn pool(options: &PoolOptions) -> Result<Outcome> {
    match options.value {
        MapValue::F32 => of_type::<f32>(options),
        MapValue::F16 => of_type::<f16>(options),
        MapValue::Bf16 => of_type::<bf16>(options),
    }
}

fn of_type<T: Number>(options: &PoolOptions) -> Result<Outcome> {
    let device = machine::device(&options.device)?;
    let how = How {
        batch: options.batch as usize,
        layout: options.layout.into(),
        samples: options.samples,
        all_algorithms: options.all_algorithms,
        peers: options.peers,
        checked: 2,
        seed: options.seed,
    };
    let is_wanted = |layer: &&Layer| options.only.as_ref().is_none_or(|name| layer.network.contains(name));
    let layers: Vec<&Layer> = LAYERS.iter().filter(is_wanted).collect();
    if layers.is_empty() {
        let mut known: Vec<&str> = LAYERS.iter().map(|layer| layer.network).collect();
        known.sort_unstable();
        known.dedup();
        return Err(Usage(format!("no layer has such a name; there are {}", known.join(", "))).into());
    }
    println!("{} on {}", env!("LACUNA_REVISION"), device.info().name);
    let mut outcome = Outcome::Good;
    let mut records = Vec::new();
    for layer in layers {
        if device.is_simulator() && layer.shape.batch(how.batch).input_len() > SIMULATED {
            continue;
        }
        for record in measure::<T>(&device, layer, how)? {
            print(&record);
            if record.error_over_bound.is_nan() || record.error_over_bound > RIGHT {
                outcome = Outcome::Failure;
            }
            if let Some(path) = &options.out {
                let file = OpenOptions::new().create(true).append(true).open(path);
                let mut file = file.with_context(|| format!("cannot open {}", path.display()))?;
                writeln!(file, "{}", serde_json::to_string(&record)?)?;
            }
            records.push(record);
        }
    }
    let chosen = records.iter().filter(|record| record.chosen);
    if let Some(Speeds { count, mean, least, .. }) =
        Speeds::of(chosen.filter_map(|record| record.speed_over(COPY)))
    {
        println!("{mean:.2} × the speed of a copy ({least:.2} at least, {count} layers)");
    }
    Ok(outcome)
}

fn print(record: &Record) {
    let Record { case, mode, batch, channels, size: [height, width], window, strides, bytes, .. } = record;
    let layer = format!("{case} {mode} {batch}× {channels} {height}×{width}");
    let windows = format!("{}×{} / {}", window[0], window[1], strides[0]);
    let time = match (&record.time_us, record.model_us.get("H200")) {
        (Some(timing), _) => {
            format!("{:9.2} us {:5.0} GB/s", timing.median, *bytes as f64 / timing.median / 1e3)
        }
        (None, Some(us)) => format!("{us:9.2} us (model of an H200)"),
        _ => String::new(),
    };
    let verdict = if record.error_over_bound <= RIGHT { "" } else { " WRONG" };
    let copy = record.speed_over(COPY).map(|speed| format!("  {speed:.2} × a copy")).unwrap_or_default();
    println!("{layer:52} {windows:10} {time}{verdict}  {}{copy}", record.algorithm);
}
