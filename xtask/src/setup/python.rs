//! A virtual environment in the cache, with what builds and tests the Python package.
use std::path::{Path, PathBuf};

use lacuna_ptx::Cache;
use xshell::{Shell, cmd};

use crate::outcome::Missing;

/// What is installed. maturin builds wheels; the tests need the others.
const PACKAGES: [&str; 3] = ["maturin>=1.9,<2", "numpy>=1.24", "pytest>=8"];

/// A virtual environment.
#[derive(Debug)]
pub(crate) struct Environment {
    root: PathBuf,
}

impl Environment {
    /// The one in the cache, made first if need be.
    pub(crate) fn in_cache(cache: &Cache) -> anyhow::Result<Self> {
        let environment = Self { root: cache.root().join("python") };
        let shell = Shell::new()?;
        if environment.works(&shell) {
            return Ok(environment);
        }
        environment.install(&shell).map_err(|error| {
            let packages = PACKAGES.join(", ");
            let wanted =
                "the Python package needs python3 with venv (`apt-get install python3-venv`) and, from PyPI,";
            Missing(format!("{wanted} {packages}; tried in vain: {error:#}"))
        })?;
        Ok(environment)
    }

    /// The program of this name that it has.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.root.join("bin").join(name)
    }

    fn works(&self, shell: &Shell) -> bool {
        let python = self.program("python");
        let imports = cmd!(shell, "{python} -c 'import maturin, numpy, pytest'");
        python.is_file() && imports.quiet().ignore_stderr().run().is_ok()
    }

    fn install(&self, shell: &Shell) -> anyhow::Result<()> {
        let (root, python): (&Path, PathBuf) = (&self.root, self.program("python"));
        eprintln!("making a virtual environment at {}", root.display());
        cmd!(shell, "python3 -m venv {root}").quiet().run()?;
        cmd!(shell, "{python} -m pip install --quiet --disable-pip-version-check {PACKAGES...}")
            .quiet()
            .run()?;
        Ok(())
    }
}
