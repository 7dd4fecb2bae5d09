//! Sparse factor analysis: a low-rank model of ratings, of which few are known.
//!
//!     cargo run --release -p lacuna --example factor_analysis -- --help
//!
//! Runs on the first GPU (feature `cuda`), or else on the simulator, where times are times spent simulating.
#[path = "../common/arguments.rs"]
mod arguments;
#[path = "../common/clock.rs"]
mod clock;
mod data;
#[path = "../common/side.rs"]
mod side;
mod solver;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use lacuna::Device;

use crate::arguments::size;
use crate::data::{Ratings, Shape};
use crate::side::Inner;
use crate::solver::{FactorAnalysis, Options};

/// Draws ratings X = A·Bᵀ + noise at some places, and finds A and B again
#[derive(Parser)]
struct Arguments {
    /// Steps: each improves A, then B
    #[arg(long, default_value_t = 12)]
    steps: usize,
    /// Of the ratings, and of the factors to start from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Rows of X
    #[arg(long, default_value_t = 192, value_parser = size())]
    rows: usize,
    /// Columns of X
    #[arg(long, default_value_t = 128, value_parser = size())]
    cols: usize,
    /// Columns of A and B
    #[arg(long, default_value_t = 4, value_parser = size())]
    rank: usize,
    /// The part of X that is not known
    #[arg(long, default_value_t = 0.75, value_parser = part)]
    sparsity: f64,
    /// Standard deviation of what is added to a rating; that of ratings is 1
    #[arg(long, default_value_t = 0.1, value_parser = not_negative)]
    noise: f32,
    /// λ of the objective ½·‖X − A·Bᵀ‖² + ½·λ·(‖A‖² + ‖B‖²)
    #[arg(long, default_value_t = 0.02, value_parser = not_negative)]
    regularization: f32,
    /// Steps of conjugate gradients for a factor
    #[arg(long, default_value_t = 2)]
    cg: usize,
    /// Products at the nonzeros from the dense product, on the host, instead of from SDDMM
    #[arg(long)]
    plain: bool,
}

fn part(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|part| (0.0..=1.0).contains(part)).ok_or("expected is a number of 0 to 1".into())
}

fn not_negative(text: &str) -> Result<f32, String> {
    let good = |number: &f32| number.is_finite() && *number >= 0.0;
    text.parse().ok().filter(good).ok_or("expected is a number from 0 on".into())
}

fn main() -> ExitCode {
    let Err(error) = run(Arguments::parse()) else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    ExitCode::FAILURE
}

fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let Arguments { steps, seed, rows, cols, rank, sparsity, noise, regularization, cg, plain } = arguments;
    let ratings = Ratings::draw(Shape { rows, cols, rank, sparsity, noise }, seed)?;
    let inner = if plain { Inner::Plain } else { Inner::Kernel };
    let device = Device::best()?;
    let options = Options { rank, regularization, cg_steps: cg, inner, seed };
    let mut model = FactorAnalysis::new(&device, &ratings.x, options)?;

    println!("{rows}×{cols}, {} ratings, rank {rank}, seed {seed}, {}", ratings.x.nnz(), device.info().name);
    println!("{:>5}  {:>12}  {:>9}  {:>9}  {:>9}", "step", "objective", "error", "ms", "inner ms");
    for step in 1..=steps {
        let progress = model.step()?;
        let (objective, error) = (progress.objective, progress.error);
        println!("{step:>5}  {objective:>12.4}  {error:>9.4}  {}", progress.took);
    }
    println!(
        "error where nothing was known: {:.4}; noise: {noise}",
        ratings.unseen_error(&model.a, &model.b)
    );
    Ok(())
}
