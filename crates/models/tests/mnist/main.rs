//! The example that trains and prunes a network on MNIST: on drawn images and, where the environment variable `LACUNA_DATA` names a
//! folder that holds `mnist/`, on a part of MNIST.
#[path = "../../examples/mnist/images.rs"]
mod images;
#[path = "../../examples/mnist/inference.rs"]
mod inference;
#[path = "../../examples/mnist/layer.rs"]
mod layer;
#[path = "../../examples/mnist/training.rs"]
mod training;

mod drawn;

use std::path::Path;

use lacuna::Device;
use lacuna_models::model::Held;
use lacuna_models::prune;
use lacuna_models::weights::Weights;

use crate::images::Images;
use crate::inference::Inference;
use crate::training::{Phase, Training, network};

const HIDDEN: [usize; 2] = [24, 16];

/// Trained, and then pruned to 90 % zeros.
fn pruned(images: &Images, epochs: usize) -> Training {
    let mut training = Training::new(&network(1, &HIDDEN).unwrap(), 1).unwrap();
    training.run(images, Phase { epochs, from: 0.0, to: 0.0 }).unwrap();
    training.run(images, Phase { epochs, from: 0.0, to: 0.9 }).unwrap();
    training
}

/// How many weights of matrices are zero, name by name.
fn zeros(weights: &Weights) -> Vec<usize> {
    let matrices = weights.iter().filter(|(name, tensor)| prune::is_matrix(name, tensor));
    let zeros = matrices.map(|(_, tensor)| tensor.values().iter().filter(|&&value| value == 0.0).count());
    zeros.collect()
}

/// The network's answers by sparse weights are those of dense weights and of the host. How many of them are right.
fn right_answers(training: &Training, images: &Images) -> usize {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let network = network(images.len(), &HIDDEN).unwrap();
    let weights = training.weights().unwrap();
    let infer = |held| Inference::run(&stream, &network, &weights, held, images).unwrap();
    let (sparse, dense) = (infer(Held::Sparse), infer(Held::Dense));
    assert_eq!(sparse.answers, training.answers(images));
    assert_eq!(sparse.answers, dense.answers);
    assert!(sparse.error_over_bound <= 1.0 && dense.error_over_bound <= 1.0);
    assert!(sparse.difference_over_bound(&dense) <= 1.0);
    assert!(sparse.kernels.iter().all(|kernel| kernel.contains("spmm")), "{:?}", sparse.kernels);
    assert!(dense.kernels.iter().all(|kernel| !kernel.contains("spmm")), "{:?}", dense.kernels);
    assert!(sparse.weight_bytes < dense.weight_bytes);
    images.correct(&sparse.answers)
}

#[test]
fn a_pruned_network_has_the_same_answers_on_the_device() {
    let images = drawn::images(320, 1);
    let training = pruned(&images, 20);
    let test = drawn::images(100, 2);
    let right = right_answers(&training, &test);
    assert!(right > 80, "{right} of 100");
}

#[test]
fn what_was_pruned_stays_zero() {
    let images = drawn::images(320, 1);
    let mut training = pruned(&images, 1);
    let weights = training.weights().unwrap();
    // 90 % of 784 · 24, of 24 · 16 and of 16 · 10.
    assert_eq!(zeros(&weights), [16_934, 346, 144]);
    training.run(&images, Phase { epochs: 1, from: 0.9, to: 0.9 }).unwrap();
    let after = training.weights().unwrap();
    assert_ne!(after, weights);
    let is_zero = |weights: &Weights| -> Vec<bool> {
        let matrices = weights.iter().filter(|(name, tensor)| prune::is_matrix(name, tensor));
        matrices.flat_map(|(_, tensor)| tensor.values()).map(|&value| value == 0.0).collect()
    };
    assert_eq!(is_zero(&after), is_zero(&weights));
}

#[test]
fn training_is_the_same_however_often_it_is_done() {
    let images = drawn::images(64, 1);
    assert_eq!(pruned(&images, 1).weights().unwrap(), pruned(&images, 1).weights().unwrap());
}

#[test]
fn a_folder_without_mnist_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let error = Images::mnist(folder.path()).unwrap_err().to_string();
    assert!(error.contains("train-images-idx3-ubyte.gz") && error.contains("t10k"), "{error}");
}

/// A part of MNIST is enough to see that digits are learnt.
#[test]
fn digits_are_learnt() {
    let Some(data) = std::env::var_os("LACUNA_DATA") else {
        eprintln!("skipped: LACUNA_DATA is not set");
        return;
    };
    if !Path::new(&data).join("mnist").is_dir() {
        eprintln!("skipped: {} has no mnist/", Path::new(&data).display());
        return;
    }
    let [train, test] = Images::mnist(Path::new(&data)).unwrap();
    assert_eq!((train.len(), test.len()), (60_000, 10_000));
    let training = pruned(&train.first(6_000), 2);
    let right = right_answers(&training, &test.first(100));
    assert!(right > 80, "{right} of 100");
    let right = test.correct(&training.answers(&test));
    assert!(right > 8_500, "{right} of 10000");
}
