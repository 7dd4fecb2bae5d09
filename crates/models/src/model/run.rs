//! Planning and running.
use std::collections::BTreeSet;

use lacuna::{Buffer, Device, Graph, Slice, SliceMut, Stream, Value};

use super::gaps;
use super::inputs::{Around, Inputs};
use super::steps::{About, Planning, Shared, Step};
use super::{LayerReport, ModelError, Options, Report};
use crate::memory::{Home, Memory, Place};
use crate::network::{Layer, Network, ValueId};
use crate::weights::Weights;

/// A network with weights on a device: a plan a layer, filters packed, and memory for intermediate values.
///
/// Values are `f32`, or `half::f16` or `half::bf16` with sums in `f32`: weights are rounded to the type when the model is planned, and each layer's
/// result once. Maps are NCHW or NHWC as the [options](Options) say, input and result too. Of a network with several inputs the input is all of them, one
/// after another ([`Network::inputs`]). A run allocates nothing and does not wait for the host. Runs
/// share the model's memory: they belong on one stream at a time.
///
/// ```
/// use lacuna::Device;
/// use lacuna_models::model::{Model, Options};
/// use lacuna_models::network::{Linear, Network, Shape};
/// use lacuna_models::weights::{Tensor, Weights};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut builder = Network::builder(Shape::matrix(1, 2));
/// let out = builder.layer("fc", Linear::new(1), &[builder.input()])?;
/// let network = builder.finish(out)?;
/// let mut weights = Weights::new();
/// weights.insert("fc.weight", Tensor::new(vec![1, 2], vec![1.0, -2.0])?);
/// weights.insert("fc.bias", Tensor::new(vec![1], vec![0.5])?);
///
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let mut model = Model::plan(&stream, &network, &weights, &Options::default())?;
/// let input = device.upload(&[3.0_f32, 1.0])?;
/// let mut output = device.zeros::<f32>(1)?;
/// model.run(&stream, input.as_slice(), output.as_slice_mut())?;
/// assert_eq!(output.download(&stream)?, [1.5]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Model<T: Value = f32> {
    network: Network,
    memory: Memory,
    steps: Vec<Planned<T>>,
    arena: Buffer<T>,
}

/// A layer that was planned, and where its values lie.
#[derive(Debug)]
struct Planned<T: Value> {
    step: Box<dyn Step<T>>,
    /// Those of its inputs, and that of its result.
    places: Vec<Place>,
    out: Place,
    zero_weights: Option<f64>,
}

impl<T: Value> Model<T> {
    /// Plans a network: folds batch norms, chooses a kernel for each layer, and brings weights to the stream's device.
    ///
    /// # Errors
    /// [`ModelError::Weights`] for tensors that are not there or do not fit; [`ModelError::Range`] for weights that are beyond the largest
    /// number of `T`; [`ModelError::UnknownLayer`] and [`ModelError::NotSparse`]
    /// for options that the network cannot have; [`ModelError::Layer`] for what the library refuses, an algorithm that cannot
    /// do a layer's shape, or cuDNN that is not there; what the device says where there is no room.
    pub fn plan(
        stream: &Stream,
        network: &Network,
        weights: &Weights,
        options: &Options,
    ) -> Result<Self, ModelError> {
        let names: BTreeSet<&str> = network.layers().iter().map(|layer| layer.name.as_str()).collect();
        if let Some(layer) = options.by_name.keys().find(|name| !names.contains(name.as_str())) {
            return Err(ModelError::UnknownLayer { layer: layer.clone() });
        }
        let device = stream.device();
        let strides = gaps::plane_strides(network, weights, options, size_of::<T>());
        let memory = Memory::plan_apart(network, options.layout, size_of::<T>(), &strides);
        let shared = Shared::default();
        let planning = Planning { device, stream, network, memory: &memory, weights, options, shared };
        let plan = |layer: &Layer| {
            let (step, zero_weights) = planning.step(layer)?;
            let out = memory.place(layer.output);
            let places = layer.inputs.iter().map(|&value| memory.place(value)).chain([out]).collect();
            Ok(Planned { step, places, out, zero_weights })
        };
        let steps = network.layers().iter().map(plan).collect::<Result<_, ModelError>>()?;
        // Gaps between planes are read, and make nothing but gaps: zeros, so that none is infinite after many runs.
        let arena = device.zeros(memory.peak())?;
        Ok(Self { network: network.clone(), memory, steps, arena })
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Where its values lie.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        self.arena.device()
    }

    /// Gives the work to the stream, and returns at once. It can be recorded in a graph.
    ///
    /// # Errors
    /// [`ModelError::Length`] for an input or an output of another length than the network's; [`ModelError::Layer`] with what the library says of a
    /// layer: a launch that failed, or the simulator's findings.
    pub fn run(
        &mut self,
        stream: &Stream,
        input: Slice<'_, T>,
        output: SliceMut<'_, T>,
    ) -> Result<(), ModelError> {
        self.run_with(stream, input, output, |_, _| Ok(()))
    }

    /// As [`run`](Self::run), and shows each layer's inputs and result, downloaded: to find the layer that goes wrong. It waits for the host at each layer.
    ///
    /// # Errors
    /// As `run`, and what a download says.
    pub fn inspect(
        &mut self,
        stream: &Stream,
        input: Slice<'_, T>,
        output: SliceMut<'_, T>,
        mut show: impl FnMut(&Layer, &[Vec<T>], &[T]),
    ) -> Result<(), ModelError> {
        let (layers, shapes) = (self.network.layers().to_vec(), self.network.shapes().to_vec());
        self.run_with(stream, input, output, |step, values| {
            let layer = &layers[step];
            let value = |number: usize, value: ValueId| {
                let elements = values.at(number)?.download(stream)?;
                Ok(values.places[number].packed(&shapes[value.index()], elements))
            };
            let inputs = layer.inputs.iter().enumerate().map(|(number, &input)| value(number, input));
            let inputs = inputs.collect::<lacuna::Result<Vec<_>>>()?;
            show(layer, &inputs, &value(layer.inputs.len(), layer.output)?);
            Ok(())
        })
    }

    /// Records a run as one graph, after one run without recording, which loads the kernels. Whoever replays it promises that the model, input and
    /// output are alive, and that nothing else uses them meanwhile: see [`Graph::replay`].
    ///
    /// # Errors
    /// As [`run`](Self::run); `Unsupported` of [`lacuna::Error`] on the simulator, which has no graphs.
    pub fn capture(
        &mut self,
        stream: &Stream,
        input: Slice<'_, T>,
        mut output: SliceMut<'_, T>,
    ) -> Result<Graph, ModelError> {
        self.run(stream, input, output.reborrow())?;
        stream.synchronize()?;
        stream.capture(|stream| self.run(stream, input, output))
    }

    /// Gives one layer's work to the stream, by its number: to time layers by themselves. Each must find what it reads, so layers run in their
    /// order, from the first on. One may run many times before the next: it does not overwrite what it reads. Layers after it may.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`ModelError::NoLayer`] for a number that no layer has.
    pub fn run_layer(
        &mut self,
        stream: &Stream,
        number: usize,
        input: Slice<'_, T>,
        output: SliceMut<'_, T>,
    ) -> Result<(), ModelError> {
        self.expect_lengths(input, output.as_slice())?;
        let layers = self.steps.len();
        let (Some(planned), Some(layer)) = (self.steps.get(number), self.network.layers().get(number)) else {
            return Err(ModelError::NoLayer { number, layers });
        };
        let run = planned.run(stream, input, self.arena.as_slice_mut(), output);
        run.map_err(|error| ModelError::of_layer(layer, error))
    }

    fn expect_lengths(&self, input: Slice<'_, T>, output: Slice<'_, T>) -> Result<(), ModelError> {
        let expect = |what, expected: usize, got: usize| {
            if expected == got { Ok(()) } else { Err(ModelError::Length { what, expected, got }) }
        };
        expect("input", self.network.input_len(), input.len())?;
        expect("output", self.network.output_shape().elements(), output.len())
    }

    /// Runs, and calls `after` after each layer, with its number and its inputs; its result is one more of them.
    fn run_with(
        &mut self,
        stream: &Stream,
        input: Slice<'_, T>,
        mut output: SliceMut<'_, T>,
        mut after: impl FnMut(usize, &Inputs<'_, T>) -> lacuna::Result<()>,
    ) -> Result<(), ModelError> {
        self.expect_lengths(input, output.as_slice())?;
        let network = &self.network;
        let mut arena = self.arena.as_slice_mut();
        for (number, (planned, layer)) in self.steps.iter().zip(network.layers()).enumerate() {
            let mut run = || {
                planned.run(stream, input, arena.reborrow(), output.reborrow())?;
                let output = Around::whole(output.reborrow())?;
                let arena = Around::whole(arena.reborrow())?;
                after(number, &Inputs { input, output: &output, arena: &arena, places: &planned.places })
            };
            run().map_err(|error| ModelError::of_layer(layer, error))?;
        }
        Ok(())
    }

    /// What layers are and cost.
    pub fn report(&self) -> Report {
        let layer = |(layer, planned): (&Layer, &Planned<T>)| {
            let About { kernel, splits, weight_bytes, workspace_bytes } = planned.step.about();
            let values = layer.inputs.iter().chain([&layer.output]);
            let elements = values.map(|&value| self.network.shape(value).elements()).sum::<usize>();
            let maps = if kernel == "none" { 0 } else { elements * size_of::<T>() };
            LayerReport {
                name: layer.name.clone(),
                kernel,
                splits,
                bytes: maps + weight_bytes,
                products: self.network.products(layer),
                zero_weights: planned.zero_weights,
                weight_bytes,
                workspace_bytes,
            }
        };
        let layers: Vec<LayerReport> = self.network.layers().iter().zip(&self.steps).map(layer).collect();
        Report {
            peak_bytes: self.memory.peak() * size_of::<T>(),
            sum_bytes: self.memory.sum() * size_of::<T>(),
            weight_bytes: layers.iter().map(|layer| layer.weight_bytes).sum(),
            workspace_bytes: layers.iter().map(|layer| layer.workspace_bytes).sum(),
            layers,
        }
    }
}

impl<T: Value> Planned<T> {
    fn inputs(&self) -> &[Place] {
        &self.places[..self.places.len() - 1]
    }

    /// Runs the layer on its places.
    fn run(
        &self,
        stream: &Stream,
        input: Slice<'_, T>,
        arena: SliceMut<'_, T>,
        output: SliceMut<'_, T>,
    ) -> lacuna::Result<()> {
        let (arena, output, out) = match self.out.home {
            Home::Output => {
                let (output, out) = Around::split(output, self.out.range())?;
                (Around::whole(arena)?, output, out)
            }
            _ => {
                let (arena, out) = Around::split(arena, self.out.range())?;
                (arena, Around::whole(output)?, out)
            }
        };
        let inputs = Inputs { input, output: &output, arena: &arena, places: self.inputs() };
        self.step.run(stream, &inputs, out)
    }
}
