//! Debian's packages: installed as root, or unpacked into the cache without.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use lacuna_ptx::Cache;
use xshell::{Cmd, Shell, cmd};

/// Packages that are wanted together.
pub(super) struct Packages {
    /// Their names.
    pub(super) names: &'static [&'static str],
    /// How the names of libraries begin that are unpacked with them even where they are installed; the first is what they cannot
    /// be without.
    pub(super) own: &'static [&'static str],
    /// Where they are unpacked.
    pub(super) root: fn(&Cache) -> PathBuf,
    /// Removes what nobody needs of them, once they are unpacked there.
    pub(super) tidy: fn(&Path) -> anyhow::Result<()>,
}

/// Gets the packages, whichever way this user may.
pub(super) fn install(packages: &Packages, cache: &Cache) -> anyhow::Result<()> {
    let shell = Shell::new()?;
    ensure!(cmd!(shell, "apt-get --version").quiet().ignore_stdout().run().is_ok(), "there is no apt-get");
    if cmd!(shell, "id -u").quiet().read()? == "0" {
        match install_as_root(packages, &shell) {
            Ok(()) => return Ok(()),
            Err(error) => eprintln!("apt-get does not install ({error:#}): unpacking into the cache instead"),
        }
    }
    unpack(packages, &shell, cache)
}

fn install_as_root(packages: &Packages, shell: &Shell) -> anyhow::Result<()> {
    Apt::known_to_all(packages, shell)?;
    let names = packages.names;
    eprintln!("installing {}", names.join(" "));
    // The compiler's packages conflict with Debian's older rustc; --no-remove keeps a user's own from going.
    cmd!(shell, "apt-get install --yes --quiet=2 --no-install-recommends --no-remove {names...}")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .quiet()
        .ignore_stdout()
        .run()?;
    Ok(())
}

/// Downloads the packages and the libraries they need, and unpacks them below the cache.
fn unpack(packages: &Packages, shell: &Shell, cache: &Cache) -> anyhow::Result<()> {
    let root = cache.root();
    fs::create_dir_all(root).map_err(|source| lacuna_ptx::BuildError::Cache { path: root.into(), source })?;
    let scratch = tempfile::tempdir_in(root)?;
    let apt = match Apt::known_to_all(packages, shell) {
        Ok(apt) => apt,
        Err(_) => Apt::private(packages, shell, &scratch.path().join("apt"))?,
    };
    let all = apt.with_dependencies(packages, shell)?;
    let (downloads, system) = (scratch.path().join("downloads"), scratch.path().join("system"));
    fs::create_dir_all(&downloads)?;
    fs::create_dir_all(&system)?;
    eprintln!("unpacking {}", all.iter().map(String::as_str).collect::<Vec<_>>().join(" "));
    {
        let _in_downloads = shell.push_dir(&downloads);
        apt.command(cmd!(shell, "apt-get --quiet=2 download")).args(&all).ignore_stdout().run()?;
    }
    for entry in fs::read_dir(&downloads)? {
        let package = entry?.path();
        cmd!(shell, "dpkg --extract {package} {system}").quiet().run()?;
    }
    (packages.tidy)(&system)?;
    let target = (packages.root)(cache);
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    fs::rename(&system, &target).with_context(|| format!("cannot move the packages to {}", target.display()))
}

/// apt, with the options that let it know the packages.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    /// The system's apt, its lists brought up to date: old ones may know an older compiler.
    fn known_to_all(packages: &Packages, shell: &Shell) -> anyhow::Result<Self> {
        cmd!(shell, "apt-get --quiet=2 update").quiet().ignore_stdout().ignore_stderr().run()?;
        Self { options: Vec::new() }.checked(packages, shell)
    }

    /// apt with lists of its own, for a user who may not write the system's.
    fn private(packages: &Packages, shell: &Shell, folder: &Path) -> anyhow::Result<Self> {
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
        apt.checked(packages, shell)
    }

    fn checked(self, packages: &Packages, shell: &Shell) -> anyhow::Result<Self> {
        ensure!(self.knows(packages, shell), "apt does not know {}", packages.names.join(", "));
        Ok(self)
    }

    fn command<'a>(&self, command: Cmd<'a>) -> Cmd<'a> {
        command.args(&self.options).quiet()
    }

    fn knows(&self, packages: &Packages, shell: &Shell) -> bool {
        // Being installed is not enough: there must be a place to fetch them from.
        self.command(cmd!(shell, "apt-get --quiet=2 --print-uris download"))
            .args(packages.names)
            .ignore_stdout()
            .ignore_stderr()
            .run()
            .is_ok()
    }

    /// The packages, their own libraries, and other libraries that are not installed.
    fn with_dependencies(&self, packages: &Packages, shell: &Shell) -> anyhow::Result<BTreeSet<String>> {
        let tree = self
            .command(cmd!(shell, "apt-cache depends --recurse --important --no-pre-depends"))
            .args(packages.names)
            .read()?;
        let format = "--showformat=${Package} ${db:Status-Status}\\n";
        let states = cmd!(shell, "dpkg-query --show {format}").quiet().read()?;
        let installed = states.lines().filter_map(|line| line.strip_suffix(" installed")).collect();
        let wanted = wanted(packages, &tree, &installed);
        if let Some(own) = packages.own.first()
            && !wanted.iter().any(|package| package.starts_with(own))
        {
            bail!("apt does not say which {own} {} needs", packages.names[0]);
        }
        Ok(wanted)
    }
}

/// Follows `apt-cache depends --recurse` from the packages through libraries: a package at the start of a line, what
/// it depends on indented below.
fn wanted(packages: &Packages, tree: &str, installed: &BTreeSet<&str>) -> BTreeSet<String> {
    let mut to_visit: Vec<String> = packages.names.iter().map(|&name| name.to_owned()).collect();
    let mut wanted = BTreeSet::new();
    while let Some(package) = to_visit.pop() {
        let below = tree.lines().skip_while(|line| *line != package).skip(1);
        let below = below.take_while(|line| line.starts_with([' ', '|']));
        let libraries = below
            .filter_map(|line| line.trim_start().strip_prefix("Depends: "))
            .map(|name| name.split(':').next().unwrap_or(name))
            .filter(|name| is_wanted_library(packages, name, installed))
            .map(str::to_owned);
        to_visit.extend(libraries.filter(|library| !wanted.contains(library)));
        wanted.insert(package);
    }
    wanted
}

/// The packages' own libraries always; others when they are not installed. The C library and its compiler's are the
/// system's: one that can link Rust programs has them.
fn is_wanted_library(packages: &Packages, package: &str, installed: &BTreeSet<&str>) -> bool {
    let is_own = packages.own.iter().any(|start| package.starts_with(start));
    let of_system = ["libc6", "libgcc", "libstdc++"].iter().any(|start| package.starts_with(start));
    is_own || (package.starts_with("lib") && !of_system && !installed.contains(package))
}

#[cfg(test)]
mod tests {
    use super::super::COMPILER;
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
        let wanted = wanted(&COMPILER, tree, &BTreeSet::from(["libedit2", "libllvm22"]));
        let libraries = ["libllvm22", "libstd-rust-web-1.96", "libstd-rust-web-dev", "libz3-4"];
        let expected: Vec<_> =
            ["cargo-web"].into_iter().chain(libraries).chain(["rust-web-src", "rustc-web"]).collect();
        assert_eq!(wanted.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }
}
