//! `cargo xtask dist`: one folder for a GPU node, which needs neither Rust nor this repository.
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use xshell::{Shell, cmd};

use crate::outcome::Missing;
use crate::{cargo, paths};

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
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let shell = cargo::shell()?;
    cargo::enable_cuda(&shell)?;
    let out = paths::root().join(&arguments.out);
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
