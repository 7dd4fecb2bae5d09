//! Lacuna's commands. `cargo xtask help` lists them.
//!
//! Exit codes: 0 good, 1 a failure found, 2 bad usage, 3 something missing on the machine, with how to get it.
mod bench;
mod build;
mod cargo;
mod dist;
mod doctor;
mod layout;
mod outcome;
mod parts;
mod paths;
mod rust_cuda;
mod setup;
mod verify;
mod wheel;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Sets up a machine for Lacuna, looks at it, builds, checks and measures.
#[derive(Parser)]
#[command(name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Installs what this machine lacks: the device compiler, ptxas, a link library for the CUDA driver, and MPI
    Setup,
    /// Reports what is there and the fix for what is not; changes nothing
    Doctor,
    /// Builds the kernels' PTX and compares what they take of a GPU with docs/resources
    Build(build::Arguments),
    /// Type-checks rust-cuda's route against the sources of its `cuda_std`: see docs/rust-cuda.md
    CheckRustCuda(rust_cuda::check::Arguments),
    /// Runs every check: tests, the kernels' build, lints, and the conformance suite; ends with the seconds of each part
    Verify(verify::Arguments),
    /// Runs the benchmarks on the GPU, or else on the simulator
    Bench(bench::Arguments),
    /// Packs the programs for a GPU node that has no Rust
    Dist(dist::Arguments),
    /// Builds the Python package as a wheel
    Wheel(wheel::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Setup => setup::run(),
        Command::Doctor => doctor::run(),
        Command::Build(arguments) => build::run(&arguments),
        Command::CheckRustCuda(arguments) => rust_cuda::check::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Dist(arguments) => dist::run(&arguments),
        Command::Wheel(arguments) => wheel::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            outcome::exit_code(&error)
        }
    }
}
