//! The trained network in the engine for inference, and whether it does the same there.
use std::time::{Duration, Instant};

use lacuna::spdnn::{Activation, Bias, Features, Layer, Options};
use lacuna::{Device, Result, SparseNetwork};
use lacuna_reference::SpdnnLayer;

use crate::images::{CLASSES, Images};
use crate::layer::Parameters;
use crate::loss::best;

/// What the engine makes of images.
#[derive(Debug)]
pub(crate) struct Inference {
    /// Images × classes.
    pub(crate) scores: Vec<f32>,
    /// What all images took as one batch, from device memory to device memory: the median of `runs`.
    pub(crate) time: Duration,
    /// The kernel of each layer.
    pub(crate) kernels: Vec<&'static str>,
}

/// Infers the images, once to begin with and `runs` times for the clock; not 0.
///
/// # Errors
/// What the device says.
pub(crate) fn infer(
    device: &Device,
    network: &[Parameters],
    images: &Images,
    runs: usize,
) -> Result<Inference> {
    let layer = |Parameters { weights, bias, relu }: &Parameters| {
        let activation = if *relu { Activation::Relu } else { Activation::Identity };
        Layer::new(weights.clone(), Bias::PerOutput(bias.clone()), activation)
    };
    let layers = network.iter().map(layer).collect::<Result<Vec<_>>>()?;
    let stream = device.stream()?;
    let network = SparseNetwork::new(device, &layers, images.len(), Options::default())?;
    let samples = Features::dense(images.len(), images.inputs, images.rows())?;
    let samples = network.upload(&stream, &samples)?;
    let mut workspace = network.workspace(images.len())?;
    network.run(&stream, &samples, &mut workspace)?;
    let scores = workspace.scores(&stream)?;
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let start = Instant::now();
        network.run(&stream, &samples, &mut workspace)?;
        stream.synchronize()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let kernels = network.report().iter().map(|layer| layer.choice.entry.name).collect();
    Ok(Inference { scores, time: times[runs / 2], kernels })
}

/// How many images these scores, images × classes, classify rightly.
pub(crate) fn correct(scores: &[f32], labels: &[u8]) -> usize {
    let images = scores.chunks_exact(CLASSES).zip(labels);
    images.filter(|(scores, label)| class(scores) == usize::from(**label)).count()
}

/// How two lists of scores differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    /// The most that a score does, as a part of the greatest one. NaN where a score is.
    pub(crate) scores: f32,
    /// Images that are of another class.
    pub(crate) classes: usize,
}

impl Difference {
    /// Of scores, images × classes, by two ways. An image can be of another class only where its two best scores differ by no more
    /// than twice what scores do.
    pub(crate) fn of(one: &[f32], other: &[f32]) -> Self {
        let greatest = one.iter().fold(0.0_f32, |greatest, score| greatest.max(score.abs()));
        let more = |most: f32, by: f32| if by > most || by.is_nan() { by } else { most };
        let most = one.iter().zip(other).fold(0.0, |most, (one, other)| more(most, (one - other).abs()));
        let pairs = one.chunks_exact(CLASSES).zip(other.chunks_exact(CLASSES));
        let classes = pairs.filter(|(one, other)| class(one) != class(other)).count();
        Self { scores: most / greatest.max(f32::MIN_POSITIVE), classes }
    }
}

/// The class of an image with these scores.
fn class(scores: &[f32]) -> usize {
    best(scores.iter().map(|&score| f64::from(score)))
}

/// Checks the scores of at least `count` images, or of all, spread over all, by sums in `f64`. Gives how many they were, and
/// the worst error as a part of what `f32` may make.
///
/// # Errors
/// A score that cannot be right.
pub(crate) fn check(
    network: &[Parameters],
    images: &Images,
    scores: &[f32],
    count: usize,
) -> anyhow::Result<(usize, f64)> {
    let layers: Vec<SpdnnLayer<'_>> = network
        .iter()
        .map(|Parameters { weights, bias, relu }| {
            let lo = if *relu { 0.0 } else { f32::NEG_INFINITY };
            SpdnnLayer { weights, bias, lo, hi: f32::INFINITY, tensor_cores: false }
        })
        .collect();
    let step = (images.len() / count.max(1)).max(1);
    let every = |values: &[f32], width: usize| -> Vec<f32> {
        values.chunks_exact(width).step_by(step).flatten().copied().collect()
    };
    let reference = lacuna_reference::spdnn(&every(&images.rows(), images.inputs), &layers)?;
    let report = reference.check(&every(scores, CLASSES))?;
    Ok((report.checked / CLASSES, report.worst_over_bound))
}
