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
    /// Every file that counts, sorted: manifests, lock files, build scripts, and all below `src`.
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
        let (mut package, mut hashed, mut files) = (None, Vec::<Vec<u8>>::new(), BTreeSet::new());
        let (mut folders, mut seen) = (vec![folder], BTreeSet::new());
        while let Some(folder) = folders.pop() {
            if !seen.insert(folder.clone()) {
                continue;
            }
            let manifest = Manifest::read(compiler, &folder)?;
            for (root, own) in [
                (&folder, package_files(&folder)?),
                (&manifest.workspace, workspace_files(&manifest.workspace)),
            ] {
                for file in own {
                    let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
                    hashed.push(format!("{}/{name} ({})", manifest.name, manifest.edition).into_bytes());
                    hashed.push(fs::read(&file).map_err(BuildError::io("read", &file))?);
                    files.insert(file);
                }
            }
            folders.extend(manifest.path_dependencies);
            package.get_or_insert(manifest.name);
        }
        Ok(Self {
            package: package.expect("the first folder is always read"),
            files: files.into_iter().collect(),
            digest: cache::digest(hashed),
        })
    }
}

/// What cargo says of one package.
struct Manifest {
    name: String,
    edition: String,
    /// The workspace's folder: it gives profiles, inherited settings and the versions of dependencies.
    workspace: PathBuf,
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
            .and_then(|package| Self::from_json(package, &metadata["workspace_root"]))
            .ok_or_else(|| refused("its Cargo.toml has no [package]".into()))
    }

    fn from_json(package: &Value, workspace: &Value) -> Option<Self> {
        let dependencies = package["dependencies"].as_array()?;
        Some(Self {
            name: package["name"].as_str()?.into(),
            edition: package["edition"].as_str()?.into(),
            workspace: workspace.as_str()?.into(),
            path_dependencies: dependencies
                .iter()
                .filter(|dependency| dependency["kind"].is_null())
                .filter_map(|dependency| dependency["path"].as_str())
                .map(PathBuf::from)
                .collect(),
        })
    }
}

/// The workspace's manifest and lock file, where they are.
fn workspace_files(folder: &Path) -> Vec<PathBuf> {
    let files = ["Cargo.toml", "Cargo.lock"].map(|name| folder.join(name));
    files.into_iter().filter(|file| file.is_file()).collect()
}

/// The manifest, the build script and every file below `src`, which code may include; sorted.
fn package_files(folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let mut files = vec![folder.join("Cargo.toml")];
    files.extend(Some(folder.join("build.rs")).filter(|script| script.is_file()));
    files.extend(below(&folder.join("src"))?);
    files.sort();
    Ok(files)
}

/// Every file below a folder, sorted.
pub(crate) fn below(folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(BuildError::io("read", &folder))? {
            let path = entry.map_err(BuildError::io("read", &folder))?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    /// The cargo that runs this test: it need not build device code to tell of packages.
    fn compiler() -> DeviceCompiler {
        let cargo = PathBuf::from(env!("CARGO"));
        DeviceCompiler {
            rustc: cargo.with_file_name("rustc"),
            cargo,
            version: String::new(),
            source: Source::Override,
            libraries: Vec::new(),
        }
    }

    #[test]
    fn every_file_that_can_change_the_ptx_counts() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let package = |name: &str, rest: &str| {
            format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n[dependencies]\n{rest}")
        };
        let files = [
            ("Cargo.toml", "[workspace]\nmembers = [\"*\"]\nresolver = \"3\"\n".to_owned()),
            ("Cargo.lock", "version = 4\n".to_owned()),
            ("top/Cargo.toml", package("top", "below = { path = \"../below\" }\n")),
            ("top/src/lib.rs", String::new()),
            ("top/src/deep/table.bin", String::new()),
            ("below/Cargo.toml", package("below", "")),
            ("below/build.rs", "fn main() {}\n".to_owned()),
            ("below/src/lib.rs", String::new()),
        ];
        for (name, text) in &files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let of = || Sources::of(&compiler(), &root.join("top")).unwrap();

        let first = of();
        assert_eq!(first.package, "top");
        let mut expected: Vec<_> = files.iter().map(|(name, _)| root.join(name)).collect();
        expected.sort();
        assert_eq!(first.files, expected);
        assert_eq!(of().digest, first.digest);
        for (name, text) in &files {
            let path = root.join(name);
            // A comment to cargo; not text where it need not be.
            let more: &[u8] = if name.ends_with(".bin") { b"\xff\xfe" } else { b"#\n" };
            fs::write(&path, [text.as_bytes(), more].concat()).unwrap();
            assert_ne!(of().digest, first.digest, "{name}");
            fs::write(&path, text).unwrap();
        }
        assert_eq!(of().digest, first.digest);
    }
}
