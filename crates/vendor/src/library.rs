//! Finding and opening a vendor library.

use std::fmt;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::search::{Place, Search};
use crate::status::{CUDA_ENDINGS, Vendor};

/// The version of a loaded library, by its own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Changes with the interface.
    pub major: u32,
    /// Changes with the features.
    pub minor: u32,
    /// Changes with the fixes.
    pub patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A file that is there but cannot serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadFailure {
    /// The file; a bare name where the system's loader looked it up.
    pub path: PathBuf,
    /// What was wrong with it.
    pub reason: String,
}

/// A library that could not be loaded: what was looked for, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Missing {
    vendor: Vendor,
    names: Vec<String>,
    places: Vec<Place>,
    failures: Vec<LoadFailure>,
}

impl Missing {
    /// Which library is missing.
    pub fn vendor(&self) -> Vendor {
        self.vendor
    }

    /// The file names that were tried in each place.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The files that were there but did not load.
    pub fn failures(&self) -> &[LoadFailure] {
        &self.failures
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<String> = self.places.iter().map(Place::to_string).collect();
        let places = if places.is_empty() { "no folder at all".to_owned() } else { places.join(", ") };
        write!(f, "{} was not loaded: looked for {} in {places}. ", self.vendor, self.names.join(", "))?;
        for LoadFailure { path, reason } in &self.failures {
            write!(f, "{} does not serve: {reason}. ", path.display())?;
        }
        write!(
            f,
            "To use it, install {} or newer, or Python's wheel {} ({} for a driver of CUDA 12), and name the \
             folder that holds the library, and those of {}, in LACUNA_PEERS_PATH",
            self.vendor.product(),
            self.vendor.wheel(),
            self.vendor.wheel_of_cuda_12(),
            self.vendor.companions().join(", "),
        )
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Folder(folder) => folder.display().fmt(f),
            Place::System => f.write_str("the system loader's path"),
        }
    }
}

/// Opens the first library of `vendor` from which `resolve` gets what it wants; says where it was.
///
/// The library stays loaded until the process ends: vendor libraries keep threads and exit handlers, and
/// unloading one under them crashes.
pub(crate) fn open<T>(
    vendor: Vendor,
    search: &Search,
    resolve: impl Fn(&Library) -> Result<T, String>,
) -> Result<(T, PathBuf), Missing> {
    let names: Vec<String> = names(vendor.stem(), vendor.endings()).collect();
    let mut failures = Vec::new();
    for place in search.places() {
        for name in &names {
            let path = match place {
                Place::Folder(folder) => folder.join(name),
                Place::System => PathBuf::from(name),
            };
            if let Place::Folder(folder) = place {
                if !path.is_file() {
                    continue;
                }
                open_companions(vendor, folder, search);
            }
            match open_file(&path).and_then(|library| resolve(&library).map(|api| (api, library))) {
                Ok((api, library)) => {
                    std::mem::forget(library);
                    return Ok((api, path));
                }
                // The loader's word for "no such file", which the list of names already says.
                Err(reason) if *place == Place::System && reason.starts_with(name.as_str()) => {}
                Err(reason) => failures.push(LoadFailure { path, reason }),
            }
        }
    }
    Err(Missing { vendor, names, places: search.places().to_vec(), failures })
}

/// Loads the libraries that `vendor`'s needs, where they lie beside it or in another folder of the search.
///
/// A toolkit off the loader's path has no other way to find them. The loader then meets their names when it
/// opens the vendor's library and takes what is loaded. One that is not found here is left to the loader.
fn open_companions(vendor: Vendor, beside: &Path, search: &Search) {
    for name in vendor.companions().iter().flat_map(|stem| names(stem, CUDA_ENDINGS)) {
        let found = std::iter::once(beside).chain(search.folders()).map(|folder| folder.join(&name));
        if let Some(library) = found.filter(|path| path.is_file()).find_map(|path| open_file(&path).ok()) {
            std::mem::forget(library);
        }
    }
}

/// The file names to try, in order.
fn names(stem: &str, endings: &[&str]) -> impl Iterator<Item = String> {
    endings.iter().map(move |ending| format!("{stem}{ending}"))
}

fn open_file(path: &Path) -> Result<Library, String> {
    // SAFETY: opening a library runs its initialisers. The folders are the user's choice or the system's, and
    // the vendor's libraries ask nothing of their loader.
    unsafe { Library::new(path) }.map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        source.unwrap_or_else(|| error.to_string())
    })
}
