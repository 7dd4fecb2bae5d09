//! rust-cuda's route: the kernels by its code generator, and the check that keeps them compiling without it.
//! docs/rust-cuda.md tells of both.
pub(crate) mod check;
#[cfg(test)]
mod entries;
mod manifest;
mod toolchain;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, bail};

use crate::outcome::Missing;
use crate::paths;
pub(crate) use toolchain::MissingToolchain;
use toolchain::{Machine, Pin, Toolchain};

/// The workspace of this route, from the repository's root.
const FOLDER: &str = "rust-cuda";

/// Writes `<into>/<target>.ptx` for every target, as rust-cuda's code generator makes them.
///
/// # Errors
/// [`MissingToolchain`] with everything that this machine lacks; sources that cannot be fetched; a build that fails.
pub(crate) fn modules(into: &Path) -> anyhow::Result<()> {
    let folder = paths::root().join(FOLDER);
    let pin = Pin::read(&folder)?;
    let toolchain = Toolchain::find(&Machine::of_user(), &pin)?;
    fetch(&folder, &toolchain)?;
    eprintln!("{} by {}, {}", pin.revision, toolchain.channel, toolchain.libnvvm.display());
    let mut command = cargo(&folder, &toolchain);
    command.args([
        "run",
        "--release",
        "--locked",
        "--offline",
        "--package",
        "lacuna-rust-cuda-builder",
        "--",
    ]);
    let status = command.arg(into).status().context("rustup does not run")?;
    if !status.success() {
        bail!("rust-cuda's code generator did not build the kernels; what it said stands above");
    }
    Ok(())
}

/// Fetches the pinned sources, unless cargo has them.
fn fetch(folder: &Path, toolchain: &Toolchain) -> anyhow::Result<()> {
    let output =
        cargo(folder, toolchain).args(["fetch", "--locked"]).output().context("rustup does not run")?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Missing(format!(
        "the sources of rust-cuda cannot be fetched, which takes git access to its public repository: {why}"
    ))
    .into())
}

/// The pinned nightly's cargo, with libNVVM where programs find it, and without what the cargo that runs this has set.
fn cargo(folder: &Path, toolchain: &Toolchain) -> Command {
    let mut command = Command::new("rustup");
    forget_outer_cargo(&mut command);
    command.args(["run", &toolchain.channel, "cargo"]).current_dir(folder);
    let own = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let own = env::split_paths(&own).filter(|folder| !folder.as_os_str().is_empty());
    let libraries = toolchain.libnvvm.parent().map(Path::to_path_buf);
    if let Ok(path) = env::join_paths(libraries.into_iter().chain(own)) {
        command.env("LD_LIBRARY_PATH", path);
    }
    command
}

/// Takes away what cargo and rustup have put into the environment of this program. Settings of the network stay.
fn forget_outer_cargo(command: &mut Command) {
    const KEPT: [&str; 5] = ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTR", "CARGO_TARGET_DIR"];
    for (name, _) in env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        let of_cargo = name.starts_with("CARGO") && !KEPT.iter().any(|kept| name.starts_with(kept));
        if of_cargo || name.starts_with("RUSTC") || name == "RUSTUP_TOOLCHAIN" || name == "RUSTFLAGS" {
            command.env_remove(name);
        }
    }
}

/// Reads a file of the repository.
fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
