//! One layer on one device: checked, then timed or modelled.
use std::collections::BTreeMap;

use anyhow::Result;
use lacuna::conv::{Activation, Algorithm, MapLayout, Operands, Options};
use lacuna::{Conv, Device, Stream};
use lacuna_cases::Number;
use lacuna_cases::conv::{oracle_shape, precision};
use lacuna_cases::maps::{channels_first, channels_last};
use lacuna_cases::number::rounded;
use lacuna_reference::{ConvInputs, ConvReference, Precision, conv};
use lacuna_vendor::nvml::EnergyCounter;

use super::{Input, Record};
use crate::energy;
use crate::machine::MachineRecord;
use crate::model;
use crate::timing::time;

/// How layers are measured.
#[derive(Clone, Copy, Debug)]
pub struct How<'c> {
    /// How maps lie.
    pub layout: MapLayout,
    /// Samples of a timing.
    pub samples: u32,
    /// Whether every legal kernel is measured.
    pub all_algorithms: bool,
    /// Whether it is with other splits of the channels too: 1, 2, 4 and so on.
    pub all_splits: bool,
    /// Images that are checked at most.
    pub checked: usize,
    /// The seed of what was drawn.
    pub seed: u64,
    /// By what energy is counted, where it is.
    pub counter: Option<&'c EnergyCounter>,
}

/// Measures a layer with bias and ReLU: the library's choice first.
///
/// # Errors
/// What the library says. A wrong result is no error: the record tells it.
pub fn measure<T: Number>(device: &Device, input: &Input, how: How<'_>) -> Result<Vec<Record>> {
    let stream = device.stream()?;
    let options = Options::default().activation(Activation::Relu).layout(how.layout).zeros(input.zeros());
    let plan = |options| Conv::<T>::plan(device, input.shape, options);
    let chosen = plan(options)?;
    let mut algorithms = vec![chosen.choice().algorithm];
    if how.all_algorithms {
        let [legal, ..] = chosen.legal();
        let others = legal.iter().map(|choice| choice.algorithm);
        algorithms.extend(others.filter(|&algorithm| algorithm != chosen.choice().algorithm));
    }
    let mut plans = vec![chosen];
    for (i, algorithm) in algorithms.into_iter().enumerate() {
        let options = options.algorithm(algorithm);
        let usual = plan(options)?;
        let mut known = vec![usual.splits()];
        if i > 0 {
            plans.push(usual);
        }
        for splits in (0..6).map(|power| 1 << power).filter(|_| how.all_splits) {
            let other = plan(options.splits(splits))?;
            if !known.contains(&other.splits()) {
                known.push(other.splits());
                plans.push(other);
            }
        }
    }
    // cuDNN's results of 16 bits are rounded twice with a bias, which the oracle does not allow for.
    if how.all_algorithms && size_of::<T>() == 4 && !device.is_simulator() {
        match plan(options.algorithm(Algorithm::CuDnn)) {
            Ok(plan) => plans.push(plan),
            Err(error) => eprintln!("{}: {error}", input.name),
        }
    }
    let mut truth = Truth::new(input, how.checked);
    let mut records = Vec::new();
    for (i, plan) in plans.iter().enumerate() {
        let mut record = of_plan(device, &stream, plan, &mut truth, how)?;
        record.chosen = i == 0;
        records.push(record);
    }
    Ok(records)
}

fn of_plan<T: Number>(
    device: &Device,
    stream: &Stream,
    plan: &Conv<T>,
    truth: &mut Truth<'_, T>,
    how: How<'_>,
) -> Result<Record> {
    let input = truth.input;
    let shape = input.shape;
    let filters = plan.pack(stream, device.upload(&rounded::<T>(&input.weights))?.as_slice())?;
    let (pixels, out_pixels) = (shape.size[0] * shape.size[1], shape.out_size().iter().product::<usize>());
    let is_last = how.layout == MapLayout::Nhwc;
    let maps = rounded::<T>(&input.input);
    let maps = if is_last { channels_last(&maps, shape.channels, pixels) } else { maps };
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
    let energy_mj = time_us.and_then(|time| {
        energy::of_call(&input.name, stream, how.counter, time.median, |stream| Ok(run(stream)?))
    });
    let out = out.download(stream)?;
    let got = if is_last { channels_first(&out, shape.filters, out_pixels) } else { out };
    let arithmetic = precision::<T>(plan.choice().algorithm);
    let error_over_bound = truth.check(arithmetic, &got)?.unwrap_or_else(|wrong| {
        eprintln!("{}: {}: {wrong}", input.name, plan.choice().entry.name);
        f64::MAX
    });
    Ok(Record {
        op: Record::op(),
        case: input.name.clone(),
        batch: shape.batch,
        channels: shape.channels,
        size: shape.size,
        filters: shape.filters,
        level: input.level,
        zeros: input.zeros(),
        sparsity: None,
        value: T::TYPE_NAME.into(),
        layout: if is_last { "nhwc" } else { "nchw" }.into(),
        algorithm: algorithm_of(plan),
        splits: plan.splits(),
        chosen: true,
        time_us,
        energy_mj,
        model_us: model::times(&launches),
        error_over_bound,
        products: (shape.batch * out_pixels * shape.filters_len()) as u64,
        peers: BTreeMap::new(),
        seed: how.seed,
        machine: MachineRecord::of(device),
    })
}

/// The kernel's name, or cuDNN and its algorithm.
fn algorithm_of<T: Number>(plan: &Conv<T>) -> String {
    plan.cudnn_algorithm().map_or(plan.choice().entry.name.into(), |name| format!("cudnn {name}"))
}

/// What results of a layer are checked against: that of the first images, worked out once for each arithmetic.
struct Truth<'i, T> {
    input: &'i Input,
    images: usize,
    known: Vec<(Precision, ConvReference<T>)>,
}

impl<'i, T: Number> Truth<'i, T> {
    fn new(input: &'i Input, images: usize) -> Self {
        Self { input, images: input.shape.batch.min(images), known: Vec::new() }
    }

    /// What so many numbers of all images are for those that are checked.
    fn of(&self, len: usize) -> usize {
        len / self.input.shape.batch.max(1) * self.images
    }

    /// The largest error over its bound, or what is wrong.
    fn check(&mut self, precision: Precision, got: &[T]) -> Result<Result<f64, String>> {
        let at = match self.known.iter().position(|(known, _)| *known == precision) {
            Some(at) => at,
            None => {
                self.known.push((precision, self.reference(precision)?));
                self.known.len() - 1
            }
        };
        let checked = self.known[at].1.check(&got[..self.of(got.len())]);
        Ok(checked.map(|report| report.worst_over_bound).map_err(|mismatch| mismatch.to_string()))
    }

    fn reference(&self, precision: Precision) -> Result<ConvReference<T>> {
        let [maps, weights, bias] =
            [&self.input.input, &self.input.weights, &self.input.bias].map(|numbers| rounded::<T>(numbers));
        Ok(conv(&ConvInputs {
            shape: oracle_shape(self.input.shape, self.images),
            input: &maps[..self.of(maps.len())],
            weights: &weights,
            bias: Some(&bias),
            residual: None,
            precision,
            lo: 0.0,
            hi: f32::INFINITY,
        })?)
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::super::{Layer, drawn};
    use super::*;

    fn every_kernel_is_checked<T: Number>(layout: MapLayout) {
        let layer = Layer { network: "a test", sizes: [8, 9, 5], taps: 3, stride: 1, depthwise: false };
        let how = How {
            layout,
            samples: 1,
            all_algorithms: true,
            all_splits: true,
            checked: 2,
            seed: 3,
            counter: None,
        };
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
        let layer = Layer { network: "a test", sizes: [2, 3, 2], taps: 3, stride: 1, depthwise: false };
        let input = drawn(&layer, 1, 0.0, 1);
        let wrong = vec![-1.0; input.shape.output_len()];
        assert!(Truth::<f32>::new(&input, 1).check(Precision::SplitBf16, &wrong).unwrap().is_err());
    }
}
