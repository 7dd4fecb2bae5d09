//! A sparse multi-layer perceptron on MNIST: trained with SpMM, transpose and SDDMM, and then run by `SparseNetwork`.
//!
//!     cargo run --release -p lacuna --example sparse_mlp -- --help
//!
//! Runs on the first GPU (feature `cuda`), or else on the simulator, where the task is cut unless sizes are given, and times are times
//! spent simulating.
#[path = "../common/arguments.rs"]
mod arguments;
mod drawn;
mod images;
mod inference;
mod layer;
mod loss;
mod momentum;
mod network;
mod training;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use lacuna::Device;
use lacuna_cases::device::DeviceName;
use lacuna_cases::exit::{self, Outcome};

use crate::arguments::size;
use crate::images::{CLASSES, Task};
use crate::inference::{Difference, Inference, check, correct, infer};
use crate::network::{Network, Options};
use crate::training::{Epoch, Schedule, train};

/// Trains a sparse network on MNIST, and infers the test images with it
#[derive(Parser)]
#[command(after_help = exit::HELP)]
struct Arguments {
    /// A folder with `mnist`. Else the folder that LACUNA_DATA names, or `data` beside this program; a drawn task where there is none
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// `cuda:INDEX` or `sim`. Else the first GPU, or the simulator
    #[arg(long, value_parser = device)]
    device: Option<DeviceName>,
    /// Neurons of each hidden layer [default: 1024,1024, or 64,64 on the simulator]
    #[arg(long, value_delimiter = ',', value_parser = size())]
    hidden: Vec<usize>,
    /// The part of weights that is not zero, in hidden layers
    #[arg(long, default_value_t = 0.1, value_parser = part)]
    density: f64,
    /// The same in the last layer
    #[arg(long, default_value_t = 0.5, value_parser = part)]
    last_density: f64,
    /// Images to train with, the first ones [default: all, or 512 on the simulator]
    #[arg(long, value_parser = size())]
    images: Option<usize>,
    /// Images to test with, the first ones [default: all, or 256 on the simulator]
    #[arg(long, value_parser = size())]
    test_images: Option<usize>,
    /// Times that all images are seen
    #[arg(long, default_value_t = 5)]
    epochs: usize,
    /// Images of a step [default: 256, or 32 on the simulator]
    #[arg(long, value_parser = size())]
    batch: Option<usize>,
    /// How long the first steps are; they become shorter evenly [default: 0.4, or 0.2 on the simulator]
    #[arg(long, value_parser = rate)]
    rate: Option<f32>,
    /// Of the patterns, the weights to start from, and the order of images
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// By how much, as a part of the greatest one, scores of training and of inference may differ: they sum up in another order.
const MAX_DIFFERENCE: f32 = 1e-3;

/// Images whose scores are compared with sums in `f64`.
const CHECKED: usize = 64;

fn device(text: &str) -> Result<DeviceName, &'static str> {
    DeviceName::parse(text).ok_or("expected is `sim`, or `cuda:` and a number")
}

fn part(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|part| (0.0..=1.0).contains(part)).ok_or("expected is a number of 0 to 1")
}

fn rate(text: &str) -> Result<f32, &'static str> {
    let good = |rate: &f32| rate.is_finite() && *rate > 0.0;
    text.parse().ok().filter(good).ok_or("expected is a number above 0")
}

fn main() -> ExitCode {
    exit::finish("sparse_mlp", run(Arguments::parse()))
}

fn run(arguments: Arguments) -> Result<Outcome> {
    let device = arguments.device.map_or_else(Device::best, DeviceName::open)?;
    let is_cut = device.is_simulator();
    let or = |asked: Option<usize>, whole, cut| asked.unwrap_or(if is_cut { cut } else { whole });
    let Task { name, train: images, test } = Task::find(arguments.data.as_deref(), arguments.seed)?;
    let images = images.first(or(arguments.images, usize::MAX, 512));
    let test = test.first(or(arguments.test_images, usize::MAX, 256));
    let width = or(None, 1024, 64);
    let hidden = if arguments.hidden.is_empty() { vec![width; 2] } else { arguments.hidden };
    let batch = or(arguments.batch, 256, 32).min(images.len());
    let rate = arguments.rate.unwrap_or(if is_cut { 0.2 } else { 0.4 });
    let Arguments { density, last_density, epochs, seed, .. } = arguments;

    let options = Options { hidden, density, last_density, batch, seed };
    let mut network = Network::draw(&device, images.inputs, &options)?;
    println!("{name}: {} images to train with, {} to test with", images.len(), test.len());
    describe(&network, images.inputs, &options, &device);
    println!("{:>5}  {:>8}  {:>8}  {:>9}  {:>9}", "epoch", "loss", "accuracy", "s", "ms a step");
    train(&mut network, &images, Schedule { epochs, rate, seed }, tell)?;

    let by_training = network.scores(&test)?;
    let network = network.parameters();
    let runs = if is_cut { 1 } else { 11 };
    let Inference { scores, time, kernels } = infer(&device, &network, &test, runs)?;
    println!("test images, by the products of training: {}", accuracy(&by_training, &test.labels));
    println!("test images, by SparseNetwork:            {}", accuracy(&scores, &test.labels));
    println!(
        "inference of {} images at once: {:.3} ms, by {}",
        test.len(),
        time.as_secs_f64() * 1e3,
        kernels.join(", ")
    );
    let Difference { scores: part, classes } = Difference::of(&by_training, &scores);
    println!(
        "scores differ by {part:.1e} of the greatest at most ({MAX_DIFFERENCE:.0e} may be); {classes} images are of another class"
    );
    let (checked, worst) = check(&network, &test, &scores, CHECKED)?;
    println!("{checked} images in f64: the worst error is {worst:.3} of its bound");
    Ok(Outcome::good_if(part <= MAX_DIFFERENCE))
}

fn describe(network: &Network, inputs: usize, options: &Options, device: &Device) {
    let Options { hidden, density, last_density, batch, seed } = options;
    let widths: Vec<String> = [inputs].iter().chain(hidden).chain(&[CLASSES]).map(usize::to_string).collect();
    let weights: usize = network.parameters().iter().map(|layer| layer.weights.nnz()).sum();
    let [density, last_density] = [density, last_density].map(|part| part * 100.0);
    println!(
        "{} neurons, {weights} weights ({density:.0} %, {last_density:.0} % in the last layer), batch {batch}, seed {seed}, {}",
        widths.join(" → "),
        device.info().name
    );
}

fn tell(epoch: usize, Epoch { loss, accuracy, steps, time }: Epoch) {
    let (seconds, accuracy) = (time.as_secs_f64(), accuracy * 100.0);
    let step = seconds * 1e3 / steps as f64;
    println!("{:>5}  {loss:>8.4}  {accuracy:>6.2} %  {seconds:>9.2}  {step:>9.2}", epoch + 1);
}

/// The part of images that these scores classify rightly.
fn accuracy(scores: &[f32], labels: &[u8]) -> String {
    let (correct, all) = (correct(scores, labels), labels.len());
    format!("{:.2} %, {correct} of {all}", correct as f64 / all as f64 * 100.0)
}
