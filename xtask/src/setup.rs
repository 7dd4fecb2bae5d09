//! `cargo xtask setup`: installs what this machine lacks. What is there is left alone.
mod debian;
mod link;
mod mpi;
mod ptxas_wheel;
mod python;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use lacuna_ptx::{BuildError, Cache, DeviceCompiler, Ptxas};
use xshell::{Shell, cmd};

pub(crate) use self::mpi::Mpi;
pub(crate) use self::python::Environment;
use crate::outcome::Missing;

/// Debian's device compiler, its cargo, and the sources of its library.
const COMPILER: debian::Packages = debian::Packages {
    names: &["rustc-web", "cargo-web", "rust-web-src"],
    own: &["libllvm", "libstd-rust-web"],
    root: Cache::debian_root,
    tidy: keep_library_sources,
};

/// Toolchain that rustup is asked for where there are no Debian packages.
const RUSTUP_TOOLCHAIN: &str = "1.96.0";

/// What `setup` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only the link library for the CUDA driver: all that a build with an archive of PTX needs
    #[arg(long)]
    link: bool,
}

/// Tries every part, and fails at the end with what could not be had.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let cache = Cache::of_user()?;
    if arguments.link {
        println!("{}", cuda_library_path(&cache)?.display());
        return Ok(());
    }
    let parts: [(&str, anyhow::Result<String>); 4] = [
        ("device compiler", compiler(&cache).map(|found| format!("{} ({})", found.version, found.source))),
        ("ptxas", ptxas(&cache).map(|found| format!("{} ({})", found.version, found.path.display()))),
        ("CUDA link library", cuda_library_path(&cache).map(|path| path.display().to_string())),
        ("MPI", mpi(&cache).map(|mpi| mpi.to_string())),
    ];
    let mut failed = Vec::new();
    for (part, result) in parts {
        match result {
            Ok(found) => println!("{part}: {found}"),
            Err(error) => failed.push(format!("{part}: {error:#}")),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Missing(failed.join("\n")).into()) }
}

/// The device compiler, installed first if need be: Debian's packages, or else a toolchain of rustup's.
pub(crate) fn compiler(cache: &Cache) -> anyhow::Result<DeviceCompiler> {
    let missing = match DeviceCompiler::find(cache) {
        Ok(compiler) => return Ok(compiler),
        Err(error @ BuildError::NoCompiler { .. }) => error,
        Err(error) => return Err(error.into()),
    };
    let debian = debian::install(&COMPILER, cache);
    if debian.is_ok() {
        return Ok(DeviceCompiler::find(cache)?);
    }
    let rustup = rustup();
    if rustup.is_ok() {
        return Ok(DeviceCompiler::find(cache)?);
    }
    let tried = [("Debian's packages", debian), ("rustup", rustup)]
        .map(|(way, result)| format!("{way}: {:#}", result.expect_err("both failed")));
    Err(anyhow!(missing).context(format!("tried in vain:\n  {}", tried.join("\n  "))))
}

/// Of the compiler's sources only the library's are needed: a tenth.
fn keep_library_sources(system: &Path) -> anyhow::Result<()> {
    for release in fs::read_dir(system.join("usr/src"))? {
        for entry in fs::read_dir(release?.path())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() && entry.file_name() != "library" {
                fs::remove_dir_all(entry.path())?;
            }
        }
    }
    Ok(())
}

fn rustup() -> anyhow::Result<()> {
    let shell = Shell::new()?;
    eprintln!("installing Rust {RUSTUP_TOOLCHAIN} with its sources through rustup");
    cmd!(shell, "rustup toolchain install {RUSTUP_TOOLCHAIN} --profile minimal --component rust-src")
        .quiet()
        .ignore_stdout()
        .run()?;
    Ok(())
}

/// ptxas, fetched first if need be.
pub(crate) fn ptxas(cache: &Cache) -> anyhow::Result<Ptxas> {
    if let Some(ptxas) = Ptxas::find(cache)? {
        return Ok(ptxas);
    }
    ptxas_wheel::install(cache)?;
    Ptxas::find(cache)?
        .ok_or_else(|| Missing("the ptxas of the wheel does not run on this machine".into()).into())
}

/// What to set `CUDA_LIBRARY_PATH` to when building with feature `cuda`: a folder whose `lib64` holds a library
/// that programs link instead of the driver. They start on machines without one.
pub(crate) fn cuda_library_path(cache: &Cache) -> anyhow::Result<PathBuf> {
    link::install(cache)?;
    Ok(cache.cuda_library_path())
}

/// What the Python package is built and tested with, installed first if need be.
pub(crate) fn python(cache: &Cache) -> anyhow::Result<Environment> {
    Environment::in_cache(cache)
}

/// What feature `mpi` is built and run with, installed first if need be.
pub(crate) fn mpi(cache: &Cache) -> anyhow::Result<Mpi> {
    if let Some(mpi) = Mpi::find(cache) {
        return Ok(mpi);
    }
    let found = mpi::install(cache).map(|()| Mpi::find(cache));
    let why = match found {
        Ok(Some(mpi)) => return Ok(mpi),
        Ok(None) => "Debian's packages are not enough".into(),
        Err(error) => format!("{error:#}"),
    };
    Err(Missing(format!("{}; tried in vain: {why}", mpi::WANTED)).into())
}
