//! Real matrices, where there are any: the Deep Learning Matrix Collection and graphs.
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::exit::{Missing, Usage};

/// The folder names that the suite knows, also as archives: `NAME/` or `NAME.tar.xz`.
pub const FOLDERS: [&str; 2] = ["dlmc", "graphs"];

/// The environment variable that names the folder of real data.
pub const VARIABLE: &str = "LACUNA_DATA";

/// A folder of real data, or none. What is packed is unpacked into a place of its own that goes when this is dropped.
#[derive(Debug)]
pub struct Data {
    root: Option<PathBuf>,
    unpacked: Option<TempDir>,
}

impl Data {
    /// No data.
    pub fn none() -> Self {
        Self { root: None, unpacked: None }
    }

    /// The data in `named`, else in the folder that [`VARIABLE`] names, else where it usually lies: in `data` beside
    /// the program, or in `../shared/data` beside the workspace.
    ///
    /// # Errors
    /// If a folder that was named holds none of [`FOLDERS`].
    pub fn find(named: Option<&Path>) -> Result<Self, Usage> {
        let variable = || env::var_os(VARIABLE).map(PathBuf::from);
        if let Some(root) = named.map(Path::to_owned).or_else(variable) {
            if !holds_data(&root) {
                let [first, second] = FOLDERS;
                return Err(Usage(format!(
                    "no data in {}: expected a folder with {first}/, {first}.tar.xz, {second}/ or {second}.tar.xz",
                    root.display()
                )));
            }
            return Ok(Self { root: Some(root), unpacked: None });
        }
        Ok(Self { root: usual_places().into_iter().find(|root| holds_data(root)), unpacked: None })
    }

    /// Unpacks what is packed.
    ///
    /// # Errors
    /// If `tar` or `xz` is not installed, or the archive is broken.
    pub fn unpack(&mut self) -> Result<(), Missing> {
        let Some(root) = &self.root else { return Ok(()) };
        for name in FOLDERS {
            let archive = archive(root, name);
            if root.join(name).is_dir() || !archive.is_file() {
                continue;
            }
            let failed = |why: String| {
                Missing(format!(
                    "cannot unpack {}: {why}; install `tar` and `xz`, or unpack it there by hand",
                    archive.display()
                ))
            };
            let to = match &self.unpacked {
                Some(folder) => folder,
                None => self.unpacked.insert(TempDir::new().map_err(|error| failed(error.to_string()))?),
            };
            let output = Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(to.path()).output();
            let output = output.map_err(|error| failed(error.to_string()))?;
            if !output.status.success() {
                return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
            }
        }
        Ok(())
    }

    /// The folder `name`, one of [`FOLDERS`], if it is there and needs no more unpacking.
    pub fn folder(&self, name: &str) -> Option<PathBuf> {
        let roots = [self.root.as_deref(), self.unpacked.as_ref().map(TempDir::path)];
        roots.into_iter().flatten().map(|root| root.join(name)).find(|folder| folder.is_dir())
    }
}

/// Why cases on real data are skipped.
pub(crate) fn why_missing(name: &str) -> String {
    format!("no data: give a folder that holds {name}/ or {name}.tar.xz by --data or {VARIABLE}")
}

/// The files below `folder` with this extension, by name.
///
/// # Errors
/// What the file system says.
pub(crate) fn files(folder: &Path, extension: &str) -> std::io::Result<Vec<PathBuf>> {
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
        let mut data = Data::find(Some(root.path())).unwrap();
        data.unpack().unwrap();
        let folder = data.folder("dlmc").unwrap();
        assert_eq!(files(&folder, "smtx").unwrap(), [folder.join("a.smtx"), folder.join("deep/b.smtx")]);
        assert_eq!(data.folder("graphs"), None);
    }

    #[test]
    fn a_broken_archive_says_what_to_do() {
        let root = TempDir::new().unwrap();
        fs::write(root.path().join("graphs.tar.xz"), "not an archive").unwrap();
        let error = Data::find(Some(root.path())).unwrap().unpack().unwrap_err().to_string();
        assert!(error.contains("graphs.tar.xz") && error.contains("install"), "{error}");
    }
}
