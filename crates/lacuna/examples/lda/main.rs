//! Latent Dirichlet allocation: the topics behind documents, of which only counts of words are known.
//!
//!     cargo run --release -p lacuna --example lda -- --help
//!
//! Runs on the first GPU (feature `cuda`), or else on the simulator, where times are times spent simulating.
#[path = "../common/arguments.rs"]
mod arguments;
#[path = "../common/clock.rs"]
mod clock;
mod data;
mod matching;
#[path = "../common/side.rs"]
mod side;
mod solver;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use lacuna::Device;

use crate::arguments::size;
use crate::data::{Documents, Shape};
use crate::matching::greedy_cosines;
use crate::side::{Inner, Side};
use crate::solver::{Lda, Options, divergence};

/// Draws documents of known topics, and finds the topics again
#[derive(Parser)]
struct Arguments {
    /// Steps
    #[arg(long, default_value_t = 30)]
    steps: usize,
    /// Of the documents, and of the topics to start from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Documents
    #[arg(long, default_value_t = 192, value_parser = size())]
    documents: usize,
    /// Words that there are
    #[arg(long, default_value_t = 256, value_parser = size())]
    words: usize,
    /// Topics that there are, and that are looked for
    #[arg(long, default_value_t = 4, value_parser = size())]
    topics: usize,
    /// Words of a document, repeated ones counted
    #[arg(long, default_value_t = 100, value_parser = size())]
    length: usize,
    /// Products at the nonzeros from the dense product, on the host, instead of from SDDMM
    #[arg(long)]
    plain: bool,
}

fn main() -> ExitCode {
    let Err(error) = run(Arguments::parse()) else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    ExitCode::FAILURE
}

fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let Arguments { steps, seed, documents, words, topics, length, plain } = arguments;
    let truth = Documents::draw(Shape { documents, words, topics, length }, seed)?;
    let inner = if plain { Inner::Plain } else { Inner::Kernel };
    let device = Device::best()?;
    let options = Options { topics, share_prior: 0.05, word_prior: 0.01, inner, seed };
    let mut model = Lda::new(&device, &truth.counts, options)?;

    let nnz = truth.counts.nnz();
    println!("{documents}×{words}, {nnz} counts, {topics} topics, seed {seed}, {}", device.info().name);
    println!("{:>5}  {:>12}  {:>10}  {:>9}  {:>9}", "step", "objective", "divergence", "ms", "inner ms");
    for step in 1..=steps {
        let progress = model.step()?;
        let (objective, divergence) = (progress.objective, progress.divergence);
        println!("{step:>5}  {objective:>12.6}  {divergence:>10.6}  {}", progress.took);
    }
    let stream = device.stream()?;
    let (mut rows, _) = Side::pair(&device, &stream, &truth.counts, topics, inner)?;
    rows.fix(&truth.topics)?;
    let of_truth = divergence(&truth.counts, &rows.products(&stream, &truth.shares)?);
    println!("divergence of the true topics: {of_truth:.6}");
    let cosines = greedy_cosines(&model.topics, &truth.topics, topics);
    let cosines: Vec<String> = cosines.iter().map(|cosine| format!("{cosine:.3}")).collect();
    println!("cosines of found topics with the true ones: {}", cosines.join(" "));
    Ok(())
}
