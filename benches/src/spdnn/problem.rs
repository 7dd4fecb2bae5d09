//! A network of the challenge, with its images.
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::cache;
use anyhow::Result;
use half::f16;
use lacuna::matrix::Pattern;
use lacuna::spdnn::{Activation, Bias, Layer};
use lacuna_cases::data::{Data, Folder};
use lacuna_cases::exit::Usage;
use lacuna_models::challenge::images::{self, Digits};
use lacuna_models::challenge::{Challenge, ChallengeError, Generator, IMAGES, MAX, categories};
use lacuna_reference::{SpdnnLayer, SpdnnReference};

/// A network and its images on the host.
#[derive(Debug)]
pub struct Network {
    /// Makes the layers.
    pub generator: Generator,
    /// A row an image.
    pub images: Pattern,
    /// Where the images come from.
    pub source: &'static str,
    /// The official categories, from 0, where they are known.
    pub truth: Option<Vec<u32>>,
    /// Seconds that making or reading the images took.
    pub images_s: f64,
    /// Whether the device has the weights as `f16`.
    pub f16_weights: bool,
}

impl Network {
    /// The network of this size, with its first `images` images.
    ///
    /// # Errors
    /// [`Usage`] for sizes that there are not; data that cannot be read.
    pub fn new(
        neurons: usize,
        layers: usize,
        images: usize,
        data: &Data,
        cache: Option<&Path>,
    ) -> Result<Self> {
        let challenge = Challenge::new(neurons, layers).map_err(|error| Usage(error.to_string()))?;
        let start = Instant::now();
        let (pattern, source) = cached(neurons, images, data, cache)?;
        let images_s = start.elapsed().as_secs_f64();
        let truth = truth(challenge, images, source, data)?;
        Ok(Self {
            generator: Generator::new(challenge),
            images: pattern,
            source,
            truth,
            images_s,
            f16_weights: false,
        })
    }

    /// The size.
    pub fn challenge(&self) -> Challenge {
        self.generator.challenge()
    }

    /// A layer as the library takes it.
    ///
    /// # Errors
    /// If there is no such layer.
    pub fn layer(&self, layer: usize) -> Result<Layer, LayerError> {
        let weights = self.generator.layer(layer)?;
        let bias = Bias::Scalar(self.challenge().bias());
        let clamp = Activation::Clamp { lo: 0.0, hi: MAX };
        Ok(if self.f16_weights {
            Layer::of_f16(&weights.map_values(f16::from_f32), bias, clamp)?
        } else {
            Layer::new(weights, bias, clamp)?
        })
    }

    /// Of `count` images or some more, spread by an odd step, which they are, and what the reference says of them.
    ///
    /// # Errors
    /// If the reference cannot do the network.
    pub fn reference(&self, count: usize) -> Result<(Vec<usize>, SpdnnReference)> {
        // The next odd step below, so that there are no fewer.
        let step = self.images.rows() / count.max(1);
        let step = step.saturating_sub(1 - step % 2).max(1);
        let sample: Vec<usize> = (0..self.images.rows()).step_by(step).collect();
        let inputs = self.images.cols();
        let mut features = vec![0.0_f32; sample.len() * inputs];
        for (row, &image) in sample.iter().enumerate() {
            for &pixel in self.images.row_columns(image) {
                features[row * inputs + pixel as usize] = 1.0;
            }
        }
        let layers = self.generator.all_layers()?;
        let bias = [self.challenge().bias()];
        // Weights are 1/16: kernels may take tensor cores.
        let layers: Vec<SpdnnLayer<'_>> = layers
            .iter()
            .map(|weights| SpdnnLayer { weights, bias: &bias, lo: 0.0, hi: MAX, tensor_cores: true })
            .collect();
        Ok((sample, lacuna_reference::spdnn(&features, &layers)?))
    }
}

/// Why a layer cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The generator's reason.
    #[error(transparent)]
    Challenge(#[from] ChallengeError),
    /// The library's.
    #[error(transparent)]
    Lacuna(#[from] lacuna::Error),
}

/// The images as the cache has them; else they are made, and kept there.
fn cached(
    neurons: usize,
    images: usize,
    data: &Data,
    folder: Option<&Path>,
) -> Result<(Pattern, &'static str)> {
    let digits = digits(data);
    let source = if digits.is_some() { "MNIST" } else { "drawn" };
    let file = folder.map(|folder| folder.join(format!("{source}-{neurons}-{images}.bits")));
    if let Some(file) = file.as_ref().filter(|file| file.is_file()) {
        return Ok((cache::read(file, images, neurons)?, source));
    }
    let side = neurons.isqrt();
    if side * side != neurons {
        return Err(Usage(format!("{neurons} neurons are no square image: take a power of 4")).into());
    }
    let pattern = match digits {
        Some(path) => {
            let all = images::from_digits(&Digits::read_path(path)?, side)?;
            all.select_rows(0..images.min(all.rows()))?
        }
        None => images::drawn(images, side, 1)?,
    };
    if let Some(file) = &file {
        cache::write(file, &pattern)?;
    }
    Ok((pattern, source))
}

/// MNIST's training images, where they are.
fn digits(data: &Data) -> Option<PathBuf> {
    let Folder::At(folder) = data.folder("mnist") else { return None };
    ["train-images-idx3-ubyte.gz", "train-images-idx3-ubyte"]
        .map(|name| folder.join(name))
        .into_iter()
        .find(|path| path.is_file())
}

/// The official categories, where the data folder has them and these are the official images.
fn truth(challenge: Challenge, images: usize, source: &str, data: &Data) -> Result<Option<Vec<u32>>> {
    let Folder::At(folder) = data.folder("spdnn") else { return Ok(None) };
    let (neurons, layers) = (challenge.neurons(), challenge.layers());
    let file = folder.join(format!("neuron{neurons}-l{layers}-categories.tsv"));
    if source != "MNIST" || !file.is_file() {
        return Ok(None);
    }
    let all = categories::read_path(file, IMAGES)?;
    Ok(Some(all.into_iter().filter(|&image| (image as usize) < images).collect()))
}
