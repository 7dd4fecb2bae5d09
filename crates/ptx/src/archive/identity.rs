//! What PTX was made of, by content.
use std::fs;
use std::path::{Path, PathBuf};

use crate::{BuildError, LaunchBounds, Target, cache, compile, sources};

/// What PTX is made of: the kernels' sources, with the way in which they are compiled; and the list of entries, with their
/// launch bounds. The same at every place, and in packages: neither manifests nor the names of folders count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub(super) sources: String,
    pub(super) list: String,
}

impl Identity {
    /// Of the crates in these folders, all that is below their `src`, and of the entries with their bounds; and which files
    /// were read.
    ///
    /// # Errors
    /// A file or folder that cannot be read.
    pub fn of<'a, F: AsRef<Path>>(
        folders: &[F],
        entries: impl IntoIterator<Item = (&'a str, LaunchBounds)>,
    ) -> Result<(Self, Vec<PathBuf>), BuildError> {
        let mut parts: Vec<Vec<u8>> = Target::ALL.map(|target| compile::settings(target).into_bytes()).into();
        let mut files = Vec::new();
        for (at, folder) in folders.iter().enumerate() {
            let folder = folder.as_ref();
            for file in sources::below(&folder.join("src"))? {
                let name: Vec<_> = file.strip_prefix(folder).unwrap_or(&file).iter().collect();
                let name = name.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
                parts.push(format!("{at}/{name}").into_bytes());
                parts.push(fs::read(&file).map_err(BuildError::io("read", &file))?);
                files.push(file);
            }
        }
        let list = entries.into_iter().map(|(name, bounds)| format!("{name} {bounds:?}"));
        Ok((Self { sources: cache::digest(parts), list: cache::digest(list) }, files))
    }

    /// What another differs in, with what it is here and there.
    pub(super) fn difference<'a>(&'a self, other: &'a Self) -> Option<(&'static str, &'a str, &'a str)> {
        let parts = [
            ("the kernels' sources", &self.sources, &other.sources),
            ("the list of entries", &self.list, &other.list),
        ];
        parts
            .into_iter()
            .find(|(_, own, others)| own != others)
            .map(|(what, own, others)| (what, &**own, &**others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate with two files.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("src/add")).unwrap();
        fs::write(folder.path().join("src/lib.rs"), "mod add;").unwrap();
        fs::write(folder.path().join("src/add/mod.rs"), "fn add() {}").unwrap();
        fs::write(folder.path().join("Cargo.toml"), "a manifest").unwrap();
        folder
    }

    fn of(folder: &tempfile::TempDir, name: &str, threads: u32) -> Identity {
        Identity::of(&[folder.path()], [(name, LaunchBounds::threads(threads))]).unwrap().0
    }

    #[test]
    fn it_is_the_same_at_another_place_and_with_another_manifest() {
        let [one, other] = [folder(), folder()];
        fs::write(other.path().join("Cargo.toml"), "as cargo writes it into a package").unwrap();
        assert_eq!(of(&one, "add", 64), of(&other, "add", 64));
        let (_, files) = Identity::of(&[one.path(), other.path()], []).unwrap();
        assert_eq!(files.len(), 4);
        assert!(Identity::of(&[one.path().join("none")], []).is_err());
    }

    #[test]
    fn it_follows_what_changes_the_ptx() {
        let (base, whole) = (folder(), folder());
        let base = of(&base, "add", 64);
        let what = |other: Identity| base.difference(&other).map(|(what, ..)| what);
        assert_eq!(what(of(&whole, "add", 64)), None);
        assert_eq!(what(of(&whole, "sub", 64)), Some("the list of entries"));
        assert_eq!(what(of(&whole, "add", 128)), Some("the list of entries"));
        fs::write(whole.path().join("src/add/mod.rs"), "fn add() { }").unwrap();
        assert_eq!(what(of(&whole, "add", 64)), Some("the kernels' sources"));
        fs::write(whole.path().join("src/add/mod.rs"), "fn add() {}").unwrap();
        fs::rename(whole.path().join("src/add"), whole.path().join("src/sum")).unwrap();
        assert_eq!(what(of(&whole, "add", 64)), Some("the kernels' sources"));
    }
}
