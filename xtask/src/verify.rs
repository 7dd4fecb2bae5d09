//! `cargo xtask verify`: every check there is. What CI runs.
use std::time::Instant;

use xshell::cmd;

use crate::{build, cargo, doctor, layout, paths};

pub(crate) fn run() -> anyhow::Result<()> {
    let start = Instant::now();
    let shell = cargo::shell()?;
    if let Some(data) = paths::data() {
        shell.set_var("LACUNA_DATA", data);
    }
    layout::check()?;
    cargo::run(&shell, &["test", "--workspace", "--quiet"])?;
    build::run(&build::Arguments::default())?;
    // The rest needs the driver's names to link, and the kernels' PTX; not a GPU.
    cargo::enable_cuda(&shell)?;
    cargo::run(
        &shell,
        &["clippy", "--workspace", "--all-targets", "--all-features", "--quiet", "--", "-Dwarnings"],
    )?;
    cargo::run(&shell, &["test", "--package", "lacuna", "--features", "cuda", "--quiet"])?;
    let conformance = cargo::program(&shell, "lacuna-verify", true)?;
    let device = if doctor::has_gpu() { "all" } else { "sim" };
    cmd!(shell, "{conformance} --device {device}").run()?;
    eprintln!("verified in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
