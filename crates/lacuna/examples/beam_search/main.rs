//! Beam search over a small model: the best sentences, found on a device, and the same in plain Rust.
//!
//!     cargo run --release -p lacuna --example beam_search -- --help
//!
//! Runs on the first GPU (feature `cuda`), or else on the simulator.
#[path = "../common/arguments.rs"]
mod arguments;
mod model;
mod plain;
mod search;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use lacuna::Device;

use crate::arguments::size;
use crate::model::Model;

/// Finds the most probable sentences of a model that is drawn, by beam search
#[derive(Parser)]
struct Arguments {
    /// Of the model
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Sentences
    #[arg(long, default_value_t = 3, value_parser = size())]
    sentences: usize,
    /// Beams of a sentence, up to 64
    #[arg(long, default_value_t = 4, value_parser = size())]
    beams: usize,
    /// Tokens that there are
    #[arg(long, default_value_t = 200, value_parser = size())]
    vocabulary: usize,
    /// Tokens of a sentence at most
    #[arg(long, default_value_t = 8, value_parser = size())]
    length: usize,
}

fn main() -> ExitCode {
    let Err(error) = run(&Arguments::parse()) else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    ExitCode::FAILURE
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let &Arguments { seed, sentences, beams, vocabulary, length } = arguments;
    let model = Model::draw(vocabulary, sentences, seed);
    let device = Device::best()?;
    let found = search::search(&device, &model, sentences, beams, length)?;
    let expected = plain::search(&model, sentences, beams, length);
    println!("{vocabulary} tokens, {beams} beams, seed {seed}, {}", device.info().name);
    for (sentence, (found, expected)) in found.iter().zip(&expected).enumerate() {
        for (found, expected) in found.iter().zip(expected) {
            println!("{sentence:>4}  {:>9.4}  {:?}", found.score, found.tokens);
            if found.tokens != expected.tokens {
                return Err(format!("plain Rust finds {:?}, {:.4}", expected.tokens, expected.score).into());
            }
        }
    }
    println!("the same as in plain Rust");
    Ok(())
}
