//! The trained network as a model on a device: with sparse weights, with dense ones, and by the oracle.
use anyhow::Result;
use lacuna::Stream;
use lacuna_models::challenge::images::Labels;
use lacuna_models::model::{Held, LayerOptions, Model, Options};
use lacuna_models::network::Network;
use lacuna_models::oracle::{self, Approximate};
use lacuna_models::weights::Weights;

use crate::images::{Images, answer};

/// What a model made of images.
#[derive(Clone, Debug)]
pub(crate) struct Inference {
    /// The digit of each image.
    pub(crate) answers: Vec<u8>,
    /// The kernel of each layer.
    pub(crate) kernels: Vec<String>,
    /// Bytes of weights and biases on the device.
    pub(crate) weight_bytes: usize,
    /// The greatest error of a score in `f64`, as a part of its bound.
    pub(crate) error_over_bound: f64,
    scores: Vec<f32>,
    exact: Approximate,
}

impl Inference {
    /// Runs a network for as many images as there are, with weights held so.
    ///
    /// # Errors
    /// What the device says, and a score that is off by more than its bound.
    pub(crate) fn run(
        stream: &Stream,
        network: &Network,
        weights: &Weights,
        held: Held,
        images: &Images,
    ) -> Result<Self> {
        let options = Options::default().layers(LayerOptions { weights: held, ..LayerOptions::default() });
        let mut model = Model::plan(stream, network, weights, &options)?;
        let input = stream.device().upload(&images.pixels)?;
        let mut output = stream.device().zeros::<f32>(network.output_shape().elements())?;
        model.run(stream, input.as_slice(), output.as_slice_mut())?;
        let scores = output.download(stream)?;
        let exact = oracle::run(network, weights, &options, &images.pixels)?;
        let check = exact.check("the scores", &scores)?;
        let report = model.report();
        Ok(Self {
            answers: scores.chunks_exact(Labels::CLASSES).map(|of| answer(of.iter().copied())).collect(),
            kernels: report.layers.into_iter().map(|layer| layer.kernel).collect(),
            weight_bytes: report.weight_bytes,
            error_over_bound: check.worst_over_bound,
            scores,
            exact,
        })
    }

    /// The greatest difference from scores of the same network, as a part of what both may be off.
    pub(crate) fn difference_over_bound(&self, other: &Self) -> f64 {
        let scores = self.scores.iter().zip(&other.scores);
        let bounds = self.exact.error.iter().zip(&other.exact.error);
        let part = |((a, b), (of_a, of_b)): ((&f32, &f32), (&f64, &f64))| {
            let off = f64::from((a - b).abs());
            if off > 0.0 { off / (of_a + of_b) } else { 0.0 }
        };
        scores.zip(bounds).map(part).fold(0.0, f64::max)
    }
}
