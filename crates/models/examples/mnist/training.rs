//! A network of linear layers, trained and pruned on the host.
use anyhow::Result;
use lacuna_models::challenge::images::Labels;
use lacuna_models::network::{Linear, Network, NetworkError, Shape};
use lacuna_models::prune::{self, CubicSchedule};
use lacuna_models::weights::Weights;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;

use crate::images::{BATCH, Images, PIXELS, Row, answer};
use crate::layer::Layer;

/// How large the first step of a phase is. Steps become smaller evenly, to 0 at the end of the phase.
const RATE: f32 = 0.05;

/// How often a phase prunes, if it has steps enough.
const PRUNINGS: u64 = 10;

/// Linear layers of so many neurons, with ReLUs, and one for the ten digits, for so many images at once.
///
/// # Errors
/// Layers without neurons.
pub(crate) fn network(images: usize, hidden: &[usize]) -> Result<Network, NetworkError> {
    let mut builder = Network::builder(Shape::matrix(images, PIXELS));
    let mut value = builder.input();
    for (number, &neurons) in (1..).zip(hidden) {
        value = builder.layer(format!("fc{number}"), Linear::new(neurons).relu(), &[value])?;
    }
    let last = format!("fc{}", hidden.len() + 1);
    let scores = builder.layer(last, Linear::new(Labels::CLASSES), &[value])?;
    builder.finish(scores)
}

/// What training is told of a phase of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    /// Times that all images are seen.
    pub(crate) epochs: usize,
    /// The part of the weights that is zero before it.
    pub(crate) from: f64,
    /// The part that is zero after it. Weights are pruned in its first half; the second half trains those that are left.
    pub(crate) to: f64,
}

/// A network in training.
#[derive(Debug)]
pub(crate) struct Training {
    layers: Vec<Layer>,
    random: Xoshiro256PlusPlus,
}

impl Training {
    /// A network with weights that are drawn.
    ///
    /// # Errors
    /// None, of a network of linear layers.
    pub(crate) fn new(network: &Network, seed: u64) -> Result<Self> {
        let weights = Weights::drawn(network, seed)?;
        let layers = network.layers().iter().filter_map(|layer| Some((layer, network.convolution(layer)?)));
        let layers = layers.map(|(layer, conv)| Layer::new(&layer.name, &conv, &weights));
        Ok(Self {
            layers: layers.collect::<Result<_, _>>()?,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        })
    }

    /// Trains and prunes. The mean loss of its last epoch.
    ///
    /// # Errors
    /// A sparsity that is none, or less than before.
    pub(crate) fn run(&mut self, images: &Images, phase: Phase) -> Result<f64> {
        let Phase { epochs, from, to } = phase;
        // The images that are left over differ from epoch to epoch.
        let steps = images.len() / BATCH;
        let all = (epochs * steps) as u64;
        let prunings = PRUNINGS.min(all / 2).max(1);
        let schedule = CubicSchedule::new(from, to, 0, (all / 2 / prunings).max(1), prunings)?;
        let mut order: Vec<usize> = (0..images.len()).collect();
        let (mut at, mut loss) = (0, 0.0);
        for _ in 0..epochs {
            order.shuffle(&mut self.random);
            loss = 0.0;
            for named in order.chunks_exact(BATCH) {
                if schedule.is_pruning(at) {
                    self.prune(schedule.sparsity(at))?;
                }
                loss += self.step(images, named, RATE * (1.0 - at as f32 / all as f32)) / steps as f64;
                at += 1;
            }
        }
        Ok(loss)
    }

    fn prune(&mut self, sparsity: f64) -> Result<()> {
        let mut weights = self.weights()?;
        prune::each(&mut weights, sparsity, prune::is_matrix)?;
        Ok(self.layers.iter_mut().try_for_each(|layer| layer.set(&weights))?)
    }

    /// A step with these images, down the gradient of the mean cross-entropy. That mean, before the step.
    fn step(&mut self, images: &Images, named: &[usize], rate: f32) -> f64 {
        let mut values = vec![images.rows(named)];
        for layer in &self.layers {
            values.push(layer.forward(&values[values.len() - 1]));
        }
        let Some(scores) = values.pop() else { return 0.0 };
        let (loss, mut gradient) = cross_entropy(scores, named.iter().map(|&image| images.labels[image]));
        for (number, (layer, input)) in self.layers.iter_mut().zip(&values).enumerate().rev() {
            let sums = gradient;
            // Nothing is before the first layer.
            gradient = if number > 0 { layer.backward(input, &sums) } else { Vec::new() };
            layer.step(input, &sums, rate);
        }
        loss
    }

    /// The network's tensors.
    ///
    /// # Errors
    /// None.
    pub(crate) fn weights(&self) -> Result<Weights> {
        let mut weights = Weights::new();
        self.layers.iter().try_for_each(|layer| layer.give(&mut weights))?;
        Ok(weights)
    }

    /// Which digit each image shows, as the network has it.
    pub(crate) fn answers(&self, images: &Images) -> Vec<u8> {
        let all: Vec<usize> = (0..images.len()).collect();
        let of_batch = |named: &[usize]| {
            let input = images.rows(named);
            let scores = self.layers.iter().fold(input, |value, layer| layer.forward(&value));
            (0..named.len()).map(|at| answer(scores.iter().map(|row| row[at]))).collect::<Vec<_>>()
        };
        all.chunks(BATCH).flat_map(of_batch).collect()
    }
}

/// The mean loss of scores, and its gradient: softmax less one at the label.
fn cross_entropy(mut scores: Vec<Row>, labels: impl Iterator<Item = u8>) -> (f64, Vec<Row>) {
    let mut loss = 0.0;
    for (image, label) in labels.enumerate() {
        let greatest = scores.iter().fold(f32::NEG_INFINITY, |most, row| most.max(row[image]));
        let sum: f32 = scores.iter().map(|row| (row[image] - greatest).exp()).sum();
        for (digit, row) in scores.iter_mut().enumerate() {
            let part = (row[image] - greatest).exp() / sum;
            let is_it = digit == usize::from(label);
            if is_it {
                loss -= f64::from(part.max(f32::MIN_POSITIVE)).ln() / BATCH as f64;
            }
            row[image] = (part - f32::from(is_it)) / BATCH as f32;
        }
    }
    (loss, scores)
}
