//! Training by batches of shuffled images.
use std::time::{Duration, Instant};

use lacuna::Result;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;

use crate::images::Images;
use crate::network::Network;

/// How long training takes, and how large its steps are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) epochs: usize,
    /// The rate of the first step. It falls evenly, to 0 at the end.
    pub(crate) rate: f32,
    /// Of the order of images.
    pub(crate) seed: u64,
}

/// What came of an epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    /// The mean loss of its steps, each before it was taken.
    pub(crate) loss: f64,
    /// The part of images that were classified rightly then.
    pub(crate) accuracy: f64,
    pub(crate) steps: usize,
    pub(crate) time: Duration,
}

/// Trains with whole batches only, so that in each epoch some of the images are left out; others in each. Tells of each epoch.
///
/// # Errors
/// What the device says.
pub(crate) fn train(
    network: &mut Network,
    images: &Images,
    schedule: Schedule,
    mut tell: impl FnMut(usize, Epoch),
) -> Result<()> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(schedule.seed);
    let mut order: Vec<usize> = (0..images.len()).collect();
    let batch = network.batch();
    let steps = images.len() / batch;
    let all = (schedule.epochs * steps) as f32;
    for epoch in 0..schedule.epochs {
        let start = Instant::now();
        order.shuffle(&mut random);
        let (mut loss, mut correct) = (0.0, 0);
        for (step, part) in order.chunks_exact(batch).enumerate() {
            let rate = schedule.rate * (1.0 - (epoch * steps + step) as f32 / all);
            let result = network.step(&images.columns(part, batch), &images.labels_of(part), rate)?;
            loss += result.mean / steps as f64;
            correct += result.correct;
        }
        let accuracy = correct as f64 / (steps * batch) as f64;
        tell(epoch, Epoch { loss, accuracy, steps, time: start.elapsed() });
    }
    Ok(())
}
