//! `cargo xtask dist`: one folder for a GPU node, which needs neither Rust nor this repository.
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use lacuna_kernels::{FOLDERS, entries};
use lacuna_ptx::{Archive, Builder, Cache, Identity};
use xshell::{Shell, cmd};

use crate::outcome::Missing;
use crate::{build, cargo, paths, setup};

const PROGRAMS: [&str; 2] = ["lacuna-bench", "lacuna-verify"];

/// Of the library's examples those that take real data.
const EXAMPLES: [&str; 1] = ["sparse_mlp"];

/// What `dist` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder to write, from the repository's root
    #[arg(long, value_name = "DIR", default_value = "dist")]
    out: PathBuf,
    /// Also pack the data folder (LACUNA_DATA)
    #[arg(long)]
    data: bool,
    /// Instead, write the kernels' PTX as one file: builds with feature `cuda` take it where there is no device compiler
    #[arg(long, conflicts_with = "data")]
    ptx: bool,
}

/// How the archive of PTX is called, and looked for.
pub(crate) const ARCHIVE: &str = concat!("lacuna-", env!("CARGO_PKG_VERSION"), ".ptx");

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let out = paths::root().join(&arguments.out);
    if arguments.ptx {
        let path = out.join(ARCHIVE);
        write_ptx(&path)?;
        println!("{}", path.display());
        return Ok(());
    }
    let shell = cargo::shell()?;
    cargo::enable_cuda(&shell)?;
    fs::create_dir_all(&out).with_context(|| format!("{} cannot be made", out.display()))?;
    for name in PROGRAMS {
        pack(&shell, &cargo::program(&shell, name, true)?, &out.join(name))?;
    }
    for name in EXAMPLES {
        pack(&shell, &cargo::example(&shell, "lacuna", name, true)?, &out.join(name))?;
    }
    copy(&paths::root().join("docs/gpu-node.md"), &out.join("README.md"))?;
    if arguments.data {
        let data = paths::data().ok_or_else(|| {
            Missing("there is no data folder to pack: set LACUNA_DATA to the folder with dlmc.tar.xz".into())
        })?;
        copy_folder(&data, &out.join("data"))?;
    }
    println!("{}", out.display());
    Ok(())
}

/// Builds the PTX of all entries for all targets, and writes it as one file.
pub(crate) fn write_ptx(path: &Path) -> anyhow::Result<()> {
    let cache = Cache::of_user()?;
    setup::compiler(&cache)?;
    let built =
        Builder::new(FOLDERS[0]).launch_bounds(build::launch_bounds).resources(false).cache(cache).build()?;
    for module in &built.modules {
        build::check_entries(module, build::Codegen::Rustc)?;
    }
    let bounds = |name: &'static str| build::launch_bounds(name).map(|bounds| (name, bounds));
    let (identity, _) = Identity::of(&FOLDERS, entries::all().filter_map(|entry| bounds(entry.name)))?;
    let archive = Archive::of_build(&built, identity, |_| true);
    let bytes = archive.write(path)?;
    eprintln!("{} entries by {}, {:.1} MB", archive.len(), archive.compiler, bytes as f64 / 1e6);
    Ok(())
}

/// Copies a program, without its line tables: they make it four times as large, and a node that cannot build has no use for them.
fn pack(shell: &Shell, built: &Path, packed: &Path) -> anyhow::Result<()> {
    copy(built, packed)?;
    if cmd!(shell, "strip {packed}").quiet().run().is_err() {
        eprintln!("note: there is no `strip`; {} keeps its line tables", packed.display());
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::copy(from, to).with_context(|| format!("{} cannot be copied to {}", from.display(), to.display()))?;
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    ensure!(!to.starts_with(from), "{} lies in the data folder itself", to.display());
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("{} cannot be read", from.display()))? {
        let path = entry?.path();
        let target = to.join(path.file_name().context("an entry has a name")?);
        if path.is_dir() { copy_folder(&path, &target)? } else { copy(&path, &target)? }
    }
    Ok(())
}
