//! Where to look for a vendor library.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable with folders to look in first, separated as in `PATH`.
const PEERS_PATH: &str = "LACUNA_PEERS_PATH";
/// The variables that name a CUDA toolkit.
const TOOLKITS: [&str; 2] = ["CUDA_PATH", "CUDA_HOME"];
/// Where a toolkit lies when no variable says so.
const DEFAULT_TOOLKIT: &str = "/usr/local/cuda";

/// One place that may hold a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A folder.
    Folder(PathBuf),
    /// Wherever the system's loader looks: its cache, `LD_LIBRARY_PATH`.
    System,
}

/// The places in which to look for the libraries, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    places: Vec<Place>,
}

impl Search {
    /// The usual places: the folders of `LACUNA_PEERS_PATH`, `lib64` of `CUDA_PATH` and of `CUDA_HOME`, the
    /// system loader's path, `/usr/local/cuda/lib64`.
    pub fn from_env() -> Self {
        Self::from_variables(|name| env::var_os(name))
    }

    /// These folders in this order, and nowhere else.
    pub fn in_folders<P: Into<PathBuf>>(folders: impl IntoIterator<Item = P>) -> Self {
        Self { places: folders.into_iter().map(|folder| Place::Folder(folder.into())).collect() }
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        // An empty entry would mean the current folder, from which nobody expects to load code.
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let mut places = Vec::new();
        if let Some(folders) = set(PEERS_PATH) {
            places
                .extend(env::split_paths(&folders).filter(|p| !p.as_os_str().is_empty()).map(Place::Folder));
        }
        for toolkit in TOOLKITS.into_iter().filter_map(set) {
            places.push(Place::Folder(Path::new(&toolkit).join("lib64")));
        }
        places.push(Place::System);
        places.push(Place::Folder(Path::new(DEFAULT_TOOLKIT).join("lib64")));
        Self { places }
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// The folders among the places.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().filter_map(|place| match place {
            Place::Folder(folder) => Some(folder.as_path()),
            Place::System => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(path: &str) -> Place {
        Place::Folder(path.into())
    }

    #[test]
    fn without_variables_the_system_comes_before_the_default_toolkit() {
        let search = Search::from_variables(|_| None);
        assert_eq!(search.places(), [Place::System, folder("/usr/local/cuda/lib64")]);
    }

    #[test]
    fn named_folders_come_first_and_empty_entries_are_dropped() {
        let search = Search::from_variables(|name| match name {
            "LACUNA_PEERS_PATH" => Some("/one::/two".into()),
            "CUDA_PATH" => Some("/toolkit".into()),
            "CUDA_HOME" => Some("".into()),
            _ => None,
        });
        let expected = [
            folder("/one"),
            folder("/two"),
            folder("/toolkit/lib64"),
            Place::System,
            folder("/usr/local/cuda/lib64"),
        ];
        assert_eq!(search.places(), expected);
    }

    #[test]
    fn given_folders_are_the_only_places() {
        assert_eq!(Search::in_folders(["/one"]).places(), [folder("/one")]);
    }
}
