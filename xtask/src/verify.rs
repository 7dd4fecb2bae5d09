//! `cargo xtask verify`: every check there is. What CI runs.
use std::time::Instant;

use lacuna_ptx::Cache;

use crate::{build, cargo, doctor, layout, setup};

pub(crate) fn run() -> anyhow::Result<()> {
    let start = Instant::now();
    let shell = cargo::shell()?;
    layout::check()?;
    // First what installs the device compiler and ptxas, which some of the tests use.
    setup::ptxas(&Cache::of_user()?)?;
    build::run(&build::Arguments::default())?;
    cargo::run(&shell, &["test", "--workspace", "--quiet", "--locked"])?;
    cargo::run(&shell, &["check", "--quiet", "--manifest-path", "fuzz/Cargo.toml"])?;
    // The rest needs the driver's names to link, and the kernels' PTX; not a GPU.
    cargo::enable_cuda(&shell)?;
    let lints = ["clippy", "--workspace", "--all-targets", "--all-features", "--quiet", "--", "-Dwarnings"];
    cargo::run(&shell, &lints)?;
    let packages = ["--package=lacuna", "--package=lacuna-bench", "--package=lacuna-verify"];
    let features = "--features=lacuna/cuda,lacuna-bench/cuda,lacuna-verify/cuda";
    let tests = ["test", "--quiet", "--lib", "--bins", "--test=driver", features];
    cargo::run(&shell, &[&tests, &packages[..]].concat())?;
    let conformance = cargo::program(&shell, "lacuna-verify", true)?;
    let device = if doctor::has_gpu() { "all" } else { "sim" };
    cargo::run_program(&shell, &conformance, ["--device", device])?;
    eprintln!("verified in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
