//! `lacuna-verify`: see `--help`.
use std::process::ExitCode;

use clap::Parser;
use lacuna_verify::cli::{self, Cli};

fn main() -> ExitCode {
    cli::main(&Cli::parse())
}
