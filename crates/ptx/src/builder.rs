//! The builder: from a crate to checked PTX files.
use std::fmt;
use std::path::{Path, PathBuf};
use std::thread;

use crate::resources::{ResourceTable, Resources};
use crate::sources::Sources;
use crate::{
    BuildError, Cache, DeviceCompiler, LaunchBounds, Module, Ptxas, Target, compile, count_barriers, given,
};

type PerEntry<T> = Box<dyn Fn(&str) -> Option<T> + Send + Sync>;

/// Describes a build of a crate of kernels. See the [crate's page](crate) for an example.
pub struct Builder {
    folder: PathBuf,
    targets: Vec<Target>,
    bounds: PerEntry<LaunchBounds>,
    barriers: PerEntry<u32>,
    copy_to: Option<PathBuf>,
    modules: Option<PathBuf>,
    pub(crate) preferred: Option<PathBuf>,
    pub(crate) cargo_metadata: bool,
    resources: bool,
    cache: Option<Cache>,
}

/// Where modules come from.
enum Origin {
    Compiler(DeviceCompiler, Sources),
    /// A folder with `<target>.ptx`.
    Given(PathBuf),
}

/// What a build gave.
#[derive(Clone, Debug)]
pub struct Build {
    /// One module a target, in the order of [`Builder::targets`].
    pub modules: Vec<Module>,
    /// What each entry takes; nothing when no ptxas was found or none was wanted.
    pub resources: Option<ResourceTable>,
    /// The compiler used; nothing when the modules were given ([`Builder::modules`]).
    pub compiler: Option<DeviceCompiler>,
    /// The targets that were compiled now; the others came from the cache.
    pub compiled: Vec<Target>,
    /// The sources, manifests and lock files that the PTX depends on.
    pub sources: Vec<PathBuf>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("folder", &self.folder)
            .field("targets", &self.targets)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// A build of the crate in this folder, for all targets. Relative paths start at the current directory.
    pub fn new(path_to_crate: impl Into<PathBuf>) -> Self {
        Self {
            folder: path_to_crate.into(),
            targets: Target::ALL.to_vec(),
            bounds: Box::new(|_| None),
            barriers: Box::new(|_| None),
            copy_to: None,
            modules: None,
            preferred: None,
            cargo_metadata: false,
            resources: true,
            cache: None,
        }
    }

    /// Builds for these targets only.
    pub fn targets(mut self, targets: &[Target]) -> Self {
        self.targets = targets.to_vec();
        self
    }

    /// Gives the launch bounds of an entry by its name.
    pub fn launch_bounds(
        mut self,
        of_entry: impl Fn(&str) -> Option<LaunchBounds> + Send + Sync + 'static,
    ) -> Self {
        self.bounds = Box::new(of_entry);
        self
    }

    /// Declares how many barrier instructions, of block and warp together, an entry has; a build in which it has
    /// another number fails.
    pub fn expect_barriers(mut self, of_entry: impl Fn(&str) -> Option<u32> + Send + Sync + 'static) -> Self {
        self.barriers = Box::new(of_entry);
        self
    }

    /// Writes each entry to `<folder>/<target>/<entry>.ptx`, and beside them `index.rs`: an array expression
    /// `[(entry, level, ptx), …]` of `(&str, u32, &str)` for `include!`, with the level as in 80 for `sm_80`.
    pub fn copy_to(mut self, folder: impl Into<PathBuf>) -> Self {
        self.copy_to = Some(folder.into());
        self
    }

    /// Compiles nothing, and takes `<folder>/<target>.ptx` for the module of each target, as another code generator has
    /// written it. Everything else is done as with rustc's: checks, launch bounds, resources, copies.
    pub fn modules(mut self, folder: impl Into<PathBuf>) -> Self {
        self.modules = Some(folder.into());
        self
    }

    /// Puts `<folder>/<target>/<entry>.ptx`, as [`copy_to`](Builder::copy_to) writes it, in the place of each entry for
    /// which there is such a file.
    pub fn prefer(mut self, folder: impl Into<PathBuf>) -> Self {
        self.preferred = Some(folder.into());
        self
    }

    /// Prints `cargo:rerun-if-changed` for all that the PTX depends on. For build scripts; off at first.
    pub fn cargo_metadata(mut self, on: bool) -> Self {
        self.cargo_metadata = on;
        self
    }

    /// Whether to ask ptxas, where there is one, for resources and spills. On at first; a library's build script
    /// turns it off, so that its users' builds do not depend on whether and which ptxas they have.
    pub fn resources(mut self, on: bool) -> Self {
        self.resources = on;
        self
    }

    /// Uses this cache instead of the user's.
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Builds, targets at the same time.
    ///
    /// # Errors
    /// No compiler; a crate that does not compile; PTX that fails a check; a spill; a cache or folder that cannot
    /// be written; given modules or entries that are not there. See [`BuildError`].
    pub fn build(self) -> Result<Build, BuildError> {
        if self.targets.is_empty() {
            return Err(BuildError::NoTarget);
        }
        if let Some(folder) = self.preferred.clone().filter(|folder| !given::has_any(folder, &self.targets)) {
            return Err(BuildError::NothingToPrefer { folder });
        }
        if self.cargo_metadata {
            for name in ["LACUNA_DEVICE_RUSTC", "LACUNA_PTXAS", "LACUNA_CACHE_DIR"] {
                println!("cargo:rerun-if-env-changed={name}");
            }
        }
        let cache = self.cache.clone().map_or_else(Cache::of_user, Ok)?;
        let origin = self.origin(&cache)?;
        let ptxas = if self.resources { Ptxas::find(&cache)? } else { None };

        let built = thread::scope(|scope| {
            let build = |target| self.build_target(&cache, &origin, ptxas.as_ref(), target);
            let threads: Vec<_> =
                self.targets.iter().map(|&target| scope.spawn(move || build(target))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("a build does not panic"))
                .collect::<Vec<_>>()
        });
        let (mut modules, mut compiled, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for result in built {
            let (module, was_compiled, resources) = result?;
            compiled.extend(was_compiled.then_some(module.target));
            modules.push(module);
            rows.extend(resources);
        }
        if let Some(folder) = &self.copy_to {
            copy(&modules, folder)?;
        }
        let (compiler, sources) = match origin {
            Origin::Compiler(compiler, sources) => (Some(compiler), sources.files),
            Origin::Given(_) => (None, Vec::new()),
        };
        let version = compiler.as_ref().map_or("given modules", |compiler| &compiler.version);
        let resources = ptxas.map(|ptxas| ResourceTable::new(rows, &ptxas.version, version));
        Ok(Build { modules, resources, compiler, compiled, sources })
    }

    fn origin(&self, cache: &Cache) -> Result<Origin, BuildError> {
        let changes = |file: &Path| {
            if self.cargo_metadata {
                println!("cargo:rerun-if-changed={}", file.display());
            }
        };
        if let Some(folder) = &self.preferred {
            changes(folder);
        }
        if let Some(folder) = &self.modules {
            changes(folder);
            return Ok(Origin::Given(folder.clone()));
        }
        let compiler = DeviceCompiler::find(cache)?;
        let sources = Sources::of(&compiler, &self.folder)?;
        sources.files.iter().for_each(|file| changes(file));
        Ok(Origin::Compiler(compiler, sources))
    }

    fn build_target(
        &self,
        cache: &Cache,
        origin: &Origin,
        ptxas: Option<&Ptxas>,
        target: Target,
    ) -> Result<(Module, bool, Vec<Resources>), BuildError> {
        let (ptx, compiled) = match origin {
            Origin::Compiler(compiler, sources) => {
                compile::module(cache, compiler, &self.folder, sources, target)?
            }
            Origin::Given(folder) => (given::module(folder, target)?, false),
        };
        let mut module = Module::split(target, &ptx, &self.bounds)?;
        if let Some(folder) = &self.preferred {
            given::prefer(folder, &mut module)?;
        }
        let mut resources = Vec::new();
        for entry in &module.entries {
            let found = count_barriers(&entry.ptx).total();
            if let Some(expected) = (self.barriers)(&entry.name).filter(|expected| *expected != found) {
                return Err(BuildError::Barriers { target, entry: entry.name.clone(), expected, found });
            }
        }
        if let Some(ptxas) = ptxas.filter(|ptxas| ptxas.supports(target)) {
            for entry in &module.entries {
                resources.push(Resources::new(target, entry, ptxas.usage(cache, target, entry)?)?);
            }
        }
        Ok((module, compiled, resources))
    }
}

/// Writes the files that [`Builder::copy_to`] promises.
fn copy(modules: &[Module], folder: &Path) -> Result<(), BuildError> {
    let mut index = String::from("[\n");
    for module in modules {
        let below = folder.join(module.target.name());
        std::fs::create_dir_all(&below).map_err(BuildError::io("write", &below))?;
        for entry in &module.entries {
            let path = below.join(format!("{}.ptx", entry.name));
            std::fs::write(&path, &entry.ptx).map_err(BuildError::io("write", &path))?;
            let path = std::path::absolute(&path).map_err(BuildError::io("find", &path))?;
            index += &format!("    ({:?}, {}, include_str!({path:?})),\n", entry.name, module.target.level());
        }
    }
    index += "]\n";
    let path = folder.join("index.rs");
    std::fs::write(&path, index).map_err(BuildError::io("write", path))
}
