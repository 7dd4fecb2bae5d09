//! A network on a device, with its input and its result.
use std::collections::BTreeMap;

use anyhow::Result;
use lacuna::conv::MapLayout;
use lacuna::{Buffer, Stream};
use lacuna_cases::Number;
use lacuna_cases::maps::{channels_first, channels_last};
use lacuna_cases::number::rounded;
use lacuna_models::model::{Model, ModelError, Options};
use lacuna_models::network::{Layer, Network, Shape};
use lacuna_models::oracle::{self, OracleError};
use lacuna_models::weights::Weights;

use super::How;
use super::record::Cost;
use crate::timing::{Timing, time};
use crate::{energy, model};

/// A network with weights on a device.
pub(super) struct Planned<'s, T: Number> {
    pub(super) model: Model<T>,
    stream: &'s Stream,
    layout: MapLayout,
    input: Buffer<T>,
    output: Buffer<T>,
}

/// A time, or a model of it.
pub(super) struct Timed {
    pub(super) time_us: Option<Timing>,
    pub(super) model_us: BTreeMap<String, f64>,
    pub(super) energy_mj: Option<f64>,
}

/// What the layers of a right network came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checked {
    pub(super) layers: usize,
    /// The largest error over its bound; huge for a wrong result.
    pub(super) error_over_bound: f64,
}

impl<'s, T: Number> Planned<'s, T> {
    /// Plans a network for this input, NCHW, which is rounded to its type of values.
    pub(super) fn new(
        stream: &'s Stream,
        network: &Network,
        weights: &Weights,
        options: &Options,
        input: &[f32],
    ) -> Result<Self, ModelError> {
        let model = Model::plan(stream, network, weights, options)?;
        let device = stream.device();
        let mut input = rounded::<T>(input);
        if options.layout == MapLayout::Nhwc {
            // Each input by itself: they lie one after another.
            let mut from = 0;
            for shape in network.inputs().iter().map(|&value| network.shape(value)) {
                let own = &mut input[from..from + shape.elements()];
                own.copy_from_slice(&channels_last(own, shape.channels, shape.pixels()));
                from += shape.elements();
            }
        }
        let input = device.upload(&input)?;
        let output = device.upload(&vec![T::POISON; network.output_shape().elements()])?;
        Ok(Self { model, stream, layout: options.layout, input, output })
    }

    /// Gives a forward pass to the stream.
    pub(super) fn run(&mut self, stream: &Stream) -> Result<(), ModelError> {
        self.model.run(stream, self.input.as_slice(), self.output.as_slice_mut())
    }

    /// Gives one layer to the stream.
    pub(super) fn run_layer(&mut self, stream: &Stream, layer: usize) -> Result<(), ModelError> {
        self.model.run_layer(stream, layer, self.input.as_slice(), self.output.as_slice_mut())
    }

    /// The scores of a pass.
    pub(super) fn scores(&mut self) -> Result<Vec<f32>, ModelError> {
        self.run(self.stream)?;
        Ok(self.output.download(self.stream)?.into_iter().map(Number::wide).collect())
    }

    /// Checks each layer by itself against `f64`.
    pub(super) fn check(&mut self, weights: &Weights, options: &Options) -> Result<Checked> {
        let network = self.model.network().clone();
        let layout = self.layout;
        let lies = |values: &[T], shape: Shape| match layout {
            MapLayout::Nhwc => channels_first(values, shape.channels, shape.pixels()),
            _ => values.to_vec(),
        };
        let mut checked = Checked { layers: 0, error_over_bound: 0.0 };
        let mut failed: Option<OracleError> = None;
        let show = |layer: &Layer, inputs: &[Vec<T>], got: &[T]| {
            let shapes = network.input_shapes(layer);
            let inputs: Vec<Vec<T>> =
                inputs.iter().zip(shapes).map(|(values, shape)| lies(values, shape)).collect();
            let got = lies(got, network.shape(layer.output));
            checked.layers += 1;
            match oracle::check_layer(&network, layer, weights, options, &inputs, &got) {
                Ok(check) => {
                    checked.error_over_bound = checked.error_over_bound.max(check.worst_over_bound);
                }
                Err(wrong @ OracleError::Wrong { .. }) => {
                    eprintln!("lacuna-bench: {wrong}");
                    checked.error_over_bound = f64::MAX;
                }
                Err(error) => failed = Some(error),
            }
        };
        self.model.inspect(self.stream, self.input.as_slice(), self.output.as_slice_mut(), show)?;
        failed.map_or(Ok(checked), |error| Err(error.into()))
    }

    /// The part of each layer's result that is zero.
    pub(super) fn zeros(&mut self) -> Result<Vec<f64>, ModelError> {
        let mut zeros = Vec::new();
        let show = |_: &Layer, _: &[Vec<T>], got: &[T]| {
            let count = got.iter().filter(|value| value.wide() == 0.0).count();
            zeros.push(count as f64 / got.len().max(1) as f64);
        };
        self.model.inspect(self.stream, self.input.as_slice(), self.output.as_slice_mut(), show)?;
        Ok(zeros)
    }

    /// Times a part of it, which ran before: kernels are loaded.
    pub(super) fn time(
        &mut self,
        name: &str,
        how: How<'_>,
        mut part: impl FnMut(&mut Self, &Stream) -> Result<(), ModelError>,
    ) -> Result<Timed> {
        let stream = self.stream;
        if stream.device().is_simulator() {
            let model_us = self.modelled(|it| part(it, stream))?;
            return Ok(Timed { time_us: None, model_us, energy_mj: None });
        }
        let timing = time(stream, how.samples, |stream| Ok(part(self, stream)?))?;
        let energy_mj =
            energy::of_call(name, stream, how.counter, timing.median, |stream| Ok(part(self, stream)?));
        Ok(Timed { time_us: Some(timing), model_us: BTreeMap::new(), energy_mj })
    }

    /// What the simulator's counts come to.
    fn modelled(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<(), ModelError>,
    ) -> Result<BTreeMap<String, f64>> {
        let (ran, launches) = self.stream.device().record(|| Ok(part(self)))?;
        ran?;
        Ok(model::times(&launches))
    }

    /// What a pass costs.
    pub(super) fn cost(&mut self, name: &str, how: How<'_>) -> Result<Cost> {
        let Timed { time_us, model_us, energy_mj } = self.time(name, how, Self::run)?;
        let report = self.model.report();
        Ok(Cost {
            time_us,
            model_us,
            energy_mj,
            peak_bytes: report.peak_bytes,
            sum_bytes: report.sum_bytes,
            weight_bytes: report.weight_bytes,
            workspace_bytes: report.workspace_bytes,
        })
    }
}
