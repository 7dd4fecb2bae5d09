//! `lacuna-bench`: see `--help`, and docs/benchmarks.md.
use std::process::ExitCode;

use clap::Parser;
use lacuna_bench::allocations::Counting;
use lacuna_bench::cli::{Cli, Command};
use lacuna_bench::commands;
use lacuna_cases::exit;

/// For suite `host`, which tells what calls allocate and hold.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(options) => commands::run(&options),
        Command::Sweep(options) => commands::sweep(&options),
        Command::Stats(options) => commands::stats(&options),
        Command::Compare(options) => commands::compare(&options),
        Command::Ablation(options) => commands::ablation(&options),
        Command::Oracle(options) => commands::oracle(&options),
        Command::Transpose(options) => commands::transpose(&options),
        Command::Conv(options) => commands::conv(&options),
        Command::Pool(options) => commands::pool(&options),
        Command::Prune(options) => commands::prune(&options),
        Command::Spdnn(options) => commands::spdnn(&options),
        Command::Model(options) => commands::model(&options),
        Command::Import(options) => commands::import(&options),
        Command::Decoder(options) => commands::decoder(&options),
        Command::Plot(options) => commands::plot(&options),
        Command::Fit(options) => commands::fit(&options),
        Command::Tables(options) => commands::tables(&options),
    };
    exit::finish("lacuna-bench", result)
}
