//! Real data, where there is any: the Deep Learning Matrix Collection, feature maps, graphs, MNIST, and the Sparse DNN Challenge.
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::exit::Usage;

/// The folder names that are known, also as archives: `NAME/` or `NAME.tar.xz`.
pub const FOLDERS: [&str; 5] = ["dlmc", "feature_maps", "graphs", "mnist", "spdnn"];

/// The environment variable that names the folder of real data.
pub const VARIABLE: &str = "LACUNA_DATA";

/// A folder of real data, or none. What is packed is unpacked into a place of its own that goes when this is dropped.
#[derive(Debug, Default)]
pub struct Data {
    root: Option<PathBuf>,
    unpacked: Option<TempDir>,
    /// The folders that could not be unpacked, and why.
    failed: BTreeMap<&'static str, String>,
}

/// The state of a folder of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Folder {
    /// It lies here.
    At(PathBuf),
    /// There is an archive of it: see [`Data::unpack`].
    Packed,
    /// There is none: why, and what to do.
    Missing(String),
}

impl Data {
    /// No data.
    pub fn none() -> Self {
        Self::default()
    }

    /// The data in `named`, else in the folder that [`VARIABLE`] names, else where it usually lies: in `data` beside
    /// the program, or in `../shared/data` beside the workspace. Unpacks nothing.
    ///
    /// # Errors
    /// If a folder that was named holds none of [`FOLDERS`].
    pub fn find(named: Option<&Path>) -> Result<Self, Usage> {
        let variable = || env::var_os(VARIABLE).filter(|root| !root.is_empty()).map(PathBuf::from);
        if let Some(root) = named.map(Path::to_owned).or_else(variable) {
            if !holds_data(&root) {
                let known = FOLDERS.map(|name| format!("{name}/ or {name}.tar.xz")).join(", ");
                return Err(Usage(format!("no data in {}: expected a folder with {known}", root.display())));
            }
            return Ok(Self { root: Some(root), ..Self::default() });
        }
        Ok(Self { root: usual_places().into_iter().find(|root| holds_data(root)), ..Self::default() })
    }

    /// Unpacks the folder `name`, one of [`FOLDERS`], if it is packed. If that fails, it counts as missing from then on.
    pub fn unpack(&mut self, name: &'static str) {
        let Some(root) = self.root.as_deref().filter(|_| self.folder(name) == Folder::Packed) else { return };
        let archive = archive(root, name);
        if let Err(why) = self.unpack_archive(&archive, name) {
            let archive = archive.display();
            let why =
                format!("cannot unpack {archive}: {why}; install `tar` and `xz`, or unpack it there by hand");
            self.failed.insert(name, why);
        }
    }

    fn unpack_archive(&mut self, archive: &Path, name: &str) -> Result<(), String> {
        let to = match &self.unpacked {
            Some(folder) => folder.path(),
            None => self.unpacked.insert(TempDir::new().map_err(|error| error.to_string())?).path(),
        };
        let output = Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(to).output();
        let output = output.map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        if to.join(name).is_dir() { Ok(()) } else { Err(format!("there is no folder {name}/ in it")) }
    }

    /// How it stands with the folder `name`, one of [`FOLDERS`].
    pub fn folder(&self, name: &str) -> Folder {
        if let Some(why) = self.failed.get(name) {
            return Folder::Missing(why.clone());
        }
        let roots = [self.root.as_deref(), self.unpacked.as_ref().map(TempDir::path)];
        if let Some(at) = roots.into_iter().flatten().map(|root| root.join(name)).find(|at| at.is_dir()) {
            return Folder::At(at);
        }
        if self.root.as_deref().is_some_and(|root| archive(root, name).is_file()) {
            return Folder::Packed;
        }
        Folder::Missing(format!(
            "no data: give a folder that holds {name}/ or {name}.tar.xz by --data or {VARIABLE}"
        ))
    }
}

/// The files below `folder` with this extension, by name: their paths inside it without the extension, and whole.
///
/// # Errors
/// What the file system says, and what to do.
pub fn named_files(folder: &Path, extension: &str) -> Result<Vec<(String, PathBuf)>, String> {
    let files = files(folder, extension).map_err(|error| unreadable(folder, &error))?;
    let named = files.into_iter().map(|path| {
        let inside = path.strip_prefix(folder).unwrap_or(&path);
        // Sparsities have a point, too: cut off the extension alone.
        let name = inside.with_extension("").to_string_lossy().replace('\\', "/");
        (name, path)
    });
    Ok(named.collect())
}

fn files(folder: &Path, extension: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|is| is == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Why data cannot be read, and what to do.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("cannot read {}: {error}; unpack the data again", path.display())
}

fn archive(root: &Path, name: &str) -> PathBuf {
    root.join(format!("{name}.tar.xz"))
}

fn holds_data(root: &Path) -> bool {
    FOLDERS.iter().any(|name| root.join(name).is_dir() || archive(root, name).is_file())
}

/// Where data lies that nobody named. Cargo tells the programs that it runs where their package is.
fn usual_places() -> Vec<PathBuf> {
    let beside_program = env::current_exe().ok().and_then(|program| Some(program.parent()?.join("data")));
    let beside_workspace =
        env::var_os("CARGO_MANIFEST_DIR").map(|package| Path::new(&package).join("../../shared/data"));
    let here = Some(PathBuf::from("../shared/data"));
    [beside_program, beside_workspace, here].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_named_folder_without_data_is_refused() {
        let empty = TempDir::new().unwrap();
        let error = Data::find(Some(empty.path())).unwrap_err().to_string();
        assert!(error.contains("dlmc.tar.xz"), "{error}");
    }

    #[test]
    fn a_folder_is_found_as_it_is() {
        let root = TempDir::new().unwrap();
        fs::create_dir_all(root.path().join("dlmc/deep")).unwrap();
        fs::write(root.path().join("dlmc/deep/b.smtx"), "").unwrap();
        fs::write(root.path().join("dlmc/a.smtx"), "").unwrap();
        fs::write(root.path().join("dlmc/sizes.txt"), "").unwrap();
        let data = Data::find(Some(root.path())).unwrap();
        let folder = root.path().join("dlmc");
        assert_eq!(data.folder("dlmc"), Folder::At(folder.clone()));
        let named = [("a".into(), folder.join("a.smtx")), ("deep/b".into(), folder.join("deep/b.smtx"))];
        assert_eq!(named_files(&folder, "smtx").unwrap(), named);
        assert!(matches!(data.folder("graphs"), Folder::Missing(why) if why.contains("--data")));
    }

    #[test]
    fn a_broken_archive_says_what_to_do() {
        let root = TempDir::new().unwrap();
        fs::write(root.path().join("graphs.tar.xz"), "not an archive").unwrap();
        let mut data = Data::find(Some(root.path())).unwrap();
        assert_eq!(data.folder("graphs"), Folder::Packed);
        data.unpack("graphs");
        let Folder::Missing(why) = data.folder("graphs") else { panic!("it is there") };
        assert!(why.contains("graphs.tar.xz") && why.contains("install"), "{why}");
    }
}
