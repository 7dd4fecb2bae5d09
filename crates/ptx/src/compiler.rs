//! Finds a rustc that builds device code.
use std::env::{self, JoinPathsError};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{BuildError, Cache};

/// The lowest rustc that will do: from 1.96 on it marks every function of a GPU target convergent, so that LLVM does
/// not move barriers into branches.
pub const MINIMUM_RUSTC: &str = "1.96";
const MINIMUM: (u32, u32) = (1, 96);

/// Where a device compiler came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Named in `LACUNA_DEVICE_RUSTC`.
    Override,
    /// A toolchain of rustup.
    Rustup,
    /// Debian's packages, installed.
    Debian,
    /// Debian's packages, unpacked into the cache by `cargo xtask setup`.
    Unpacked,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Override => "LACUNA_DEVICE_RUSTC",
            Self::Rustup => "rustup",
            Self::Debian => "Debian's packages",
            Self::Unpacked => "Debian's packages, unpacked in the cache",
        })
    }
}

/// A rustc that builds device code, with its cargo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCompiler {
    /// The compiler, never a rustup proxy.
    pub rustc: PathBuf,
    /// The cargo beside it.
    pub cargo: PathBuf,
    /// What `rustc --version` prints.
    pub version: String,
    /// Where it came from.
    pub source: Source,
    /// Folders of shared libraries that it needs and the system does not look into.
    pub(crate) libraries: Vec<PathBuf>,
}

impl DeviceCompiler {
    /// Looks for a device compiler, in this order: the rustc named in `LACUNA_DEVICE_RUSTC`; rustup's toolchains
    /// (released ones before nightlies); Debian's, installed in `/usr/bin`; Debian's, unpacked in the
    /// cache. Each must be 1.96 or newer and have the library sources (`rust-src`) and a cargo beside it.
    ///
    /// # Errors
    /// [`BuildError::UnusableCompiler`] when the one named in the environment will not do;
    /// [`BuildError::NoCompiler`] when none is found.
    pub fn find(cache: &Cache) -> Result<Self, BuildError> {
        if let Some(path) = env::var_os("LACUNA_DEVICE_RUSTC").filter(|path| !path.is_empty()) {
            let path = PathBuf::from(path);
            return Self::probe(&path, Source::Override, Vec::new())
                .map_err(|reason| BuildError::UnusableCompiler { path, reason });
        }
        Self::first_of(candidates(cache))
    }

    fn first_of(candidates: Vec<(PathBuf, Source, Vec<PathBuf>)>) -> Result<Self, BuildError> {
        let mut searched = String::from("  LACUNA_DEVICE_RUSTC: not set\n");
        for (rustc, source, libraries) in candidates {
            match Self::probe(&rustc, source, libraries) {
                Ok(compiler) => return Ok(compiler),
                Err(reason) => searched += &format!("  {}: {reason}\n", rustc.display()),
            }
        }
        Err(BuildError::NoCompiler { minimum: MINIMUM_RUSTC, searched: searched.trim_end().into() })
    }

    /// A command that runs a program of this toolchain.
    pub fn command(&self, program: &Path) -> Command {
        command(program, &self.libraries)
    }

    /// Checks one rustc; the error says in a few words why it will not do.
    fn probe(rustc: &Path, source: Source, libraries: Vec<PathBuf>) -> Result<Self, String> {
        if !rustc.is_file() {
            return Err("no such file".into());
        }
        let ask = |argument: &[&str]| {
            let output = command(rustc, &libraries)
                .env_remove("RUSTUP_TOOLCHAIN")
                .args(argument)
                .output()
                .map_err(|error| format!("does not run: {error}"))?;
            if output.status.success() {
                Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
            } else {
                Err(format!("does not run: {}", String::from_utf8_lossy(&output.stderr).trim()))
            }
        };
        let version = ask(&["--version"])?;
        let number =
            version_number(&version).ok_or_else(|| format!("is not rustc: it prints `{version}`"))?;
        if number < MINIMUM {
            return Err(format!("is {version}, older than {MINIMUM_RUSTC}"));
        }
        let sources = PathBuf::from(ask(&["--print", "sysroot"])?).join("lib/rustlib/src/rust/library/core");
        if !sources.is_dir() {
            return Err("lacks the library sources (rust-src)".into());
        }
        let cargo = rustc.with_file_name("cargo");
        if !cargo.is_file() {
            return Err("has no cargo beside it".into());
        }
        Ok(Self { rustc: rustc.into(), cargo, version, source, libraries })
    }
}

/// The places to look at, best first.
fn candidates(cache: &Cache) -> Vec<(PathBuf, Source, Vec<PathBuf>)> {
    let mut found: Vec<_> =
        rustup_toolchains().into_iter().map(|rustc| (rustc, Source::Rustup, Vec::new())).collect();
    found.push((PathBuf::from("/usr/bin/rustc"), Source::Debian, Vec::new()));
    let unpacked = cache.debian_root().join("usr");
    found.push((unpacked.join("bin/rustc"), Source::Unpacked, library_folders(&cache.debian_root())));
    found
}

/// The compilers of rustup's toolchains.
fn rustup_toolchains() -> Vec<PathBuf> {
    let home = env::var_os("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".rustup")));
    let Some(entries) = home.and_then(|home| home.join("toolchains").read_dir().ok()) else {
        return Vec::new();
    };
    let mut toolchains: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    // Released toolchains first, then by name: always the same choice on one machine.
    toolchains.sort_by_key(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name.starts_with("nightly"), name)
    });
    toolchains.into_iter().map(|path| path.join("bin/rustc")).collect()
}

/// The folders below an unpacked system's root in which shared libraries lie.
fn library_folders(root: &Path) -> Vec<PathBuf> {
    ["usr/lib", "lib"]
        .into_iter()
        .flat_map(|folder| root.join(folder).read_dir().into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with("-linux-gnu"))
        .collect()
}

fn command(program: &Path, libraries: &[PathBuf]) -> Command {
    let mut command = Command::new(program);
    let own = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    // A folder with a colon in its name cannot stand there; the program then says which library it lacks.
    if let (false, Ok(path)) = (libraries.is_empty(), library_path(libraries, &own)) {
        command.env("LD_LIBRARY_PATH", path);
    }
    command
}

/// These folders, then the user's own. An empty entry would mean the current directory.
fn library_path(libraries: &[PathBuf], own: &OsStr) -> Result<OsString, JoinPathsError> {
    let own = env::split_paths(own).filter(|folder| !folder.as_os_str().is_empty());
    env::join_paths(libraries.iter().cloned().chain(own))
}

/// (1, 96) of `rustc 1.96.0 (…)`.
fn version_number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix("rustc ")?.split(['.', '-', ' ']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_numbers() {
        assert_eq!(version_number("rustc 1.96.0 (ac68faa20 2026-05-25)"), Some((1, 96)));
        assert_eq!(version_number("rustc 1.97.0-nightly (e50aa6fba 2026-05-19)"), Some((1, 97)));
        assert_eq!(version_number("rustc 2.0-dev"), Some((2, 0)));
        assert_eq!(version_number("gcc 12.2.0"), None);
        assert_eq!(version_number("rustc"), None);
    }

    #[cfg(unix)]
    #[test]
    fn the_library_path_has_no_empty_entry() {
        let path = |own: &str| library_path(&["/a".into(), "/b".into()], own.as_ref()).unwrap();
        assert_eq!(path(""), "/a:/b");
        assert_eq!(path("/c::/d:"), "/a:/b:/c:/d");
        assert!(library_path(&["/a:b".into()], "".as_ref()).is_err());
    }

    #[cfg(unix)]
    mod probe {
        use std::fs;
        use std::os::unix::fs::PermissionsExt as _;

        use super::*;

        /// A folder with a script that answers as a rustc would.
        fn toolchain(version: &str, with_sources: bool, with_cargo: bool) -> tempfile::TempDir {
            let dir = tempfile::tempdir().unwrap();
            let script = format!(
                "#!/bin/sh\ncase $1 in --version) echo '{version}';; *) echo '{}';; esac\n",
                dir.path().display()
            );
            fs::write(dir.path().join("rustc"), script).unwrap();
            fs::set_permissions(dir.path().join("rustc"), fs::Permissions::from_mode(0o755)).unwrap();
            if with_sources {
                fs::create_dir_all(dir.path().join("lib/rustlib/src/rust/library/core")).unwrap();
            }
            if with_cargo {
                fs::write(dir.path().join("cargo"), "").unwrap();
            }
            dir
        }

        fn probe(dir: &tempfile::TempDir) -> Result<DeviceCompiler, String> {
            DeviceCompiler::probe(&dir.path().join("rustc"), Source::Override, Vec::new())
        }

        #[test]
        fn a_whole_toolchain_will_do() {
            let dir = toolchain("rustc 1.96.0 (abc)", true, true);
            let compiler = probe(&dir).unwrap();
            assert_eq!(compiler.version, "rustc 1.96.0 (abc)");
            assert_eq!(compiler.cargo, dir.path().join("cargo"));
        }

        #[test]
        fn the_first_that_will_do_is_taken() {
            let old = toolchain("rustc 1.95.0", true, true);
            let good = toolchain("rustc 1.96.0", true, true);
            let better = toolchain("rustc 1.97.0", true, true);
            let places = |dirs: &[&tempfile::TempDir]| {
                dirs.iter().map(|dir| (dir.path().join("rustc"), Source::Rustup, Vec::new())).collect()
            };
            let found = DeviceCompiler::first_of(places(&[&old, &good, &better])).unwrap();
            assert_eq!(found.version, "rustc 1.96.0");

            let error = DeviceCompiler::first_of(places(&[&old])).unwrap_err();
            assert!(matches!(error, BuildError::NoCompiler { .. }));
            let text = error.to_string();
            for part in [
                "rustc 1.95.0, older than 1.96",
                "cargo xtask setup",
                "install 1.96.0 --component rust-src",
                "LACUNA_DEVICE_RUSTC",
            ] {
                assert!(text.contains(part), "no `{part}` in {text}");
            }
        }

        #[test]
        fn what_is_missing_is_named() {
            let reason = |version, sources, cargo| probe(&toolchain(version, sources, cargo)).unwrap_err();
            assert_eq!(reason("rustc 1.95.0", true, true), "is rustc 1.95.0, older than 1.96");
            assert_eq!(reason("rustc 1.96.0", false, true), "lacks the library sources (rust-src)");
            assert_eq!(reason("rustc 1.96.0", true, false), "has no cargo beside it");
            assert!(reason("clang 22", true, true).starts_with("is not rustc"));
            assert_eq!(probe(&tempfile::tempdir().unwrap()).unwrap_err(), "no such file");
        }
    }
}
