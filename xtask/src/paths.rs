//! Where things lie in the repository, and around it.
use std::env;
use std::path::{Path, PathBuf};

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root")
}

/// Real matrices: `LACUNA_DATA`, or `shared/data` beside the repository if there is one.
pub(crate) fn data() -> Option<PathBuf> {
    let named = env::var_os("LACUNA_DATA").filter(|value| !value.is_empty()).map(PathBuf::from);
    named.or_else(|| root().parent().map(|above| above.join("shared/data"))).filter(|folder| folder.is_dir())
}
