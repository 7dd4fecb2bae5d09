//! A small network on MNIST: trained on the host, pruned in steps, and run on a device with sparse and with dense weights.
//!
//!     cargo run --release -p lacuna-models --example mnist -- --data DIR
//!
//! Inference runs on the first GPU (feature `lacuna/cuda`), or else on the simulator, for fewer images.
mod images;
mod inference;
mod layer;
mod table;
mod training;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use lacuna::Device;
use lacuna_cases::device::DeviceName;
use lacuna_cases::exit::{self, Outcome, Usage};
use lacuna_models::files::Archive;
use lacuna_models::prune;
use lacuna_models::weights::{Tensor, Weights};

use crate::images::Images;
use crate::table::Table;
use crate::training::{Phase, Training, network};

/// Neurons of the hidden layers.
const HIDDEN: [usize; 2] = [300, 100];

/// Times that all images are seen, before anything is pruned.
const EPOCHS: usize = 5;

/// The same for each step of pruning.
const PRUNING_EPOCHS: usize = 2;

/// Images that the simulator infers, unless more are asked for.
const SIMULATED: usize = 200;

/// Trains a small network on MNIST, prunes it in steps, and runs it with sparse and with dense weights
#[derive(Parser)]
#[command(after_help = exit::HELP)]
struct Arguments {
    /// The folder with MNIST's four files, packed by gzip, or with `mnist/` that has them
    #[arg(long, value_name = "DIR", env = "LACUNA_DATA")]
    data: PathBuf,
    /// `cuda:INDEX`, `sim`, or `auto`: the first GPU, or else the simulator
    #[arg(long, default_value = "auto", value_parser = device)]
    device: Choice,
    /// The parts of the weights that become zero, one after another
    #[arg(long, value_delimiter = ',', default_values_t = [0.5, 0.8, 0.9, 0.95, 0.98], value_parser = part)]
    sparsity: Vec<f64>,
    /// Test images that the device infers, the first ones [default: all, or 200 on the simulator]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    images: Option<u32>,
    /// Writes the network, as it is after the last step, to this safetensors file, its matrices in CSR
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Of the weights to start from, and of the order of images
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A device, or the best one.
type Choice = Option<DeviceName>;

fn device(text: &str) -> Result<Choice, &'static str> {
    if text == "auto" {
        return Ok(None);
    }
    DeviceName::parse(text).map(Some).ok_or("expected is `auto`, `sim`, or `cuda:` and a number")
}

fn part(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|part| (0.0..=1.0).contains(part)).ok_or("expected is a number of 0 to 1")
}

fn main() -> ExitCode {
    exit::finish("mnist", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<Outcome> {
    if !arguments.sparsity.is_sorted() {
        return Err(Usage("--sparsity: expected numbers that grow: what is zero stays so".into()).into());
    }
    let [train, test] = Images::mnist(&arguments.data)?;
    let device = arguments.device.map_or_else(Device::best, DeviceName::open)?;
    let is_simulated = device.is_simulator();
    let inferred =
        arguments.images.map_or(if is_simulated { SIMULATED } else { usize::MAX }, |images| images as usize);
    let table = Table { stream: device.stream()?, hidden: &HIDDEN, inferred: test.first(inferred), test };
    println!("{} images to train with, by the host, and {} to test with", train.len(), table.test.len());
    println!("inference of {} of them by {}", table.inferred.len(), device.info().name);
    if is_simulated {
        println!("The simulator is slow: --images infers more than the first {}.", table.inferred.len());
    }
    let mut training = Training::new(&network(1, &HIDDEN)?, arguments.seed)?;
    table.head();
    let mut from = 0.0;
    let phases = [(EPOCHS, 0.0)].into_iter().chain(arguments.sparsity.iter().map(|&to| (PRUNING_EPOCHS, to)));
    for (epochs, to) in phases {
        let start = Instant::now();
        let loss = training.run(&train, Phase { epochs, from, to })?;
        from = to;
        table.row(&training, loss, start.elapsed())?;
    }
    if let Some(path) = &arguments.out {
        save(training.weights()?, path)?;
    }
    Ok(Outcome::Good)
}

/// Writes tensors, the matrices in CSR.
fn save(weights: Weights, path: &Path) -> Result<()> {
    let is_matrix = |(name, tensor): &(&str, &Tensor)| prune::is_matrix(name, tensor);
    let names: Vec<String> = weights.iter().filter(is_matrix).map(|(name, _)| name.to_owned()).collect();
    let mut archive = Archive { dense: weights, ..Archive::default() };
    archive.compress(names.iter().map(String::as_str))?;
    Ok(archive.save(path)?)
}
