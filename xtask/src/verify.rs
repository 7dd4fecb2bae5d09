//! `cargo xtask verify`: every check there is. What CI runs.
//!
//! The host's code is compiled once for tests and conformance cases together: each other choice of packages, features or
//! profile gives other features to crates that all share, and compiles the simulator with all kernels again.
mod ranks;

use lacuna_ptx::Cache;
use xshell::Shell;

use crate::outcome::Missing;
use crate::parts::Parts;
use crate::{build, cargo, doctor, layout, package, setup, wheel};

/// What `verify` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// For daily use. Leaves out the kernels' PTX with its resource table, features `cuda` and `mpi`, the fuzz targets, the
    /// packages and, but for one of each operation, the conformance cases
    #[arg(long)]
    quick: bool,
}

/// What both tiers lint.
const LINTED: [&str; 4] = ["clippy", "--workspace", "--all-targets", "--quiet"];

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let shell = cargo::shell()?;
    let mut parts = Parts::default();
    let result = if arguments.quick { quick(&shell, &mut parts) } else { everything(&shell, &mut parts) };
    eprint!("\n{parts}");
    result
}

/// What needs neither a device compiler nor long.
fn quick(shell: &Shell, parts: &mut Parts) -> anyhow::Result<()> {
    parts.run("parts of each operation", layout::check)?;
    parts.run("tests", || cargo::run(shell, &["test", "--workspace", "--quiet", "--locked"]))?;
    parts.run("lints", || lint(shell, &[]))
}

fn everything(shell: &Shell, parts: &mut Parts) -> anyhow::Result<()> {
    parts.run("parts of each operation", layout::check)?;
    // First what installs the device compiler, ptxas and the driver's names, which tests use or link.
    parts.run("PTX and its resources", || {
        setup::ptxas(&Cache::of_user()?)?;
        build::run(&build::Arguments::default())
    })?;
    parts.run("fuzz targets", || {
        cargo::run(shell, &["check", "--quiet", "--manifest-path", "fuzz/Cargo.toml"])
    })?;
    parts.run("packages", || package::check(shell))?;
    cargo::enable_cuda(shell)?;
    let mpi = parts.run("MPI, to build with", || setup::mpi(&Cache::of_user()?));
    let features: &[&str] = match &mpi {
        Ok(mpi) => {
            mpi.enable(shell);
            &["--all-features"]
        }
        Err(missing) => {
            eprintln!("note: feature `mpi` is left out: {missing:#}");
            &["--features", "cuda"]
        }
    };
    let all = [&["test", "--workspace", "--locked"], features].concat();
    let [conformance, bench] = parts
        .run("tests: compiling", || cargo::tested_programs(shell, &all, ["lacuna-verify", "lacuna-bench"]))?;
    parts.run("tests: running", || cargo::run(shell, &[&all[..], &["--quiet"]].concat()))?;
    let python = setup::python(&Cache::of_user()?);
    match &python {
        Ok(environment) => {
            parts.run("Python package", || wheel::test(shell, environment, features))?;
        }
        Err(missing) => eprintln!("note: the Python package is left out: {missing:#}"),
    }
    if let Ok(mpi) = &mpi {
        parts.run("several ranks (MPI)", || ranks::check(shell, mpi, &bench))?;
    }
    parts.run("tests without CUDA", || {
        cargo::run(shell, &["test", "--workspace", "--test=without_cuda", "--quiet", "--locked"])
    })?;
    parts.run("lints, all features", || lint(shell, features))?;
    parts.run("lints without CUDA", || lint(shell, &[]))?;
    let device = if doctor::has_gpu() { "all" } else { "sim" };
    parts.run("conformance cases", || cargo::run_program(shell, &conformance, ["--device", device]))?;
    // Last, so that all else is checked on a machine without MPI or PyPI too.
    not_run("several ranks (MPI)", mpi.err())?;
    not_run("Python package", python.err())
}

/// The error of a part that something was missing for.
fn not_run(part: &str, missing: Option<anyhow::Error>) -> anyhow::Result<()> {
    let Some(missing) = missing else { return Ok(()) };
    Err(Missing(format!("all else is well, but the part \"{part}\" was not run: {missing:#}")).into())
}

fn lint(shell: &Shell, features: &[&str]) -> anyhow::Result<()> {
    cargo::run(shell, &[&LINTED[..], features, &["--", "-Dwarnings"]].concat())
}
