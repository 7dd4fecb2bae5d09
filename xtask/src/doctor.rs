//! `cargo xtask doctor`: what is on this machine, and the fix for what is not. Changes nothing.
mod cuda;

use std::process::Command;

use lacuna_peers::Peers;
use lacuna_ptx::{Cache, DeviceCompiler, Ptxas};
use lacuna_vendor::Search;

use crate::outcome::Missing;
use crate::paths;
use crate::setup::Mpi;

/// One line of the report.
struct Finding {
    what: &'static str,
    /// What was found; or why not, and the fix.
    state: Result<String, Fix>,
    /// Whether nothing works without it. What is not needed serves a GPU, or the check of resources.
    needed: bool,
}

/// What is wrong, and what to do about it.
struct Fix {
    wrong: String,
    fix: &'static str,
}

const SETUP: &str = "cargo xtask setup";

pub(crate) fn run() -> anyhow::Result<()> {
    let findings = findings();
    for finding in &findings {
        match &finding.state {
            Ok(found) => println!("  ok  {:<18} {found}", finding.what),
            Err(Fix { wrong, fix }) => {
                let mark = if finding.needed { "FAIL" } else { " -- " };
                println!("{mark}  {:<18} {wrong}", finding.what);
                println!("      {:<18} fix: {fix}", "");
            }
        }
    }
    let lacking: Vec<_> =
        findings.iter().filter(|finding| finding.needed && finding.state.is_err()).map(|f| f.what).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    Err(Missing(format!("this machine lacks: {}; the fixes stand above", lacking.join(", "))).into())
}

/// Whether there is a GPU that the driver shows.
pub(crate) fn has_gpu() -> bool {
    cuda::driver().is_ok()
}

fn findings() -> Vec<Finding> {
    let cache = Cache::of_user();
    let needed = |what, state| Finding { what, state, needed: true };
    let optional = |what, state| Finding { what, state, needed: false };
    let mut findings = vec![
        needed("Rust", version_of("rustc", "install Rust from https://rustup.rs")),
        needed("C compiler", version_of("cc", "apt-get install gcc libc6-dev")),
        needed("cache", cache.as_ref().map_err(|error| cache_fix(error.to_string())).and_then(writable)),
    ];
    if let Ok(cache) = &cache {
        findings.push(optional("device compiler", device_compiler(cache)));
        findings.push(optional("ptxas", ptxas(cache)));
        findings.push(optional("CUDA link library", link_library(cache)));
        findings.push(optional("MPI", mpi(cache)));
    }
    findings.push(optional("CUDA driver", cuda::driver()));
    findings.extend(peers().map(|(what, state)| optional(what, state)));
    findings.push(optional("data", data()));
    findings
}

fn version_of(program: &str, fix: &'static str) -> Result<String, Fix> {
    let output = Command::new(program).arg("--version").output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
        }
        Ok(output) => Err(Fix { wrong: format!("`{program} --version` fails: {}", output.status), fix }),
        Err(error) => Err(Fix { wrong: format!("`{program}` does not run: {error}"), fix }),
    }
}

fn cache_fix(wrong: String) -> Fix {
    Fix { wrong, fix: "set LACUNA_CACHE_DIR to a writable directory" }
}

/// Whether a file can be made in the cache, or in the nearest folder above it that exists.
fn writable(cache: &Cache) -> Result<String, Fix> {
    let existing = cache.root().ancestors().find(|folder| folder.exists()).unwrap_or(cache.root());
    match tempfile::tempfile_in(existing) {
        Ok(_) => Ok(cache.root().display().to_string()),
        Err(error) => Err(cache_fix(format!("{}: {error}", existing.display()))),
    }
}

fn device_compiler(cache: &Cache) -> Result<String, Fix> {
    match DeviceCompiler::find(cache) {
        Ok(found) => Ok(format!("{} at {}, from {}", found.version, found.rustc.display(), found.source)),
        Err(lacuna_ptx::BuildError::NoCompiler { minimum, .. }) => {
            Err(Fix { wrong: format!("no rustc {minimum} with its library sources"), fix: SETUP })
        }
        Err(error) => Err(Fix { wrong: error.to_string(), fix: SETUP }),
    }
}

fn ptxas(cache: &Cache) -> Result<String, Fix> {
    match Ptxas::find(cache) {
        Ok(Some(found)) => Ok(format!("{} at {}", found.version, found.path.display())),
        Ok(None) => Err(Fix { wrong: "not found: registers and spills are not checked".into(), fix: SETUP }),
        Err(error) => Err(Fix { wrong: error.to_string(), fix: SETUP }),
    }
}

fn link_library(cache: &Cache) -> Result<String, Fix> {
    let path = cache.cuda_library_path();
    if path.join("lib64/libcuda.so").is_file() {
        Ok(format!("CUDA_LIBRARY_PATH={}", path.display()))
    } else {
        Err(Fix { wrong: "not made yet: feature `cuda` does not link".into(), fix: SETUP })
    }
}

fn mpi(cache: &Cache) -> Result<String, Fix> {
    let lacking =
        || Fix { wrong: "no OpenMPI with libclang: feature `mpi` does not build".into(), fix: SETUP };
    Mpi::find(cache).map(|found| found.to_string()).ok_or_else(lacking)
}

/// The libraries that `lacuna-bench --peers` compares with, where it looks for them.
fn peers() -> impl Iterator<Item = (&'static str, Result<String, Fix>)> {
    let fix = "install the CUDA toolkit, or set LACUNA_PEERS_PATH to the folders of its libraries";
    let lacking = |name: &str| Fix { wrong: format!("{name} is not there: no comparison with it"), fix };
    let peers = Peers::load(&Search::from_env());
    let cusparse = peers.cusparse.map(|library| library.path().display().to_string());
    let cublas = peers.cublas.map(|library| library.path().display().to_string());
    let cudnn = peers.cudnn.map(|library| library.path().display().to_string());
    [
        ("cuSPARSE", cusparse.map_err(|_| lacking("cuSPARSE"))),
        ("cuBLAS", cublas.map_err(|_| lacking("cuBLAS"))),
        ("cuDNN", cudnn.map_err(|_| lacking("cuDNN"))),
    ]
    .into_iter()
}

fn data() -> Result<String, Fix> {
    paths::data().map(|folder| folder.display().to_string()).ok_or_else(|| Fix {
        wrong: "no real matrices: only generated ones are used".into(),
        fix: "set LACUNA_DATA to a folder with dlmc/ and graphs/, or dlmc.tar.xz and graphs.tar.xz",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_program_comes_with_its_fix() {
        let Err(fix) = version_of("lacuna-no-such-program", "the fix") else { panic!("it exists") };
        assert!(fix.wrong.contains("lacuna-no-such-program"));
        assert_eq!(fix.fix, "the fix");
    }

    #[test]
    fn a_cache_below_a_file_is_not_writable() {
        let dir = tempfile::tempdir().unwrap();
        assert!(writable(&Cache::at(dir.path().join("new/cache"))).is_ok());
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(writable(&Cache::at(file.join("cache"))).is_err());
    }

    #[test]
    fn what_setup_makes_is_missed_before() {
        let dir = tempfile::tempdir().unwrap();
        assert!(link_library(&Cache::at(dir.path())).is_err());
    }
}
