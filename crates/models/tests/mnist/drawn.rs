//! Images that can be told apart, where there is no MNIST.
use lacuna_models::challenge::images::{Digits, Labels, drawn};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::images::{Images, PIXELS};

/// The part of the pixels that is changed in each image.
const NOISE: f64 = 0.05;

/// So many images of ten kinds, each with noise of its own.
pub(crate) fn images(count: usize, seed: u64) -> Images {
    let kinds = drawn(Labels::CLASSES, Digits::SIDE, 1).unwrap();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut images = Images { pixels: Vec::new(), labels: Vec::new() };
    for image in 0..count {
        let kind = image % Labels::CLASSES;
        let mut pixels = vec![0.0; PIXELS];
        kinds.row_columns(kind).iter().for_each(|&pixel| pixels[pixel as usize] = 1.0);
        pixels.iter_mut().filter(|_| random.random_bool(NOISE)).for_each(|pixel| *pixel = 1.0 - *pixel);
        images.pixels.extend(pixels);
        images.labels.push(kind as u8);
    }
    images
}
