//! Running cargo on the workspace.
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use lacuna_ptx::Cache;
use xshell::{Shell, cmd};

use crate::outcome::Failed;
use crate::{paths, setup};

/// A shell in the repository's root.
pub(crate) fn shell() -> anyhow::Result<Shell> {
    let shell = Shell::new()?;
    shell.change_dir(paths::root());
    Ok(shell)
}

/// Lets what `shell` runs from now on build with feature `cuda`, installing what that needs.
pub(crate) fn enable_cuda(shell: &Shell) -> anyhow::Result<()> {
    let cache = Cache::of_user()?;
    setup::compiler(&cache)?;
    shell.set_var("CUDA_LIBRARY_PATH", setup::cuda_library_path(&cache)?);
    Ok(())
}

/// The cargo that runs this.
fn cargo() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// Runs cargo with these arguments, shown first.
pub(crate) fn run(shell: &Shell, arguments: &[&str]) -> anyhow::Result<()> {
    let cargo = cargo();
    eprintln!("$ cargo {}", arguments.join(" "));
    cmd!(shell, "{cargo} {arguments...}").quiet().run().with_context(|| format!("cargo {}", arguments[0]))
}

/// Builds a program in release, and tells where it lies.
pub(crate) fn program(shell: &Shell, package: &str, cuda: bool) -> anyhow::Result<PathBuf> {
    Ok(release(shell, package, &[], cuda)?.join(package))
}

/// Builds an example of a package in release, and tells where it lies.
pub(crate) fn example(shell: &Shell, package: &str, example: &str, cuda: bool) -> anyhow::Result<PathBuf> {
    Ok(release(shell, package, &["--example", example], cuda)?.join("examples").join(example))
}

/// Builds what is named of a package in release, and gives the folder of what is built so.
fn release(shell: &Shell, package: &str, what: &[&str], cuda: bool) -> anyhow::Result<PathBuf> {
    let features: &[&str] = if cuda { &["--features", "cuda"] } else { &[] };
    run(shell, &[&["build", "--release", "--package", package], what, features].concat())?;
    Ok(target_folder(shell)?.join("release"))
}

/// What cargo says of the workspace's packages.
pub(crate) fn metadata(shell: &Shell) -> anyhow::Result<serde_json::Value> {
    let cargo = cargo();
    let metadata = cmd!(shell, "{cargo} metadata --no-deps --format-version 1").quiet().read()?;
    Ok(serde_json::from_str(&metadata)?)
}

/// The folder that cargo builds to.
pub(crate) fn target_folder(shell: &Shell) -> anyhow::Result<PathBuf> {
    Ok(metadata(shell)?["target_directory"].as_str().context("cargo metadata names no target folder")?.into())
}

/// Compiles the tests of `cargo {test}`, and tells where these packages' programs lie that they were compiled with: in
/// the tests' profile, which checks overflow and debug assertions.
pub(crate) fn tested_programs<const N: usize>(
    shell: &Shell,
    test: &[&str],
    names: [&str; N],
) -> anyhow::Result<[PathBuf; N]> {
    let cargo = cargo();
    eprintln!("$ cargo {} --no-run", test.join(" "));
    let messages = cmd!(shell, "{cargo} {test...} --no-run --quiet --message-format=json-render-diagnostics");
    let messages = messages.quiet().read().context("the tests do not compile")?;
    let mut programs = [const { PathBuf::new() }; N];
    for (program, name) in programs.iter_mut().zip(names) {
        let found = messages.lines().find_map(|message| executable(message, name));
        *program = found.with_context(|| format!("`cargo test` builds no program {name}"))?;
    }
    Ok(programs)
}

/// Where the program of this name lies, if the message is that cargo has it.
fn executable(message: &str, name: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let is_it = message["reason"] == "compiler-artifact"
        && message["target"]["name"] == name
        && message["target"]["kind"][0] == "bin"
        && message["profile"]["test"] == false;
    is_it.then(|| message["executable"].as_str().map(PathBuf::from))?
}

/// Runs a program of ours in the repository's root, and passes its failure on.
pub(crate) fn run_program<A: AsRef<OsStr>>(
    shell: &Shell,
    program: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> anyhow::Result<()> {
    let status = Command::new(program).args(arguments).current_dir(shell.current_dir()).status();
    let status = status.with_context(|| format!("{} cannot be run", program.display()))?;
    if status.success() { Ok(()) } else { Err(Failed { code: status.code() }.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_told_from_its_tests_and_from_other_crates() {
        let message = |name: &str, kind: &str, test: bool| {
            let target = serde_json::json!({ "name": name, "kind": [kind] });
            let profile = serde_json::json!({ "test": test });
            let reason = "compiler-artifact";
            let message = serde_json::json!({ "reason": reason, "target": target, "profile": profile, "executable": "p" });
            executable(&message.to_string(), "lacuna-verify")
        };
        assert_eq!(message("lacuna-verify", "bin", false), Some("p".into()));
        assert_eq!(message("lacuna-verify", "bin", true), None);
        assert_eq!(message("lacuna-verify", "lib", false), None);
        assert_eq!(message("lacuna-bench", "bin", false), None);
        assert_eq!(executable("{\"reason\":\"build-finished\",\"success\":true}", "lacuna-verify"), None);
        assert_eq!(executable("", "lacuna-verify"), None);
    }
}
