//! ptxas from NVIDIA's Python wheel: no CUDA toolkit needed.
use std::fs;

use anyhow::Context as _;
use lacuna_ptx::{Cache, Ptxas};
use xshell::{Shell, cmd};

use crate::outcome::Missing;

/// One exact release: docs/resources holds its numbers. The 12 series is the last that knows `sm_70`.
const WHEEL: &str = "nvidia-cuda-nvcc-cu12==12.9.86";

/// Puts ptxas into the cache.
pub(crate) fn install(cache: &Cache) -> anyhow::Result<()> {
    let shell = Shell::new()?;
    let python = ["python3", "python"]
        .into_iter()
        .find(|python| {
            cmd!(shell, "{python} -m pip --version")
                .quiet()
                .ignore_status()
                .ignore_stderr()
                .read()
                .is_ok_and(|version| version.starts_with("pip "))
        })
        .ok_or_else(|| {
            Missing(
                "needs python3 with pip: `apt-get install python3-pip`, or name a ptxas in LACUNA_PTXAS"
                    .into(),
            )
        })?;

    let root = cache.root();
    fs::create_dir_all(root).map_err(|source| lacuna_ptx::BuildError::Cache { path: root.into(), source })?;
    let scratch = tempfile::tempdir_in(root)?;
    let (wheels, unpacked) = (scratch.path().join("wheels"), scratch.path().join("unpacked"));
    eprintln!("fetching {WHEEL} for ptxas");
    cmd!(shell, "{python} -m pip download --quiet --no-deps --only-binary=:all: --dest {wheels} {WHEEL}")
        .quiet()
        .run()
        .with_context(|| format!("pip cannot fetch {WHEEL}; or name a ptxas in LACUNA_PTXAS"))?;
    let wheel = fs::read_dir(&wheels)?.next().context("pip fetched nothing")??.path();
    cmd!(shell, "{python} -m zipfile -e {wheel} {unpacked}").quiet().run()?;

    // Only the program is kept, in one step: another process may be installing it too.
    let target = Ptxas::in_cache(cache);
    let folder = target.parent().expect("lies in a folder");
    fs::create_dir_all(folder)?;
    let program = unpacked.join("nvidia/cuda_nvcc/bin/ptxas");
    make_executable(&program)?;
    fs::rename(&program, &target).with_context(|| format!("cannot move ptxas to {}", target.display()))
}

/// `zipfile` forgets permissions.
#[cfg(unix)]
fn make_executable(program: &std::path::Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::set_permissions(program, fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn make_executable(_: &std::path::Path) -> anyhow::Result<()> {
    Ok(())
}
