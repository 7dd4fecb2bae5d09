//! `cargo xtask check-rust-cuda`: type-checks rust-cuda's route against the sources of `cuda_std`, without its code
//! generator.
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use lacuna_ptx::{BuildError, Cache, DeviceCompiler};

use super::{FOLDER, forget_outer_cargo, manifest};
use crate::outcome::Usage;
use crate::paths;

/// What `check-rust-cuda` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder of rust-cuda's sources, or of its crate `cuda_std`
    #[arg(long, value_name = "DIR", env = "LACUNA_CUDA_STD")]
    cuda_std: PathBuf,
}

/// As `cuda_builder` calls rustc, but for the code generator; and the levels that the route builds.
const DEVICE_FLAGS: [&str; 8] = [
    "-Zunstable-options",
    "-Zcrate-attr=feature(register_tool)",
    "-Zcrate-attr=register_tool(nvvm_internal)",
    "-Zcrate-attr=no_std",
    "-Cpanic=immediate-abort",
    "-Ctarget-cpu=sm_80",
    LEVELS[0],
    LEVELS[1],
];
const LEVELS: [&str; 2] = ["--cfg=lacuna_sm=\"70\"", "--cfg=lacuna_sm=\"80\""];

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let cuda_std = sources(&arguments.cuda_std)?;
    let cache = Cache::of_user()?;
    let work = cache.root().join("work/rust-cuda-check");
    manifest::write(&work, &paths::root().join(FOLDER), &cuda_std)?;
    let revision = revision(&cuda_std).unwrap_or_else(|| "of an unknown revision".into());

    let cargo = std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from);
    let mut host = Command::new(&cargo);
    forget_outer_cargo(&mut host);
    // The one beside it: rustup's own `rustc` would go by a toolchain file that lies with the sources of `cuda_std`.
    let rustc = Some(cargo.with_file_name("rustc")).filter(|rustc| rustc.is_file());
    let rustc = rustc.unwrap_or_else(|| "rustc".into());
    host.args(["check", "--quiet"]).env("RUSTC", &rustc).env("CARGO_ENCODED_RUSTFLAGS", LEVELS.join("\x1f"));
    check(host, &work, "host")?;
    println!("host, {}: RustCuda and all entries type-check against cuda_std {revision}", version(&rustc));

    match DeviceCompiler::find(&cache) {
        Ok(compiler) => {
            check(on_device(&compiler), &work, "nvptx64")?;
            println!("nvptx64, {}: the same, with the assembly's operands", compiler.version);
        }
        Err(error @ BuildError::NoCompiler { .. }) => {
            println!("nvptx64: not checked, for want of a device compiler (cargo xtask setup)");
            eprintln!("note: {error}");
        }
        Err(error) => return Err(error.into()),
    }
    println!("not checked: rust-cuda's code generator, libNVVM, and anything that runs");
    Ok(())
}

/// The folder of the crate, given it or the repository.
fn sources(given: &Path) -> anyhow::Result<PathBuf> {
    let found = [given.join("crates/cuda_std"), given.to_path_buf()]
        .into_iter()
        .find(|folder| folder.join("src/warp.rs").is_file() && folder.join("Cargo.toml").is_file());
    let Some(found) = found else {
        let text = format!(
            "--cuda-std: {} is neither rust-cuda's repository nor its folder crates/cuda_std: give a checkout of the \
             revision that rust-cuda/Cargo.toml names",
            given.display()
        );
        return Err(Usage(text).into());
    };
    found.canonicalize().with_context(|| format!("cannot find {}", found.display()))
}

/// The commit that lies there, if git knows.
fn revision(folder: &Path) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(["rev-parse", "HEAD"]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && text.len() == 40).then_some(text)
}

/// What `rustc --version` prints.
fn version(rustc: &Path) -> String {
    let output = Command::new(rustc).arg("--version").output();
    output
        .map_or_else(|error| error.to_string(), |out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

fn on_device(compiler: &DeviceCompiler) -> Command {
    let mut command = compiler.command(&compiler.cargo);
    forget_outer_cargo(&mut command);
    command
        .args(["check", "--quiet", "--release", "-Zbuild-std=core,alloc", "--target=nvptx64-nvidia-cuda"])
        .env("RUSTC", &compiler.rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        // As `cuda_builder` does.
        .env("CARGO_FEATURE_NO_F16_F128", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", DEVICE_FLAGS.join("\x1f"));
    command
}

/// Runs a check in the folder; what the compiler says goes through where it fails.
fn check(mut command: Command, work: &Path, what: &str) -> anyhow::Result<()> {
    command.current_dir(work).env("CARGO_TARGET_DIR", work.join("target"));
    let output = command.output().context("cargo does not run")?;
    if !output.status.success() {
        bail!(
            "{what}: rust-cuda's route does not type-check against {FOLDER}'s `cuda_std`:\n{}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_found_in_the_repository_and_by_themselves() {
        let dir = tempfile::tempdir().unwrap();
        let error = sources(dir.path()).unwrap_err();
        assert!(error.is::<Usage>() && error.to_string().contains("crates/cuda_std"), "{error}");
        let inner = dir.path().join("crates/cuda_std");
        std::fs::create_dir_all(inner.join("src")).unwrap();
        std::fs::write(inner.join("Cargo.toml"), "").unwrap();
        std::fs::write(inner.join("src/warp.rs"), "").unwrap();
        let inner = inner.canonicalize().unwrap();
        assert_eq!(sources(dir.path()).unwrap(), inner);
        assert_eq!(sources(&inner).unwrap(), inner);
    }
}
