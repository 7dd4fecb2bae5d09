//! `pool`: layers of convolutional networks.

use anyhow::Result;
use half::{bf16, f16};
use lacuna_cases::Number;
use lacuna_cases::exit::{Outcome, Usage};

use crate::cli::{MapValue, PoolOptions};
use crate::copies::COPY;
use crate::machine;
use crate::pool::{How, LAYERS, Layer, Record, measure};
use crate::record::append;
use crate::timing::Speeds;

/// Pixels of a layer at most on the simulator.
const SIMULATED: usize = 500_000;

/// Measures layers.
///
/// # Errors
/// A device that cannot be used; a name that no layer has.
pub fn pool(options: &PoolOptions) -> Result<Outcome> {
    match options.how.value {
        MapValue::F32 => of_type::<f32>(options),
        MapValue::F16 => of_type::<f16>(options),
        MapValue::Bf16 => of_type::<bf16>(options),
    }
}

fn of_type<T: Number>(options: &PoolOptions) -> Result<Outcome> {
    let device = machine::device(&options.how.device)?;
    let how = How {
        batch: options.batch as usize,
        layout: options.how.layout.into(),
        samples: options.how.samples,
        all_algorithms: options.how.all_algorithms,
        peers: options.peers,
        checked: 2,
        seed: options.how.seed,
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
            if !record.is_right() {
                outcome = Outcome::Failure;
            }
            append(options.how.out.as_deref(), &record)?;
            records.push(record);
        }
    }
    let chosen = records.iter().filter(|record| record.chosen);
    if let Some(Speeds { count, mean, least, .. }) =
        Speeds::of(chosen.filter_map(|record| record.speedup(COPY)))
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
    let verdict = if record.is_right() { "" } else { " WRONG" };
    let copy = record.speedup(COPY).map(|speed| format!("  {speed:.2} × a copy")).unwrap_or_default();
    println!("{layer:52} {windows:10} {time}{verdict}  {}{copy}", record.algorithm);
}
