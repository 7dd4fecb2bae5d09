//! One layer on one device: checked, then timed or modelled.
use std::collections::BTreeMap;

use anyhow::Result;
use lacuna::matrix::generate;
use lacuna::pool::{MapLayout, Mode, Operands, Options, Shape};
use lacuna::{Device, Pool, Stream};
use lacuna_cases::Number;
use lacuna_cases::maps::{channels_first, channels_last};
use lacuna_cases::number::rounded;
use lacuna_cases::pool::{oracle_mode, oracle_shape};
use lacuna_reference::pool;

use super::{Layer, Record};
use crate::copies::{self, COPY};
use crate::machine::MachineRecord;
use crate::model;
use crate::timing::time;

/// How layers are measured.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Images.
    pub batch: usize,
    /// How maps lie.
    pub layout: MapLayout,
    /// Samples of a timing.
    pub samples: u32,
    /// Whether every legal kernel is measured.
    pub all_algorithms: bool,
    /// Whether it is set beside a copy.
    pub peers: bool,
    /// Images that are checked at most.
    pub checked: usize,
    /// The seed of what is drawn.
    pub seed: u64,
}

/// Measures a layer: the library's choice first.
///
/// # Errors
/// What the library says. A wrong result is no error: the record tells it.
pub fn measure<T: Number>(device: &Device, layer: &Layer, how: How) -> Result<Vec<Record>> {
    let stream = device.stream()?;
    let shape = layer.shape.batch(how.batch);
    let options = Options::default().mode(layer.mode).layout(how.layout);
    let chosen = Pool::<T>::plan(device, shape, options)?;
    let mut plans = vec![chosen.clone()];
    if how.all_algorithms {
        let [legal, ..] = chosen.legal();
        let others = legal.iter().map(|choice| choice.algorithm);
        for algorithm in others.filter(|&algorithm| algorithm != chosen.choice().algorithm) {
            plans.push(Pool::plan(device, shape, options.algorithm(algorithm))?);
        }
    }
    let maps = rounded::<T>(&generate::random_values(shape.input_len(), how.seed));
    let mut records = Vec::new();
    for (i, plan) in plans.iter().enumerate() {
        let mut record = of_plan(device, &stream, plan, layer, &maps, how)?;
        record.chosen = i == 0;
        records.push(record);
    }
    if how.peers && !device.is_simulator() {
        let elements = shape.input_len() + shape.output_len();
        let copy = copies::of_elements::<T>(device, &stream, elements, how.samples)?;
        for record in &mut records {
            record.peers.insert(COPY.into(), copy.clone());
        }
    }
    Ok(records)
}

fn of_plan<T: Number>(
    device: &Device,
    stream: &Stream,
    plan: &Pool<T>,
    layer: &Layer,
    maps: &[T],
    how: How,
) -> Result<Record> {
    let &Shape { batch, channels, size, window, strides, padding, .. } = plan.shape();
    let is_last = how.layout == MapLayout::Nhwc;
    let pixels = size[0] * size[1];
    let x =
        if is_last { device.upload(&channels_last(maps, channels, pixels)) } else { device.upload(maps) }?;
    let mut out = device.upload(&vec![T::POISON; plan.shape().output_len()])?;
    let mut run =
        |stream: &Stream| plan.run(stream, Operands { input: x.as_slice(), out: out.as_slice_mut() });
    let (_, launches) = device.record(|| run(stream))?;
    let time_us = if device.is_simulator() {
        None
    } else {
        Some(time(stream, how.samples, |stream| Ok(run(stream)?))?)
    };
    let out = out.download(stream)?;
    let out_pixels = plan.shape().out_size().iter().product();
    let got = if is_last { channels_first(&out, channels, out_pixels) } else { out };
    let elements = plan.shape().input_len() + plan.shape().output_len();
    Ok(Record {
        op: "pool",
        case: layer.network.into(),
        mode: name(layer.mode),
        batch,
        channels,
        size,
        window,
        strides,
        padding,
        value: T::TYPE_NAME,
        layout: if is_last { "nhwc" } else { "nchw" },
        algorithm: plan.choice().entry.name.into(),
        chosen: true,
        time_us,
        model_us: model::times(&launches),
        error_over_bound: error(plan, layer, [maps, &got], how.checked)?,
        bytes: (elements * size_of::<T>()) as u64,
        peers: BTreeMap::new(),
        seed: how.seed,
        machine: MachineRecord::of(device),
    })
}

/// The largest error over its bound of the first images; huge where a result is wrong, with a word on stderr.
fn error<T: Number>(plan: &Pool<T>, layer: &Layer, [maps, got]: [&[T]; 2], checked: usize) -> Result<f64> {
    let shape = plan.shape();
    let images = shape.batch.min(checked);
    let of_images = |len: usize| len / shape.batch.max(1) * images;
    let (mode, input) = (oracle_mode(layer.mode), &maps[..of_images(maps.len())]);
    let reference = pool(&oracle_shape(*shape, images), mode, input)?;
    let report = reference.check(&got[..of_images(got.len())]);
    Ok(report.map(|report| report.worst_over_bound).unwrap_or_else(|wrong| {
        eprintln!("{}: {}: {wrong}", layer.network, plan.choice().entry.name);
        f64::MAX
    }))
}

/// A mode's name in records.
fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::AverageIncludePadding => "average_include_padding",
        Mode::AverageExcludePadding => "average_exclude_padding",
        _ => "max",
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    const HOW: How = How {
        batch: 2,
        layout: MapLayout::Nhwc,
        samples: 1,
        all_algorithms: true,
        peers: true,
        checked: 1,
        seed: 3,
    };
    const LAYER: Layer = Layer {
        network: "a test",
        mode: Mode::AverageExcludePadding,
        shape: Shape::new(8, [9, 7], [3, 3]).strides([2, 2]).padding([1, 1]),
    };

    #[test]
    fn every_kernel_of_a_layer_is_checked() {
        let records = measure::<bf16>(&Device::simulator(), &LAYER, HOW).unwrap();
        assert!(records.len() == 4 && records[0].chosen && !records[1].chosen);
        assert!(records.iter().all(|record| record.error_over_bound <= 1.0 && !record.model_us.is_empty()));
        assert_eq!(records[0].bytes, 2 * 2 * 8 * (9 * 7 + 5 * 4));
        assert_eq!((records[0].mode, records[0].layout), ("average_exclude_padding", "nhwc"));
    }

    #[test]
    fn a_wrong_result_is_seen() {
        let plan = Pool::<f32>::plan(&Device::simulator(), LAYER.shape, Options::default()).unwrap();
        let maps = vec![1.0; LAYER.shape.input_len()];
        let right = vec![1.0; LAYER.shape.output_len()];
        assert_eq!(error(&plan, &LAYER, [&maps, &right], 1).unwrap(), 0.0);
        assert_eq!(error(&plan, &LAYER, [&maps, &vec![2.0; right.len()]], 1).unwrap(), f64::MAX);
    }
}
