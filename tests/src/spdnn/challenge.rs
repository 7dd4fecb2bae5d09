//! Networks of the Sparse DNN Challenge, small ones.
use anyhow::{Result, ensure};
use lacuna::SparseNetwork;
use lacuna::matrix::Csr;
use lacuna::spdnn::{Activation, Bias, Features, Layer, Options};
use lacuna_models::challenge::images::drawn;
use lacuna_models::challenge::{Challenge, Generator, MAX};

use super::{Network, conform};
use crate::{Case, Context};

/// Pixels along a side of an image.
const SIDE: usize = 8;
/// Samples.
const SAMPLES: usize = 40;
/// Images over one another, at most: in so small a network all samples of one image die at once.
const IMAGES: usize = 8;

pub(super) fn cases() -> Vec<Case> {
    vec![Case::new(
        "spdnn/challenge/neurons_64",
        "12 layers of 64 neurons, and drawn images over one another",
        check,
    )]
}

/// The network, and images.
pub(super) fn network(seed: u64) -> Result<Network> {
    let challenge = Challenge::new(SIDE * SIDE, 12)?;
    let layer = |weights| {
        let clamp = Activation::Clamp { lo: 0.0, hi: MAX };
        Ok(Layer::new(weights, Bias::Scalar(challenge.bias()), clamp)?)
    };
    let layers = Generator::new(challenge).all_layers()?.into_iter().map(layer).collect::<Result<_>>()?;
    let images = drawn(SAMPLES + IMAGES, SIDE, seed)?;
    let pixels = images.cols();
    let mut samples = vec![0.0; SAMPLES * pixels];
    for (at, sample) in samples.chunks_exact_mut(pixels).enumerate() {
        let over = at..=at + at % IMAGES;
        over.flat_map(|image| images.row_columns(image)).for_each(|&pixel| sample[pixel as usize] = 1.0);
    }
    Ok(Network { layers, rows: SAMPLES, samples })
}

fn check(cx: &Context<'_>) -> Result<f64> {
    let network = network(cx.seed)?;
    let ones = Csr::from_dense(SAMPLES, network.inputs(), &network.samples)?;
    let worst = conform(cx, &network)?;

    let made = SparseNetwork::new(cx.device, &network.layers, SAMPLES, Options::default())?;
    let dense = made.infer(cx.stream, &network.dense()?)?;
    let left = dense.categories().len();
    ensure!(left > 0 && left < SAMPLES, "the case is not one: {dense:?}");
    let binary = made.infer(cx.stream, &Features::binary(ones.pattern()))?;
    ensure!(dense == binary, "dense {dense:?}, but binary {binary:?}");
    Ok(worst)
}
