//! OpenMPI, and libclang, with which its Rust bindings are made.
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lacuna_ptx::Cache;
use xshell::Shell;

use super::debian;

/// What is wanted, and how to get it by hand.
pub(super) const WANTED: &str = "feature `mpi` needs OpenMPI (mpirun, mpicc) and libclang: `apt-get install libopenmpi-dev \
                                 openmpi-bin libclang-dev`, or others on PATH and in LIBCLANG_PATH";

/// Debian's packages. The library of OpenMPI and all that it needs come where they are not installed.
const PACKAGES: debian::Packages = debian::Packages {
    names: &["libopenmpi-dev", "openmpi-bin", "openmpi-common", "libclang-dev"],
    own: &["libopenmpi"],
    root,
    tidy: remove_archives,
};

/// Where the packages are unpacked without root.
fn root(cache: &Cache) -> PathBuf {
    cache.root().join("mpi")
}

/// An MPI that programs can be built with, and started.
#[derive(Debug)]
pub(crate) struct Mpi {
    mpirun: PathBuf,
    /// What must be set for both.
    variables: Vec<(&'static str, OsString)>,
}

impl Mpi {
    /// The system's, or else the one in the cache.
    pub(crate) fn find(cache: &Cache) -> Option<Self> {
        Self::of_system().or_else(|| Self::unpacked(&root(cache)))
    }

    fn of_system() -> Option<Self> {
        let has_libclang =
            std::env::var_os("LIBCLANG_PATH").is_some() || libclang(Path::new("/usr/lib")).is_some();
        let mpi = Self { mpirun: "mpirun".into(), variables: Vec::new() };
        (has_libclang && mpi.runs() && answers(Command::new("mpicc").arg("-show"))).then_some(mpi)
    }

    /// OpenMPI and clang find their files by paths that were compiled in: where they lie elsewhere they must be told.
    fn unpacked(root: &Path) -> Option<Self> {
        let usr = root.join("usr");
        let (bin, lib) = (usr.join("bin"), usr.join("lib"));
        let libraries = names(&lib).into_iter().map(|name| lib.join(name));
        let libraries = libraries.into_iter().find(|folder| folder.join("openmpi").is_dir())?;
        // Some of the libraries that it needs are in the other of Debian's two places.
        let others = root.join("lib").join(libraries.file_name()?);
        let path = |path: PathBuf| path.into_os_string();
        let (folder, release) = libclang(&lib)?;
        let own = std::env::var_os("LD_LIBRARY_PATH").filter(|own| !own.is_empty());
        let own = own.iter().flat_map(std::env::split_paths);
        let variables = vec![
            ("MPICC", path(bin.join("mpicc.openmpi"))),
            ("OPAL_PREFIX", path(usr)),
            // It does without what it does not find: plug-ins of PMIx, and old networks.
            ("OMPI_MCA_mca_base_component_show_load_errors", "0".into()),
            ("PMIX_MCA_pcompress_base_silence_warning", "1".into()),
            ("LIBCLANG_PATH", path(folder)),
            ("BINDGEN_EXTRA_CLANG_ARGS", format!("'-resource-dir={}'", release.display()).into()),
            ("LD_LIBRARY_PATH", std::env::join_paths([libraries, others].into_iter().chain(own)).ok()?),
        ];
        let mpi = Self { mpirun: bin.join("mpirun.openmpi"), variables };
        mpi.runs().then_some(mpi)
    }

    fn runs(&self) -> bool {
        let mut command = Command::new(&self.mpirun);
        answers(command.arg("--version").envs(self.variables.iter().map(|(name, value)| (name, value))))
    }

    /// Lets what `shell` runs from now on build with feature `mpi`.
    pub(crate) fn enable(&self, shell: &Shell) {
        for (name, value) in &self.variables {
            shell.set_var(name, value);
        }
    }

    /// Starts programs as ranks: `arguments` are those of mpirun.
    pub(crate) fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(&self.mpirun);
        command.args(arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        // More ranks than cores, and by root too: these are tests.
        for name in
            ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"]
        {
            command.env(name, "1");
        }
        command
    }
}

/// Which one it is, and what must be set to build with it by hand.
impl fmt::Display for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(f, "{name}={} ", value.display())?;
        }
        write!(f, "{}", self.mpirun.display())
    }
}

/// Gets Debian's packages.
pub(super) fn install(cache: &Cache) -> anyhow::Result<()> {
    debian::install(&PACKAGES, cache)
}

fn answers(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The folder of libclang below a folder of libraries, and that of its own headers: as Debian has them.
fn libclang(libraries: &Path) -> Option<(PathBuf, PathBuf)> {
    let is_library = |name: &String| {
        name.starts_with("libclang") && !name.starts_with("libclang-cpp") && name.contains(".so")
    };
    let release = |folder: PathBuf| {
        let releases = names(&folder.join("clang")).into_iter().map(|name| folder.join("clang").join(name));
        let release = releases.into_iter().find(|release| release.join("include/stddef.h").is_file())?;
        names(&folder).iter().any(is_library).then_some((folder, release))
    };
    let of_llvm = names(libraries).into_iter().filter(|name| name.starts_with("llvm-"));
    let folders = of_llvm.map(|name| libraries.join(name).join("lib")).chain([libraries.to_owned()]);
    folders.into_iter().find_map(release)
}

/// Static libraries, most of them clang's, are three quarters of what is unpacked, and nobody links them.
fn remove_archives(system: &Path) -> anyhow::Result<()> {
    let lib = system.join("usr/lib");
    for name in names(&lib) {
        for folder in [lib.join(&name), lib.join(&name).join("lib")] {
            for archive in names(&folder).into_iter().filter(|name| name.ends_with(".a")) {
                fs::remove_file(folder.join(archive))?;
            }
        }
    }
    Ok(())
}

/// The names in a folder, in order; none where it cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libclang_counts_only_with_its_headers() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("llvm-14/lib");
        let touch = |name: &str| {
            let file = folder.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        };
        touch("libclang-cpp.so.14");
        touch("clang/14.0.6/include/stddef.h");
        assert_eq!(libclang(root.path()), None);
        touch("libclang-14.so.1");
        let release = folder.join("clang/14.0.6");
        assert_eq!(libclang(root.path()), Some((folder.clone(), release.clone())));
        fs::remove_file(release.join("include/stddef.h")).unwrap();
        assert_eq!(libclang(root.path()), None);
    }

    #[test]
    fn an_empty_cache_has_no_mpi() {
        assert!(Mpi::unpacked(tempfile::tempdir().unwrap().path()).is_none());
    }

    #[test]
    fn what_must_be_set_is_said() {
        let mpi = Mpi { mpirun: "/m/mpirun".into(), variables: vec![("MPICC", "/m/mpicc".into())] };
        assert_eq!(mpi.to_string(), "MPICC=/m/mpicc /m/mpirun");
        let command = mpi.run(["-n", "2"]);
        assert!(
            command.get_envs().any(|(name, value)| name == "MPICC" && value == Some("/m/mpicc".as_ref()))
        );
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["-n", "2"]);
    }
}
