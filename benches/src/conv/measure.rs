//! One layer on one device: checked, then timed or modelled.
use std::collections::BTreeMap;

use anyhow::Result;
use lacuna::conv::{Activation, Algorithm, MapLayout, Operands, Options};
use lacuna::{Conv, Device, Stream};
use lacuna_cases::Number;
use lacuna_cases::number::rounded;
use lacuna_reference::{ConvInputs, ConvShape, Precision, conv};

use super::{Input, Record};
use crate::machine::MachineRecord;
use crate::model;
use crate::timing::time;

/// How layers are measured.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// How maps lie.
    pub layout: MapLayout,
    /// Samples of a timing.
    pub samples: u32,
    /// Whether every legal kernel is measured.
    pub all_algorithms: bool,
    /// Images that are checked at most.
    pub checked: usize,
    /// The seed of what was drawn.
    pub seed: u64,
}

/// Measures a layer with bias and ReLU: the library's choice first.
///
/// # Errors
/// What the library says. A wrong result is no error: the record tells it.
pub fn measure<T: Number>(device: &Device, input: &Input, how: How) -> Result<Vec<Record>> {
    let stream = device.stream()?;
    let options = Options::default().activation(Activation::Relu).layout(how.layout).zeros(input.zeros());
    let plan = |algorithm| Conv::<T>::plan(device, input.shape, options.algorithm(algorithm));
    let chosen = plan(Algorithm::Auto)?;
    let mut plans = Vec::new();
    if how.all_algorithms {
        let others = chosen.legal()[0]
            .clone()
            .into_iter()
            .filter(|choice| choice.algorithm != chosen.choice().algorithm);
        plans = others.map(|choice| plan(choice.algorithm)).collect::<lacuna::Result<Vec<_>>>()?;
    }
    plans.insert(0, chosen);
    let mut records = Vec::new();
    for (i, plan) in plans.iter().enumerate() {
        let mut record = of_plan(device, &stream, plan, input, how)?;
        record.chosen = i == 0;
        records.push(record);
    }
    Ok(records)
}

fn of_plan<T: Number>(
    device: &Device,
    stream: &Stream,
    plan: &Conv<T>,
    input: &Input,
    how: How,
) -> Result<Record> {
    let shape = input.shape;
    let filters = plan.pack(stream, device.upload(&rounded::<T>(&input.weights))?.as_slice())?;
    let (pixels, out_pixels) = (shape.size[0] * shape.size[1], shape.out_size().iter().product::<usize>());
    let is_last = how.layout == MapLayout::Nhwc;
    let maps = rounded::<T>(&input.input);
    let maps = if is_last { reordered(&maps, shape.channels, pixels) } else { maps };
    let (x, bias) = (device.upload(&maps)?, device.upload(&rounded::<T>(&input.bias))?);
    let mut out = device.upload(&vec![T::POISON; shape.output_len()])?;
    let mut run = |stream: &Stream| {
        let bias = Some(bias.as_slice());
        plan.run(stream, Operands { bias, ..Operands::new(x.as_slice(), &filters, out.as_slice_mut()) })
    };
    let (_, launches) = device.record(|| run(stream))?;
    let time_us = if device.is_simulator() {
        None
    } else {
        Some(time(stream, how.samples, |stream| Ok(run(stream)?))?)
    };
    let out = out.download(stream)?;
    let got = if is_last { reordered(&out, out_pixels, shape.filters) } else { out };
    let precision = lacuna_cases::conv::precision::<T>(plan.choice().algorithm);
    let error_over_bound = check(input, precision, &got, how.checked)?.unwrap_or_else(|wrong| {
        eprintln!("{}: {}: {wrong}", input.name, plan.choice().entry.name);
        f64::MAX
    });
    Ok(Record {
        op: "conv",
        case: input.name.clone(),
        batch: shape.batch,
        channels: shape.channels,
        size: shape.size,
        filters: shape.filters,
        level: input.level,
        zeros: input.zeros(),
        value: T::TYPE_NAME,
        layout: if is_last { "nhwc" } else { "nchw" },
        algorithm: plan.choice().entry.name.into(),
        splits: plan.splits(),
        chosen: true,
        time_us,
        model_us: model::times(&launches),
        error_over_bound,
        products: (shape.batch * out_pixels * shape.filters_len()) as u64,
        peers: BTreeMap::new(),
        seed: how.seed,
        machine: MachineRecord::of(device),
    })
}

/// The largest error over its bound of the first images, or what is wrong.
fn check<T: Number>(
    input: &Input,
    precision: Precision,
    got: &[T],
    images: usize,
) -> Result<Result<f64, String>> {
    let shape = input.shape;
    let batch = shape.batch.min(images);
    let checked = ConvShape {
        batch,
        channels: shape.channels,
        size: shape.size,
        filters: shape.filters,
        taps: shape.taps,
        strides: shape.strides,
        padding: shape.padding,
        groups: shape.groups,
    };
    let of = |len: usize| len / shape.batch.max(1) * batch;
    let (maps, weights, bias) =
        (rounded::<T>(&input.input), rounded::<T>(&input.weights), rounded::<T>(&input.bias));
    let inputs = ConvInputs {
        shape: checked,
        input: &maps[..of(maps.len())],
        weights: &weights,
        bias: Some(&bias),
        residual: None,
        precision,
        lo: 0.0,
        hi: f32::INFINITY,
    };
    let checked = conv(&inputs)?.check(&got[..of(got.len())]);
    Ok(checked.map(|report| report.worst_over_bound).map_err(|mismatch| mismatch.to_string()))
}

/// Maps with rows and columns of each image exchanged.
pub(super) fn reordered<T: Copy>(maps: &[T], rows: usize, columns: usize) -> Vec<T> {
    let image = |image: &[T]| {
        (0..rows * columns).map(|at| image[at % rows * columns + at / rows]).collect::<Vec<_>>()
    };
    maps.chunks_exact((rows * columns).max(1)).flat_map(image).collect()
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::super::{Layer, drawn};
    use super::*;

    fn every_kernel_is_checked<T: Number>(layout: MapLayout) {
        let layer = Layer { network: "a test", sizes: [8, 9, 5], stride: 1, depthwise: false };
        let how = How { layout, samples: 1, all_algorithms: true, checked: 2, seed: 3 };
        let input = drawn(&layer, 2, 0.6, how.seed);
        assert!((input.zeros() - 0.6).abs() < 0.1, "{}", input.zeros());
        let records = measure::<T>(&Device::simulator(), &input, how).unwrap();
        assert!(records.len() > 3 && records[0].chosen && !records[1].chosen);
        assert!(records.iter().all(|record| record.error_over_bound <= 1.0 && !record.model_us.is_empty()));
        assert!(records.iter().all(|record| record.value == T::TYPE_NAME));
    }

    #[test]
    fn every_kernel_of_a_layer_is_checked() {
        every_kernel_is_checked::<f32>(MapLayout::Nchw);
        every_kernel_is_checked::<f32>(MapLayout::Nhwc);
        every_kernel_is_checked::<f16>(MapLayout::Nhwc);
    }

    #[test]
    fn a_wrong_result_is_seen() {
        let layer = Layer { network: "a test", sizes: [2, 3, 2], stride: 1, depthwise: false };
        let input = drawn(&layer, 1, 0.0, 1);
        let wrong = vec![-1.0; input.shape.output_len()];
        assert!(check(&input, Precision::SplitBf16, &wrong, 1).unwrap().is_err());
    }
}
