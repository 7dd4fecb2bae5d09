//! Planning a decoder, and running its steps.
use std::collections::BTreeSet;

use lacuna::topn::BeamState;
use lacuna::{Bags, BeamSearch, Buffer, Device, Graph, NHot, Slice, Stream, nhot};

use super::{Config, DecoderError, Part};
use crate::model::{Model, ModelError, Options};
use crate::network::Network;
use crate::weights::Weights;

/// A decoder on a device: plans for each part of a step, its weights, and the hypotheses of a batch of sentences.
///
/// Steps allocate nothing and do not wait for the host. They share the decoder's memory, and belong on one stream at a time.
///
/// ```
/// use lacuna::Device;
/// use lacuna_models::decoder::{Config, Decoder};
/// use lacuna_models::model::Options;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = Config { sentences: 2, beams: 3, vocabulary: 50, hidden: 8, inner: 16, ..Config::default() };
/// let weights = config.drawn(1)?;
/// let device = Device::simulator();
/// let stream = device.stream()?;
/// let mut decoder = Decoder::plan(&stream, &config, &weights, &Options::default())?;
/// let context = device.zeros::<f32>(2 * 8)?; // what an encoder made of each sentence
/// decoder.begin(&stream, context.as_slice())?;
/// for _ in 0..4 {
///     decoder.step(&stream)?;
/// }
/// let (words, parents) = (decoder.beams().tokens(), decoder.beams().parents());
/// assert_eq!((words.len(), parents.len()), (6, 6));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Decoder {
    pub(super) config: Config,
    /// The embedding of each word.
    pub(super) table: Buffer<f32>,
    pub(super) words: Lookup,
    pub(super) parents: Lookup,
    /// A row a hypothesis: the embedding of its last word, and then the state of its parent.
    pub(super) input: Buffer<f32>,
    pub(super) recurrent: Model,
    pub(super) state: Buffer<f32>,
    pub(super) feed_forward: Option<(Model, Buffer<f32>)>,
    pub(super) projection: Model,
    pub(super) logits: Buffer<f32>,
    pub(super) search: BeamSearch,
    /// Hypotheses before the first step.
    start: BeamState,
    pub(super) beams: BeamState,
}

/// Rows of a table, one a hypothesis, in every other piece of `hidden` elements of the recurrent layer's input.
#[derive(Debug)]
pub(super) struct Lookup {
    bags: Bags,
    pub(super) plan: NHot,
}

impl Lookup {
    fn plan(device: &Device, table_rows: usize, config: &Config) -> lacuna::Result<Self> {
        let hypotheses = config.hypotheses();
        let offsets: Vec<usize> = (0..=hypotheses).collect();
        // The indices come from the beams at each run.
        let bags = Bags::new(device, table_rows, &offsets, &vec![0; hypotheses])?;
        let options = nhot::Options::default().out_stride(2 * config.hidden);
        let plan = NHot::plan_with(&bags, config.hidden, options)?;
        Ok(Self { bags, plan })
    }
}

impl Decoder {
    /// Plans a decoder: chooses kernels, and brings weights to the stream's device. `options` are those of the layers `recurrent`,
    /// `up`, `down` and `projection`: whether their weights are dense or sparse, and how exactly they are multiplied.
    ///
    /// # Errors
    /// [`DecoderError::Network`] for sizes that mean nothing; [`DecoderError::Weights`] for an embedding that is not there or does not
    /// fit; [`DecoderError::Model`] as [`Model::plan`]; [`DecoderError::Library`] for a number of beams that cannot be, words that are not
    /// in the vocabulary, features that are not rows, and where there is no room.
    pub fn plan(
        stream: &Stream,
        config: &Config,
        weights: &Weights,
        options: &Options,
    ) -> Result<Self, DecoderError> {
        let device = stream.device();
        let networks = config.networks()?;
        config.check_features()?;
        let names: BTreeSet<&str> =
            networks.iter().flat_map(Network::layers).map(|layer| layer.name.as_str()).collect();
        if let Some(layer) = options.by_name.keys().find(|name| !names.contains(name.as_str())) {
            return Err(ModelError::UnknownLayer { layer: layer.clone() }.into());
        }
        let model = |network: &Network| Model::plan(stream, network, weights, &of_network(options, network));
        let search = BeamSearch::plan(device, config.sentences, config.beams, config.vocabulary, config.end)?;
        let (hypotheses, hidden) = (config.hypotheses(), config.hidden);
        let feed_forward = match config.feed_forward()? {
            Some(network) => Some((model(&network)?, device.zeros(hypotheses * hidden)?)),
            None => None,
        };
        Ok(Self {
            table: table(stream, config, weights)?,
            words: Lookup::plan(device, config.vocabulary, config)?,
            parents: Lookup::plan(device, hypotheses, config)?,
            input: device.zeros(2 * hypotheses * hidden)?,
            recurrent: model(&config.recurrent()?)?,
            state: device.zeros(hypotheses * hidden)?,
            feed_forward,
            projection: model(&config.projection()?)?,
            logits: device.zeros(hypotheses * config.vocabulary)?,
            start: search.start_with(config.first)?,
            beams: search.start_with(config.first)?,
            search,
            config: config.clone(),
        })
    }

    /// Begins a batch of sentences: one hypothesis each, which has the first word and a row of `context` as its state, sentences ×
    /// hidden. Gives the work to the stream, and returns at once.
    ///
    /// # Errors
    /// [`DecoderError::Context`] for a context of another length; what the device says.
    pub fn begin(&mut self, stream: &Stream, context: Slice<'_, f32>) -> Result<(), DecoderError> {
        let Config { sentences, beams, hidden, .. } = self.config;
        if context.len() != sentences * hidden {
            return Err(DecoderError::Context { expected: sentences * hidden, got: context.len() });
        }
        self.beams.copy_from(stream, &self.start)?;
        for sentence in 0..sentences {
            // At the start all hypotheses of a sentence have the first as their parent.
            let to = sentence * beams * hidden;
            let row = self.state.slice_mut(to..to + hidden)?;
            stream.copy(context.part(sentence * hidden..(sentence + 1) * hidden)?, row)?;
        }
        Ok(())
    }

    /// Gives one step to the stream, and returns at once: each hypothesis grows by a word. It can be recorded in a graph. Who wants
    /// the sentences keeps [`tokens`](BeamState::tokens) and [`parents`](BeamState::parents) of each step.
    ///
    /// # Errors
    /// [`DecoderError::Model`] and [`DecoderError::Library`]: a launch that failed, or the simulator's findings.
    pub fn step(&mut self, stream: &Stream) -> Result<(), DecoderError> {
        Part::ALL.into_iter().try_for_each(|part| self.run_part(stream, part))
    }

    /// Records a step as one graph, after one without recording, which loads the kernels: [`begin`](Self::begin) anew after it. Whoever
    /// replays the graph promises that the decoder is alive, and that nothing else uses it meanwhile: see [`Graph::replay`].
    ///
    /// # Errors
    /// As [`step`](Self::step); `Unsupported` of [`lacuna::Error`] on the simulator, which has no graphs.
    pub fn capture(&mut self, stream: &Stream) -> Result<Graph, DecoderError> {
        self.step(stream)?;
        stream.synchronize()?;
        stream.capture(|stream| self.step(stream))
    }

    /// The embeddings of the last words, and the states of the parents, side by side.
    pub(super) fn look_up(&mut self, stream: &Stream) -> Result<(), DecoderError> {
        let Lookup { bags, plan } = &self.words;
        let (words, table) = (self.beams.token_indices(), self.table.as_slice());
        plan.run_with_indices(stream, bags, words, table, self.input.as_slice_mut())?;
        let Lookup { bags, plan } = &self.parents;
        let (parents, state) = (self.beams.parent_indices(), self.state.as_slice());
        let beside = self.input.slice_mut(self.config.hidden..)?;
        Ok(plan.run_with_indices(stream, bags, parents, state, beside)?)
    }

    /// Its sizes.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        self.table.device()
    }

    /// The hypotheses: words, parents, scores, and which are finished.
    pub fn beams(&self) -> &BeamState {
        &self.beams
    }

    /// The logits of the last step, hypotheses × vocabulary.
    pub fn logits(&self) -> Slice<'_, f32> {
        self.logits.as_slice()
    }

    /// Bytes of embeddings, weights and biases, as kernels read them.
    pub fn weight_bytes(&self) -> usize {
        let of_model = |model: &Model| model.report().weight_bytes;
        let feed_forward = self.feed_forward.as_ref().map_or(0, |(model, _)| of_model(model));
        let table = self.table.len() * size_of::<f32>();
        table + of_model(&self.recurrent) + feed_forward + of_model(&self.projection)
    }
}

/// What is asked of a network's layers among others.
fn of_network(options: &Options, network: &Network) -> Options {
    let mut options = options.clone();
    options.by_name.retain(|name, _| network.layers().iter().any(|layer| layer.name == *name));
    options
}

/// The embedding of each word: its row, or the sum of its features' rows.
fn table(stream: &Stream, config: &Config, weights: &Weights) -> Result<Buffer<f32>, DecoderError> {
    let device = stream.device();
    let rows = device.upload(config.embedding(weights)?)?;
    let Some(features) = &config.features else { return Ok(rows) };
    let bags = Bags::new(device, features.rows, &features.offsets, &features.indices)?;
    let plan = NHot::plan(&bags, config.hidden)?;
    let mut table = device.uninitialized(plan.output_len())?;
    plan.run(stream, &bags, rows.as_slice(), table.as_slice_mut())?;
    // The rows are dropped now, and must have been read.
    stream.synchronize()?;
    Ok(table)
}
