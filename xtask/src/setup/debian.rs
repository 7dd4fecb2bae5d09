//! The device compiler from Debian's packages: installed as root, or unpacked into the cache without.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use lacuna_ptx::Cache;
use xshell::{Cmd, Shell, cmd};

/// The compiler, its cargo, and the sources of its library.
const PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

/// Gets the packages, whichever way this user may.
pub(crate) fn install(cache: &Cache) -> anyhow::Result<()> {
    let shell = Shell::new()?;
    ensure!(cmd!(shell, "apt-get --version").quiet().ignore_stdout().run().is_ok(), "there is no apt-get");
    if cmd!(shell, "id -u").quiet().read()? == "0" {
        match install_as_root(&shell) {
            Ok(()) => return Ok(()),
            Err(error) => eprintln!("apt-get does not install ({error:#}): unpacking into the cache instead"),
        }
    }
    unpack(&shell, cache)
}

fn install_as_root(shell: &Shell) -> anyhow::Result<()> {
    Apt::known_to_all(shell)?;
    eprintln!("installing {}", PACKAGES.join(" "));
    // These packages conflict with Debian's older rustc; --no-remove keeps a user's own from going.
    cmd!(shell, "apt-get install --yes --quiet=2 --no-install-recommends --no-remove {PACKAGES...}")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .quiet()
        .ignore_stdout()
        .run()?;
    Ok(())
}

/// Downloads the packages and the libraries they need, and unpacks them below the cache.
pub(crate) fn unpack(shell: &Shell, cache: &Cache) -> anyhow::Result<()> {
    let root = cache.root();
    fs::create_dir_all(root).map_err(|source| lacuna_ptx::BuildError::Cache { path: root.into(), source })?;
    let scratch = tempfile::tempdir_in(root)?;
    let apt = match Apt::known_to_all(shell) {
        Ok(apt) => apt,
        Err(_) => Apt::private(shell, &scratch.path().join("apt"))?,
    };
    let packages = apt.with_dependencies(shell)?;
    let (downloads, system) = (scratch.path().join("downloads"), scratch.path().join("system"));
    fs::create_dir_all(&downloads)?;
    fs::create_dir_all(&system)?;
    eprintln!("unpacking {}", packages.iter().map(String::as_str).collect::<Vec<_>>().join(" "));
    {
        let _in_downloads = shell.push_dir(&downloads);
        apt.command(cmd!(shell, "apt-get --quiet=2 download")).args(&packages).ignore_stdout().run()?;
    }
    for entry in fs::read_dir(&downloads)? {
        let package = entry?.path();
        cmd!(shell, "dpkg --extract {package} {system}").quiet().run()?;
    }
    keep_library_sources(&system.join("usr/src"))?;
    let target = cache.debian_root();
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    fs::rename(&system, &target).with_context(|| format!("cannot move the compiler to {}", target.display()))
}

/// Of the compiler's sources only the library's are needed: a tenth.
fn keep_library_sources(folder: &Path) -> anyhow::Result<()> {
    for release in fs::read_dir(folder)? {
        for entry in fs::read_dir(release?.path())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() && entry.file_name() != "library" {
                fs::remove_dir_all(entry.path())?;
            }
        }
    }
    Ok(())
}

/// apt, with the options that let it know the packages.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    /// The system's apt, its lists brought up to date: old ones may know an older compiler.
    fn known_to_all(shell: &Shell) -> anyhow::Result<Self> {
        cmd!(shell, "apt-get --quiet=2 update").quiet().ignore_stdout().ignore_stderr().run()?;
        Self { options: Vec::new() }.checked(shell)
    }

    /// apt with lists of its own, for a user who may not write the system's.
    fn private(shell: &Shell, folder: &Path) -> anyhow::Result<Self> {
        for below in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(below))?;
        }
        let folder = folder.display();
        let apt = Self {
            options: vec![
                format!("--option=Dir::State={folder}/state"),
                "--option=Dir::State::status=/var/lib/dpkg/status".into(),
                format!("--option=Dir::Cache={folder}/cache"),
            ],
        };
        apt.command(cmd!(shell, "apt-get --quiet=2 update")).ignore_stdout().run()?;
        apt.checked(shell)
    }

    fn checked(self, shell: &Shell) -> anyhow::Result<Self> {
        ensure!(self.knows_packages(shell), "apt does not know {}", PACKAGES.join(", "));
        Ok(self)
    }

    fn command<'a>(&self, command: Cmd<'a>) -> Cmd<'a> {
        command.args(&self.options).quiet()
    }

    fn knows_packages(&self, shell: &Shell) -> bool {
        // Being installed is not enough: there must be a place to fetch them from.
        self.command(cmd!(shell, "apt-get --quiet=2 --print-uris download"))
            .args(PACKAGES)
            .ignore_stdout()
            .ignore_stderr()
            .run()
            .is_ok()
    }

    /// The packages, the compiler's own libraries, and other libraries that are not installed.
    fn with_dependencies(&self, shell: &Shell) -> anyhow::Result<BTreeSet<String>> {
        let tree = self
            .command(cmd!(shell, "apt-cache depends --recurse --important --no-pre-depends"))
            .args(PACKAGES)
            .read()?;
        let format = "--showformat=${Package} ${db:Status-Status}\\n";
        let states = cmd!(shell, "dpkg-query --show {format}").quiet().read()?;
        let installed = states.lines().filter_map(|line| line.strip_suffix(" installed")).collect();
        let wanted = wanted(&tree, &installed);
        if !wanted.iter().any(|package| package.starts_with("libllvm")) {
            bail!("apt does not say which LLVM {} needs", PACKAGES[0]);
        }
        Ok(wanted)
    }
}

/// Follows `apt-cache depends --recurse` from the packages through libraries: a package at the start of a line, what
/// it depends on indented below.
fn wanted(tree: &str, installed: &BTreeSet<&str>) -> BTreeSet<String> {
    let (mut wanted, mut to_visit) = (BTreeSet::new(), PACKAGES.map(str::to_owned).to_vec());
    while let Some(package) = to_visit.pop() {
        let below = tree.lines().skip_while(|line| *line != package).skip(1);
        let below = below.take_while(|line| line.starts_with([' ', '|']));
        let libraries = below
            .filter_map(|line| line.trim_start().strip_prefix("Depends: "))
            .map(|name| name.split(':').next().unwrap_or(name))
            .filter(|name| is_wanted_library(name, installed))
            .map(str::to_owned);
        to_visit.extend(libraries.filter(|library| !wanted.contains(library)));
        wanted.insert(package);
    }
    wanted
}

/// The compiler's own libraries always; others when they are not installed. The C library and its compiler's are the
/// system's: one that can link Rust programs has them.
fn is_wanted_library(package: &str, installed: &BTreeSet<&str>) -> bool {
    let of_compiler = package.starts_with("libstd-rust-web") || package.starts_with("libllvm");
    let of_system = ["libc6", "libgcc", "libstdc++"].iter().any(|start| package.starts_with(start));
    of_compiler || (package.starts_with("lib") && !of_system && !installed.contains(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compilers_libraries_always_and_others_when_absent() {
        let tree = "\
rustc-web
  Depends: libc6
  Depends: libstd-rust-web-dev
 |Depends: gcc
  Depends: libgcc-12-dev
libc6
libstd-rust-web-dev
  Depends: libstd-rust-web-1.96
libstd-rust-web-1.96
  Depends: libllvm22
libllvm22
  Depends: libedit2
  Depends: libz3-4
gcc
  Depends: libasan6
libasan6
libgcc-12-dev
libz3-4
libedit2
cargo-web
  Depends: rustc-web
rust-web-src
";
        let wanted = wanted(tree, &BTreeSet::from(["libedit2", "libllvm22"]));
        let libraries = ["libllvm22", "libstd-rust-web-1.96", "libstd-rust-web-dev", "libz3-4"];
        let expected: Vec<_> =
            ["cargo-web"].into_iter().chain(libraries).chain(["rust-web-src", "rustc-web"]).collect();
        assert_eq!(wanted.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }
}
