//! `cargo xtask wheel`: the Python package as a wheel; and its tests that need no GPU, for `verify`.
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use lacuna_ptx::Cache;
use xshell::{Shell, cmd};

use crate::setup::{self, Environment};
use crate::{cargo, paths};

/// What `wheel` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder to write the wheel to, from the repository's root
    #[arg(long, value_name = "DIR", default_value = "dist")]
    out: PathBuf,
    /// Leave out the kernels for GPUs: it runs on the simulator alone, and needs no device compiler to build
    #[arg(long)]
    without_cuda: bool,
    /// Compile as for tests: sooner built, and slower on the host
    #[arg(long)]
    dev: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let shell = cargo::shell()?;
    let environment = setup::python(&Cache::of_user()?)?;
    let (maturin, out) = (environment.program("maturin"), paths::root().join(&arguments.out));
    let profile = if arguments.dev { "dev" } else { "release" };
    let mut features = Vec::new();
    if !arguments.without_cuda {
        cargo::enable_cuda(&shell)?;
        features.extend(["--features", "cuda"]);
    }
    let built = cmd!(
        shell,
        "{maturin} build --manifest-path python/Cargo.toml --profile {profile} --out {out} --locked {features...}"
    );
    built.run().context("maturin builds no wheel")?;
    Ok(())
}

/// Tests the package on the simulator, with the module that was built with these features, as the tests are: the simulator is
/// compiled once for both.
pub(crate) fn test(shell: &Shell, environment: &Environment, features: &[&str]) -> anyhow::Result<()> {
    // With `--tests`, features of crates are those of the tests.
    cargo::run(
        shell,
        &[&["build", "--workspace", "--lib", "--tests", "--quiet", "--locked"], features].concat(),
    )?;
    let (scratch, target) = (tempfile::tempdir()?, cargo::target_folder(shell)?);
    lay_out(&target.join("debug/lib_lacuna.so"), &scratch.path().join("lacuna"))?;
    let python = environment.program("python");
    let _path = shell.push_env("PYTHONPATH", scratch.path());
    let _bytecode = shell.push_env("PYTHONDONTWRITEBYTECODE", "1");
    cmd!(shell, "{python} -m pytest -q -p no:cacheprovider -c python/pyproject.toml python/tests").run()?;
    Ok(())
}

/// Puts the package's Python files and its native module into a folder.
fn lay_out(module: &Path, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let sources = paths::root().join("python/lacuna");
    let mut files = 0;
    for entry in fs::read_dir(&sources)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "py") {
            fs::copy(&path, folder.join(path.file_name().context("a file has a name")?))?;
            files += 1;
        }
    }
    ensure!(files > 0, "{} has no Python files", sources.display());
    fs::copy(module, folder.join("_lacuna.abi3.so"))
        .with_context(|| format!("{} cannot be copied", module.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_its_files_and_its_module() {
        let folder = tempfile::tempdir().unwrap();
        let (module, package) = (folder.path().join("lib_lacuna.so"), folder.path().join("lacuna"));
        assert!(lay_out(&module, &package).is_err(), "there is no module yet");
        fs::write(&module, "module").unwrap();
        lay_out(&module, &package).unwrap();
        assert_eq!(fs::read_to_string(package.join("_lacuna.abi3.so")).unwrap(), "module");
        assert!(package.join("__init__.py").is_file() && package.join("torch.py").is_file());
    }
}
