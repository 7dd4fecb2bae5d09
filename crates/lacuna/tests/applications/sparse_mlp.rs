//! A sparse network on images.
use std::fs;
use std::path::Path;
use std::time::Duration;

use lacuna::Device;

use crate::drawn;
use crate::images::{CLASSES, Images, Task};
use crate::inference::{Difference, check, correct, infer};
use crate::layer::{Gradients, Parameters};
use crate::loss::Loss;
use crate::network::{Network, Options};
use crate::training::{Schedule, train};

const SIDE: usize = 6;
const BATCH: usize = 8;

/// A small network with more than one hidden layer, and a batch for it: pixels × batch, and labels.
fn small() -> (Network, Vec<f32>, Vec<u8>) {
    let options = Options { hidden: vec![9, 7], density: 0.6, last_density: 0.8, batch: BATCH, seed: 3 };
    let network = Network::draw(&Device::simulator(), SIDE * SIDE, &options).unwrap();
    let images = drawn::images(SIDE, BATCH, 4);
    let all: Vec<usize> = (0..BATCH).collect();
    (network, images.columns(&all, BATCH), images.labels)
}

/// The mean loss of a batch, in `f64`, of parameters that are not quite `network`'s: one of a layer is moved.
struct Moved<'n> {
    network: &'n [Parameters],
    layer: usize,
    weight: Option<usize>,
    bias: Option<usize>,
}

impl Moved<'_> {
    fn loss(&self, images: &[f32], labels: &[u8], by: f64) -> f64 {
        let one = |image: usize, label: u8| {
            let mut values: Vec<f64> =
                images.iter().skip(image).step_by(BATCH).map(|&pixel| f64::from(pixel)).collect();
            for (at, layer) in self.network.iter().enumerate() {
                let moved = |which: Option<usize>, here| {
                    if at == self.layer && which == Some(here) { by } else { 0.0 }
                };
                let offsets = layer.weights.row_offsets();
                let output = |row: usize| {
                    let (columns, weights) = layer.weights.row(row);
                    let mut sum = f64::from(layer.bias[row]) + moved(self.bias, row);
                    for (edge, (&column, &weight)) in columns.iter().zip(weights).enumerate() {
                        let weight = f64::from(weight) + moved(self.weight, offsets[row] as usize + edge);
                        sum += weight * values[column as usize];
                    }
                    if layer.relu { sum.max(0.0) } else { sum }
                };
                values = (0..layer.bias.len()).map(output).collect();
            }
            values.iter().map(|score| score.exp()).sum::<f64>().ln() - values[usize::from(label)]
        };
        labels.iter().enumerate().map(|(image, &label)| one(image, label)).sum::<f64>() / BATCH as f64
    }

    /// By how much the loss grows with the parameter.
    fn slope(&self, images: &[f32], labels: &[u8]) -> f64 {
        const STEP: f64 = 1e-5;
        (self.loss(images, labels, STEP) - self.loss(images, labels, -STEP)) / (2.0 * STEP)
    }
}

/// Also after some steps, so that biases are not zero, and what the device has follows the host.
#[test]
fn gradients_are_the_slopes_of_the_loss() {
    let (mut network, images, labels) = small();
    for _ in 0..3 {
        network.step(&images, &labels, 0.1).unwrap();
    }
    let (loss, gradients) = network.gradients(&images, &labels).unwrap();
    let network = network.parameters();
    assert_eq!(network.iter().map(|layer| layer.relu).collect::<Vec<_>>(), [true, true, false]);
    let still = Moved { network: &network, layer: 0, weight: None, bias: None };
    assert!((loss.mean - still.loss(&images, &labels, 0.0)).abs() < 1e-6, "{loss:?}");
    let mut largest = 0.0_f64;
    for (layer, Gradients { weights, bias }) in gradients.iter().enumerate() {
        assert_eq!((weights.len(), bias.len()), (network[layer].weights.nnz(), network[layer].bias.len()));
        let of_weights = weights.iter().enumerate().map(|(at, slope)| (Some(at), None, slope));
        let of_bias = bias.iter().enumerate().map(|(at, slope)| (None, Some(at), slope));
        for (weight, bias, &got) in of_weights.chain(of_bias) {
            let expected = Moved { network: &network, layer, weight, bias }.slope(&images, &labels);
            let error = (f64::from(got) - expected).abs();
            assert!(error < 1e-5 + 1e-4 * expected.abs(), "{layer} {weight:?} {bias:?}: {got}, {expected}");
            largest = largest.max(expected.abs());
        }
    }
    assert!(largest > 0.01, "all slopes are small: {largest}");
}

#[test]
fn steps_go_down_and_on() {
    const RATE: f32 = 0.1;
    let (mut network, images, labels) = small();
    let mut steps: Option<Vec<Vec<f32>>> = None;
    for _ in 0..2 {
        let before = network.parameters();
        let (_, gradients) = network.gradients(&images, &labels).unwrap();
        network.step(&images, &labels, RATE).unwrap();
        let after = network.parameters();
        let mut taken = Vec::new();
        for (layer, gradients) in gradients.iter().enumerate() {
            let (before, after) = (&before[layer], &after[layer]);
            assert_eq!(before.weights.pattern(), after.weights.pattern());
            let weights = after.weights.values().iter().zip(before.weights.values());
            let moved =
                weights.chain(after.bias.iter().zip(&before.bias)).map(|(after, before)| after - before);
            let slopes = gradients.weights.iter().chain(&gradients.bias);
            let last = steps.as_ref().map(|steps| &steps[layer]);
            let step: Vec<f32> = moved.collect();
            for (at, (moved, slope)) in step.iter().zip(slopes).enumerate() {
                let expected = 0.9 * last.map_or(0.0, |last| last[at]) - RATE * slope;
                assert!((moved - expected).abs() < 1e-6, "{layer} {at}: {moved}, {expected}");
            }
            taken.push(step);
        }
        steps = Some(taken);
    }
}

#[test]
fn learns_what_drawn_images_show_and_infers_the_same() {
    const EPOCHS: usize = 5;
    let (images, test) = (drawn::images(12, 300, 1), drawn::images(12, 90, 2));
    let device = Device::simulator();
    // Neither 300 nor 90 images are whole batches.
    let options = Options { hidden: vec![40, 30], density: 0.3, last_density: 1.0, batch: 28, seed: 5 };
    let mut network = Network::draw(&device, images.inputs, &options).unwrap();
    let (mut epochs, schedule) = (Vec::new(), Schedule { epochs: EPOCHS, rate: 0.2, seed: 6 });
    train(&mut network, &images, schedule, |_, epoch| epochs.push(epoch)).unwrap();
    assert_eq!(epochs.len(), EPOCHS);
    for pair in epochs.windows(2) {
        assert!(pair[1].loss < pair[0].loss && pair[1].time > Duration::ZERO, "{epochs:?}");
    }
    assert!(epochs.iter().all(|epoch| epoch.steps == 10), "{epochs:?}");
    assert!(epochs[EPOCHS - 1].accuracy > 0.9, "{epochs:?}");

    let scores = network.scores(&test).unwrap();
    let right = correct(&scores, &test.labels);
    assert!(right > 72, "{right} of 90");
    let network = network.parameters();
    let inference = infer(&device, &network, &test, 1).unwrap();
    let difference = Difference::of(&scores, &inference.scores);
    assert!(difference.scores < 1e-5 && difference.classes == 0, "{difference:?}");
    assert_eq!(correct(&inference.scores, &test.labels), right);
    assert_eq!(inference.kernels.len(), 3);
    assert!(inference.time > Duration::ZERO);

    let (checked, worst) = check(&network, &test, &inference.scores, 40).unwrap();
    assert!(checked == 45 && worst < 1.0, "{checked}, {worst}");
    let mut wrong = inference.scores;
    wrong[2 * CLASSES + 3] += 0.01;
    check(&network, &test, &wrong, 40).unwrap_err();
}

#[test]
fn loss_of_scores() {
    // Three classes, two images: of the first all is open, of the second the last class is certain.
    let scores = [0.0, -40.0, 0.0, -40.0, 0.0, 40.0];
    let loss = Loss::of(&scores, &[1, 2]);
    assert!((loss.mean - 3.0_f64.ln() / 2.0).abs() < 1e-12 && loss.correct == 1, "{loss:?}");
    let expected = [1.0 / 6.0, 0.0, -1.0 / 3.0, 0.0, 1.0 / 6.0, 0.0];
    for (got, expected) in loss.gradient.iter().zip(expected) {
        assert!((got - expected).abs() < 1e-7, "{loss:?}");
    }
}

#[test]
fn differences_are_counted() {
    let one: Vec<f32> = (0..2 * CLASSES).map(|at| at as f32).collect();
    let mut other = one.clone();
    (other[3], other[2 * CLASSES - 2]) = (3.5, 20.0);
    assert_eq!(Difference::of(&one, &other), Difference { scores: 2.0 / 19.0, classes: 1 });
    assert_eq!(correct(&one, &[9, 8]), 1);
    other[5] = f32::NAN;
    assert!(Difference::of(&one, &other).scores.is_nan());
}

/// An idx file.
fn write(folder: &Path, name: &str, header: &[u32], bytes: &[u8]) {
    let header: Vec<u8> = header.iter().copied().flat_map(u32::to_be_bytes).collect();
    fs::write(folder.join(name), [&header[..], bytes].concat()).unwrap();
}

#[test]
fn mnist_is_found_where_it_is_whole() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("mnist");
    fs::create_dir(&folder).unwrap();
    write(&folder, "train-images-idx3-ubyte", &[0x803, 2, 28, 28], &[[51; 784], [255; 784]].concat());
    write(&folder, "train-labels-idx1-ubyte", &[0x801, 2], &[7, 3]);
    write(&folder, "t10k-images-idx3-ubyte", &[0x803, 1, 28, 28], &[0; 784]);

    let Task { name, train, test } = Task::find(Some(root.path()), 1).unwrap();
    assert!(name.contains("stand-in") && name.contains("t10k-labels-idx1-ubyte"), "{name}");
    assert_eq!((train.inputs, test.inputs), (784, 784));

    write(&folder, "t10k-labels-idx1-ubyte", &[0x801, 1], &[9]);
    let Task { name, train, test } = Task::find(Some(root.path()), 1).unwrap();
    assert_eq!((name.as_str(), train.len(), test.labels), ("MNIST", 2, vec![9]));
    assert_eq!(train.labels_of(&[1, 0]), [3, 7]);
    assert_eq!(train.columns(&[1, 0], 3)[..6], [1.0, 0.2, 0.0, 1.0, 0.2, 0.0]);
    let Images { labels, pixels, .. } = train.first(usize::MAX).first(1);
    assert_eq!((labels, pixels.len()), (vec![7], 784));

    write(&folder, "t10k-labels-idx1-ubyte", &[0x801, 2], &[9, 9]);
    let error = || Task::find(Some(root.path()), 1).unwrap_err().to_string();
    assert!(error().contains("t10k-labels-idx1-ubyte: expected 1 labels"), "{}", error());

    write(&folder, "t10k-images-idx3-ubyte", &[0x803, 0, 28, 28], &[]);
    write(&folder, "t10k-labels-idx1-ubyte", &[0x801, 0], &[]);
    assert!(error().contains("t10k-images-idx3-ubyte: expected an image"), "{}", error());
}
