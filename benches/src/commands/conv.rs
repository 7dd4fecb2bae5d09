//! `conv`: layers of convolutional networks.
use std::collections::BTreeMap;

use anyhow::Result;
use half::{bf16, f16};
use lacuna::Device;
use lacuna_cases::Number;
use lacuna_cases::data::Data;
use lacuna_cases::exit::{Outcome, Usage};
use lacuna_vendor::Search;
use lacuna_vendor::cudnn::CuDnn;

use crate::cli::{ConvOptions, ConvSuite, Layout, MapValue};
use crate::conv::{
    CUDNN_BF16, CUDNN_F16, CUDNN_F32, CUDNN_TF32, How, Input, LAYERS, Layer, OTHER_TAPS, Peers, Record,
    drawn, measure, mobilenet, real,
};
use crate::copies::COPY;
use crate::record::{PeerRecord, append};
use crate::timing::Speeds;
use crate::{energy, machine, pointwise};

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
    let mut report = Report { options, outcome: Outcome::Good, records: Vec::new() };
    let library = options.peers.then(|| CuDnn::load(&Search::from_env()));
    if let Some(Err(missing)) = &library {
        eprintln!("lacuna-bench: {missing}");
    }
    let mut peers = Peers::new(library.and_then(Result::ok));
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
        report.add(measure::<T>(&device, input, how)?, &beside)
    };
    let drawn = |layer: &Layer, zeros| drawn(layer, options.batch, zeros, options.how.seed);
    match options.suite {
        ConvSuite::Maps => {
            let mut data = Data::find(options.data.as_deref())?;
            for input in real(&mut data)? {
                run(&input)?;
            }
        }
        ConvSuite::Layers | ConvSuite::Taps => {
            let layers = if options.suite == ConvSuite::Layers { &LAYERS[..] } else { &OTHER_TAPS };
            for layer in layers {
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
        ConvSuite::Pointwise => of_sparse_weights::<T>(&device, how, &mut peers, &mut report)?,
    }
    summarize(&report.records);
    Ok(report.outcome)
}

/// What was measured so far.
struct Report<'o> {
    options: &'o ConvOptions,
    outcome: Outcome,
    records: Vec<Record>,
}

impl Report<'_> {
    /// Prints and keeps the records of a layer, and the peers' beside.
    fn add(&mut self, records: Vec<Record>, beside: &BTreeMap<String, PeerRecord>) -> Result<()> {
        for mut record in records {
            record.peers.clone_from(beside);
            print(&record);
            if !record.is_right() {
                self.outcome = Outcome::Failure;
            }
            append(self.options.how.out.as_deref(), &record)?;
            self.records.push(record);
        }
        Ok(())
    }
}

/// The suite whose weights are sparse, beside dense ones.
fn of_sparse_weights<T: Number>(
    device: &Device,
    how: How<'_>,
    convolutions: &mut Peers,
    report: &mut Report<'_>,
) -> Result<()> {
    let options = report.options;
    if options.how.layout == Layout::Nhwc {
        return Err(Usage("suite `pointwise` has maps in NCHW alone; leave --layout out".into()).into());
    }
    let are_wanted = options.peers && !device.is_simulator();
    let mut products = are_wanted.then(pointwise::Products::load);
    for &sparsity in &options.sparsity {
        for shape in options.widths.iter().flat_map(|&width| pointwise::mobilenet(width, options.batch)) {
            let pixels = shape.batch * shape.out_size().iter().product::<usize>();
            let nonzeros = (1.0 - sparsity) * shape.filters_len() as f64 * pixels as f64;
            if device.is_simulator() && nonzeros > SIMULATED as f64 {
                continue;
            }
            let layer = pointwise::drawn(shape, sparsity, options.how.seed)?;
            let mut beside = BTreeMap::new();
            if let Some(products) = &mut products {
                beside = convolutions.measure::<T>(device, &layer.dense, how)?;
                beside.extend(products.measure::<T>(device, &layer, how)?);
            }
            report.add(pointwise::measure::<T>(device, &layer, how)?, &beside)?;
        }
    }
    Ok(())
}

/// Speeds of the library's choice over each peer's, by part of zeros.
fn summarize(records: &[Record]) {
    // Of sparse weights the part that is zero is never quite what was asked for.
    let kind = |record: &Record| (record.level, record.sparsity.map(|_| record.sparsity_percent()));
    let mut kinds = Vec::new();
    for record in records {
        if !kinds.contains(&kind(record)) {
            kinds.push(kind(record));
        }
    }
    let peers = [CUDNN_F32, CUDNN_TF32, CUDNN_F16, CUDNN_BF16, COPY].into_iter().chain(pointwise::CUBLAS);
    for of in kinds {
        for peer in peers.clone() {
            let of_kind = records.iter().filter(|record| record.chosen && kind(record) == of);
            let speeds = of_kind.filter_map(|record| record.speedup(peer));
            if let Some(Speeds { count, mean, least, .. }) = Speeds::of(speeds) {
                let what = match of {
                    (_, Some(percent)) => format!("{percent} % zeros of the weights"),
                    (Some(level), None) => format!("{:.0} % zeros", level * 100.0),
                    (None, None) => "real maps".into(),
                };
                println!("{what}: {mean:.2} × the speed of {peer} ({least:.2} at least, {count} layers)");
            }
        }
    }
}

fn print(record: &Record) {
    let Record { case, batch, channels, size: [height, width], filters, .. } = record;
    let zeros = record.sparsity.unwrap_or(record.zeros);
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
