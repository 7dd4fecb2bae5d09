//! Networks: packed on the host, and on a device.
use std::sync::Arc;

use lacuna_kernels::Entry;
use lacuna_kernels::spdnn::{TILE_ROWS, Tile};
use rayon::prelude::*;

use super::fused::Table;
use super::packed::Arrays;
use super::prepared::Prepared;
use super::weights::{Weights, words};
use super::{Choice, DeviceFeatures, Features, Inference, Layer, OPERATION, Options, Workspace, prune};
use crate::{Device, DeviceInfo, Error, Result, Slice, Stream};

/// A network on the host, as the kernels read it: for each layer the kernel is chosen, and the weights are in its order. Making it is
/// the long part, and runs on all cores.
#[derive(Clone, Debug)]
pub struct PackedNetwork {
    pub(super) layers: Arc<Layers>,
    /// A piece a layer.
    pub(super) arrays: Vec<Arrays>,
}

/// What is known of a network beside its weights.
#[derive(Debug)]
pub(super) struct Layers {
    pub(super) layers: Vec<Prepared>,
    /// For each layer, whether the rows that are alive are listed after it.
    pub(super) lists: Vec<bool>,
    /// Whether features lie in tiles.
    pub(super) tiled: bool,
    pub(super) options: Options,
}

/// What became of a layer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The kernel.
    pub choice: Choice,
    /// Weights.
    pub edges: usize,
    /// Weights as stored, with padding.
    pub stored: usize,
    /// Whether samples that have become all zero are left out after it.
    pub prunes: bool,
}

impl PackedNetwork {
    /// Packs the layers for a device and about `rows` samples at once, which decides what kernels suit.
    ///
    /// # Errors
    /// As [`from_fn`](Self::from_fn).
    pub fn new(device: &Device, layers: &[Layer], rows: usize, options: Options) -> Result<Self> {
        let pack = |layer: usize| pack(&layers[layer], device.info(), layer, rows, options);
        Self::of((0..layers.len()).into_par_iter().map(pack).collect::<Result<_>>()?, options)
    }

    /// As [`new`](Self::new), of layers that are made one by one, so that few are there at a time; on all cores, in any order.
    ///
    /// # Errors
    /// Those of `layer`; [`Error::Parameter`] where there is no layer, or where one has not as many inputs as the layer before has
    /// outputs; [`Error::Illegal`] for an algorithm that cannot do a layer.
    pub fn from_fn<E: From<Error> + Send>(
        device: &Device,
        layers: usize,
        rows: usize,
        options: Options,
        layer: impl Fn(usize) -> std::result::Result<Layer, E> + Sync,
    ) -> std::result::Result<Self, E> {
        let pack = |at: usize| Ok::<_, E>(pack(&layer(at)?, device.info(), at, rows, options)?);
        Ok(Self::of((0..layers).into_par_iter().map(pack).collect::<std::result::Result<_, E>>()?, options)?)
    }

    fn of(packed: Vec<(Prepared, Arrays)>, options: Options) -> Result<Self> {
        let (layers, arrays): (Vec<Prepared>, Vec<Arrays>) = packed.into_iter().unzip();
        Ok(Self { layers: Arc::new(Layers::new(layers, options)?), arrays })
    }

    /// Bytes that the weights take, with all that belongs to them.
    pub fn bytes(&self) -> usize {
        4 * words(&self.arrays)
    }

    /// What became of each layer.
    pub fn report(&self) -> Vec<Report> {
        self.layers.report()
    }
}

fn pack(
    layer: &Layer,
    info: &DeviceInfo,
    at: usize,
    rows: usize,
    options: Options,
) -> Result<(Prepared, Arrays)> {
    let is_listed = options.prune && at <= PRUNED;
    Prepared::new(layer, options, info, rows_at(at, rows, options), is_listed)
}

/// How many samples a kernel is chosen for: of those that there are at first, few are left in later layers.
fn rows_at(layer: usize, rows: usize, options: Options) -> usize {
    if options.prune { rows >> layer.min(PRUNED) } else { rows }
}

/// Samples that are expected in deep layers are 2 to the minus this of all.
const PRUNED: usize = 5;

/// A network on a device.
///
/// ```
/// use lacuna::matrix::Csr;
/// use lacuna::spdnn::{Activation, Bias, Features, Layer, Options};
/// use lacuna::{Device, SparseNetwork};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Two inputs, two outputs: y0 = relu(x0 + x1 - 1.5), y1 = relu(2·x1 - 1.5).
/// let weights = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 1.0, 2.0])?;
/// let layer = Layer::new(weights, Bias::Scalar(-1.5), Activation::Relu)?;
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let network = SparseNetwork::new(&device, &[layer], 3, Options::default())?;
/// let samples = Features::dense(3, 2, vec![1.0, 0.0, /* */ 1.0, 1.0, /* */ 0.0, 1.0])?;
/// let inference = network.infer(&stream, &samples)?;
/// assert_eq!(inference.categories(), [1, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SparseNetwork {
    device: Device,
    layers: Arc<Layers>,
    weights: Weights,
    /// Where layers are fused.
    fused: Option<Table>,
}

impl SparseNetwork {
    /// Puts a network on a device, for about `rows` samples at once.
    ///
    /// # Errors
    /// As [`PackedNetwork::new`] and [`from_packed`](Self::from_packed).
    pub fn new(device: &Device, layers: &[Layer], rows: usize, options: Options) -> Result<Self> {
        Self::from_packed(device, &PackedNetwork::new(device, layers, rows, options)?)
    }

    /// Puts a packed network on a device.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where it was packed for another device, and this one cannot run a kernel of it;
    /// [`Error::OutOfMemory`], or what the driver says.
    pub fn from_packed(device: &Device, packed: &PackedNetwork) -> Result<Self> {
        packed.layers.expect_run_on(device.info())?;
        Self::with(device, packed, Weights::resident(device, &packed.arrays)?)
    }

    /// A network whose weights stay on the host: they are sent while layers run, in parts of about `part_bytes` bytes, of which the
    /// device has two. A run takes them all anew, and cannot be recorded. For networks that are larger than the device's memory,
    /// and for those that run once.
    ///
    /// # Errors
    /// As [`from_packed`](Self::from_packed).
    pub fn streamed(device: &Device, packed: &PackedNetwork, part_bytes: usize) -> Result<Self> {
        packed.layers.expect_run_on(device.info())?;
        Self::with(device, packed, Weights::streamed(device, &packed.arrays, part_bytes)?)
    }

    fn with(device: &Device, packed: &PackedNetwork, weights: Weights) -> Result<Self> {
        let fused = Table::new(device, &packed.layers, &packed.arrays)?;
        Ok(Self { device: device.clone(), layers: Arc::clone(&packed.layers), weights, fused })
    }

    /// Uploads the weights of a packed network again, into the same memory: for measurements of what that takes. A streamed network
    /// does so in each run.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a packed network that this one was not made from; what the driver says.
    pub fn replace_weights(&mut self, packed: &PackedNetwork) -> Result<()> {
        let is_own = Arc::ptr_eq(&self.layers, &packed.layers);
        let (what, expected) = ("the packed network", || "the one that this was made from");
        Error::expect(is_own, OPERATION, what, expected, "another")?;
        self.weights.replace(&packed.arrays)
    }

    /// Bytes that the weights take of the device's memory.
    pub fn device_bytes(&self) -> usize {
        self.weights.device_bytes()
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }
    /// Inputs of the first layer.
    pub fn inputs(&self) -> usize {
        self.layers.layers[0].inputs
    }
    /// Outputs of the last layer.
    pub fn outputs(&self) -> usize {
        self.layers.outputs()
    }
    /// The options that it was made with.
    pub fn options(&self) -> &Options {
        &self.layers.options
    }
    /// What became of each layer.
    pub fn report(&self) -> Vec<Report> {
        self.layers.report()
    }

    /// Sends samples to the device.
    ///
    /// # Errors
    /// [`Error::Parameter`] where samples have not as many numbers as the network inputs; [`Error::TooLarge`] from 2³⁰ samples on;
    /// [`Error::OutOfMemory`], or what the driver says.
    pub fn upload(&self, stream: &Stream, features: &Features) -> Result<DeviceFeatures> {
        self.expect_inputs(features.inputs())?;
        self.device.expect_same(OPERATION, "the stream", stream.device())?;
        DeviceFeatures::upload(stream, features, self.layers.tiled)
    }

    /// Samples that are on the device, row by row: `rows` × [`inputs`](Self::inputs). They are copied.
    ///
    /// # Errors
    /// As [`upload`](Self::upload); [`Error::Length`] and [`Error::OtherDevice`] for samples that do not fit.
    pub fn arrange(&self, stream: &Stream, rows: usize, samples: Slice<'_, f32>) -> Result<DeviceFeatures> {
        self.device.expect_same(OPERATION, "the stream", stream.device())?;
        DeviceFeatures::of_device(stream, rows, self.inputs(), samples, self.layers.tiled)
    }

    /// Room for what is between the layers, for up to `rows` samples: two rows of features a sample, as wide as the widest layer.
    ///
    /// # Errors
    /// [`Error::TooLarge`] from 2³⁰ samples on; [`Error::OutOfMemory`], or what the driver says.
    pub fn workspace(&self, rows: usize) -> Result<Workspace> {
        Workspace::new(&self.device, &self.layers, rows)
    }

    /// Gives the inference of these samples to the stream, and returns at once. It can be recorded in a graph. The result is in the
    /// workspace.
    ///
    /// # Errors
    /// [`Error::Parameter`] for samples or a workspace that do not fit; [`Error::OtherDevice`]; [`Error::Launch`] or, on the
    /// simulator, its findings.
    pub fn run(&self, stream: &Stream, features: &DeviceFeatures, workspace: &mut Workspace) -> Result<()> {
        self.run_with(stream, features, workspace, || Ok(()))
    }

    /// As [`run`](Self::run), and waits: gives the microseconds that each layer took, with what follows it to leave samples out.
    /// Layers begin one after another here, so that their sum is more than a run's time. Layers of one launch take nothing, but for the
    /// first.
    ///
    /// # Errors
    /// As `run`.
    pub fn profile(
        &self,
        stream: &Stream,
        features: &DeviceFeatures,
        workspace: &mut Workspace,
    ) -> Result<Vec<f64>> {
        let mut events = vec![stream.event()?];
        self.run_with(stream, features, workspace, || {
            events.push(stream.event()?);
            Ok(())
        })?;
        stream.synchronize()?;
        events.windows(2).map(|pair| pair[1].microseconds_since(&pair[0])).collect()
    }

    fn run_with(
        &self,
        stream: &Stream,
        features: &DeviceFeatures,
        workspace: &mut Workspace,
        after: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        self.device.expect_same(OPERATION, "the stream", stream.device())?;
        self.device.expect_same(OPERATION, "the samples", features.device())?;
        self.expect_inputs(features.inputs)?;
        let layout = |tiled| if tiled { "tiles" } else { "rows" };
        let (own, got) = (self.layers.tiled, features.tiled);
        Error::expect(own == got, OPERATION, "the layout of the samples", || layout(own), layout(got))?;
        let feed = self.weights.begin()?;
        workspace.run(stream, &self.layers, feed, self.fused.as_ref(), features, after)
    }

    /// The categories of these samples: sends them, runs the network, and waits for the result. All takes new memory;
    /// [`upload`](Self::upload), [`workspace`](Self::workspace) and [`run`](Self::run) use it again.
    ///
    /// # Errors
    /// Those of these.
    pub fn infer(&self, stream: &Stream, features: &Features) -> Result<Inference> {
        let samples = self.upload(stream, features)?;
        let mut workspace = self.workspace(features.rows())?;
        self.run(stream, &samples, &mut workspace)?;
        workspace.inference(stream)
    }

    /// As [`infer`](Self::infer), `rows` samples at a time: the memory that it takes is theirs.
    ///
    /// # Errors
    /// As `infer`; [`Error::Parameter`] where `rows` is 0.
    pub fn infer_in_parts(&self, stream: &Stream, features: &Features, rows: usize) -> Result<Inference> {
        Error::expect(rows > 0, OPERATION, "the samples of a part", || "at least 1", rows)?;
        let all_rows = features.rows();
        let rows = rows.min(all_rows.max(1)).checked_next_multiple_of(TILE_ROWS as usize).unwrap_or(all_rows);
        let mut workspace = self.workspace(rows.min(all_rows))?;
        let mut all = Inference::default();
        // Where there are no samples, a part without any tells which layers list them.
        for first in (0..all_rows.max(1)).step_by(rows) {
            let part = features.part(first..(first + rows).min(all_rows))?;
            let samples = self.upload(stream, &part)?;
            self.run(stream, &samples, &mut workspace)?;
            all.append(first, workspace.inference(stream)?);
        }
        Ok(all)
    }

    /// Whether its kernels read features in tiles.
    pub(super) fn is_tiled(&self) -> bool {
        self.layers.tiled
    }

    fn expect_inputs(&self, got: usize) -> Result<()> {
        let expected = || format!("{}, the inputs of the network", self.inputs());
        Error::expect(got == self.inputs(), OPERATION, "the numbers of a sample", expected, got)
    }
}

impl Layers {
    /// Layers one after another, each with as many inputs as the one before has outputs.
    pub(super) fn new(layers: Vec<Prepared>, options: Options) -> Result<Self> {
        Error::expect(!layers.is_empty(), OPERATION, "the number of layers", || "at least 1", 0)?;
        for (before, pair) in layers.windows(2).enumerate() {
            let (outputs, inputs) = (pair[0].outputs, pair[1].inputs);
            let expected = || format!("{outputs}, the outputs of layer {before} before it");
            let what = "the number of inputs of a layer";
            Error::expect(inputs == outputs, OPERATION, what, expected, inputs)?;
        }
        let keeps_zero: Vec<bool> = layers.iter().map(|layer| layer.keeps_zero).collect();
        let is_fused = |layer: usize| layers[layer].is_fused();
        let lists = prune::schedule(options.prune, &keeps_zero, is_fused);
        Ok(Self { layers, lists, tiled: options.algorithm.is_tiled(), options })
    }

    /// An error unless the device can run all kernels: it may be another than the one the network was packed for.
    pub(super) fn expect_run_on(&self, info: &DeviceInfo) -> Result<()> {
        self.layers.iter().try_for_each(|layer| expect_runs_on(layer.choice.entry, info))
    }

    /// Whether what a layer reads is finite or NaN for certain.
    pub(super) fn is_bounded(&self, layer: usize) -> bool {
        let before = layer.checked_sub(1).map(|before| self.layers[before].limits);
        before.is_some_and(|limits| limits.lo.is_finite() && limits.hi.is_finite())
    }

    pub(super) fn outputs(&self) -> usize {
        self.layers[self.layers.len() - 1].outputs
    }

    fn report(&self) -> Vec<Report> {
        let last = self.layers.len() - 1;
        let report = |(at, layer): (usize, &Prepared)| Report {
            choice: layer.choice,
            edges: layer.edges,
            stored: layer.padded(),
            prunes: self.lists[at] && at != last,
        };
        self.layers.iter().enumerate().map(report).collect()
    }
}

/// An error unless the device can run the kernel.
pub(super) fn expect_runs_on(entry: &'static Entry<Tile>, info: &DeviceInfo) -> Result<()> {
    if entry.runs_on(info.sm) && entry.shared_bytes <= info.block_shared_bytes {
        return Ok(());
    }
    Err(Error::Unsupported {
        device: info.name.clone(),
        what: entry.name,
        instead: "pack the network for this device",
    })
}
