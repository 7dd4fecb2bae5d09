//! The sources that a crate is built from: its own and those of the crates it depends on by path.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{BuildError, DeviceCompiler, cache};

/// A crate and its path dependencies.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// Name of the crate's package.
    pub(crate) package: String,
    /// Every Rust file and manifest, sorted.
    pub(crate) files: Vec<PathBuf>,
    /// A digest of their names and contents, and of each package's edition.
    pub(crate) digest: String,
}

impl Sources {
    /// Of the crate in a folder.
    pub(crate) fn of(compiler: &DeviceCompiler, folder: &Path) -> Result<Self, BuildError> {
        let folder = folder
            .canonicalize()
            .map_err(|error| BuildError::NotACrate { path: folder.into(), reason: error.to_string() })?;
        let (mut package, mut hashed, mut files) = (None, Vec::new(), Vec::new());
        let (mut folders, mut seen) = (vec![folder], BTreeSet::new());
        while let Some(folder) = folders.pop() {
            if !seen.insert(folder.clone()) {
                continue;
            }
            let manifest = Manifest::read(compiler, &folder)?;
            let own = rust_files(&folder)?;
            for file in &own {
                let name = file.strip_prefix(&folder).unwrap_or(file).to_string_lossy().into_owned();
                hashed.push(format!("{}/{name} ({})", manifest.name, manifest.edition));
                hashed.push(fs::read_to_string(file).map_err(BuildError::io("read", file))?);
            }
            files.extend(own);
            folders.extend(manifest.path_dependencies);
            package.get_or_insert(manifest.name);
        }
        files.sort();
        Ok(Self {
            package: package.expect("the first folder is always read"),
            files,
            digest: cache::digest(hashed.iter().map(String::as_str)),
        })
    }
}

/// What cargo says of one package.
struct Manifest {
    name: String,
    edition: String,
    path_dependencies: Vec<PathBuf>,
}

impl Manifest {
    fn read(compiler: &DeviceCompiler, folder: &Path) -> Result<Self, BuildError> {
        let path = folder.join("Cargo.toml");
        let refused = |reason: String| BuildError::NotACrate { path: folder.into(), reason };
        let mut command = compiler.command(&compiler.cargo);
        crate::compile::forget_outer_build(&mut command);
        let output = command
            .current_dir(folder)
            .env("RUSTC", &compiler.rustc)
            .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
            .arg(&path)
            .output()
            .map_err(BuildError::io("run", &compiler.cargo))?;
        if !output.status.success() {
            return Err(refused(String::from_utf8_lossy(&output.stderr).trim().into()));
        }
        let metadata: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| refused(error.to_string()))?;
        metadata["packages"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|package| package["manifest_path"].as_str().is_some_and(|found| Path::new(found) == path))
            .and_then(Self::from_json)
            .ok_or_else(|| refused("its Cargo.toml has no [package]".into()))
    }

    fn from_json(package: &Value) -> Option<Self> {
        let dependencies = package["dependencies"].as_array()?;
        Some(Self {
            name: package["name"].as_str()?.into(),
            edition: package["edition"].as_str()?.into(),
            path_dependencies: dependencies
                .iter()
                .filter(|dependency| dependency["kind"].is_null())
                .filter_map(|dependency| dependency["path"].as_str())
                .map(PathBuf::from)
                .collect(),
        })
    }
}

/// The manifest and the Rust files under `src`, sorted.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let mut files = vec![folder.join("Cargo.toml")];
    let mut folders = vec![folder.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(BuildError::io("read", &folder))? {
            let path = entry.map_err(BuildError::io("read", &folder))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
