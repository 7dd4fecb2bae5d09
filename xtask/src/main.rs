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
mod package;
mod parts;
mod paths;
mod rust_cuda;
mod setup;
mod verify;
mod wheel;
mod without_compiler;

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
    Setup(setup::Arguments),
    /// Reports what is there and the fix for what is not; changes nothing
    Doctor,
    /// Builds the kernels' PTX and compares what they take of a GPU with docs/resources
    Build(build::Arguments),
    /// Type-checks rust-cuda's route against the sources of its `cuda_std`: see docs/rust-cuda.md
    CheckRustCuda(rust_cuda::check::Arguments),
    /// Builds a program outside of the repository with feature `cuda` from an archive of PTX, and runs it: what users without a
    /// device compiler do
    CheckWithoutCompiler,
    /// Runs every check: tests, the kernels' build, lints, and the conformance suite; ends with the seconds of each part
    Verify(verify::Arguments),
    /// Runs the benchmarks on the GPU, or else on the simulator
    Bench(bench::Arguments),
    /// Packs the programs for a GPU node that has no Rust; or the kernels' PTX for builds without a device compiler
    Dist(dist::Arguments),
    /// Builds the Python package as a wheel
    Wheel(wheel::Arguments),
    /// Packs the crates as they would be published, and publishes nothing
    Package(package::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Setup(arguments) => setup::run(&arguments),
        Command::Doctor => doctor::run(),
        Command::Build(arguments) => build::run(&arguments),
        Command::CheckRustCuda(arguments) => rust_cuda::check::run(&arguments),
        Command::CheckWithoutCompiler => without_compiler::run(),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Dist(arguments) => dist::run(&arguments),
        Command::Wheel(arguments) => wheel::run(&arguments),
        Command::Package(arguments) => package::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            outcome::exit_code(&error)
        }
    }
}
