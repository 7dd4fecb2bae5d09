//! What is kept between builds, and where the tools that `cargo xtask setup` fetches lie.
//!
//! ```text
//!   ptx       <key>                  the compiler's PTX, by content of sources, flags, target and compiler
//!   reports   <key>                  what ptxas said, by content of the PTX and ptxas's version
//!   work      <target>-<checkout>    cargo's target directory for device code
//!   debian                           Debian's device compiler, unpacked without root
//!   ptxas                            ptxas, unpacked from its wheel
//!   cuda      lib64                  what programs link instead of the driver
//! ```
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::BuildError;

/// The cache directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The cache of this user: `LACUNA_CACHE_DIR`, or `lacuna` in `XDG_CACHE_HOME` or `$HOME/.cache`. It need not
    /// exist.
    ///
    /// # Errors
    /// None of the three variables is set.
    pub fn of_user() -> Result<Self, BuildError> {
        Self::from_variables(|name| {
            std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
        })
        .ok_or(BuildError::NoCacheDir)
    }

    fn from_variables(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        let root = variable("LACUNA_CACHE_DIR").or_else(|| {
            let platform =
                variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
            Some(platform.join("lacuna"))
        })?;
        // Linkers and inner builds run elsewhere.
        Some(Self::at(std::path::absolute(&root).unwrap_or(root)))
    }

    /// The cache in a given directory.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Root of the unpacked Debian compiler; `usr/bin/rustc` lies below it.
    pub fn debian_root(&self) -> PathBuf {
        self.root.join("debian")
    }

    /// Root of the unpacked ptxas wheel.
    pub fn ptxas_root(&self) -> PathBuf {
        self.root.join("ptxas")
    }

    /// What `CUDA_LIBRARY_PATH` is set to when a program is linked with `cust` on a machine without CUDA. The link
    /// library lies in `lib64` below it.
    pub fn cuda_library_path(&self) -> PathBuf {
        self.root.join("cuda")
    }

    /// cargo's target directory for builds of one kind.
    pub(crate) fn work_dir(&self, name: &str) -> PathBuf {
        self.root.join("work").join(name)
    }

    /// Waits until no other process builds under this name, and keeps others out until the file is dropped.
    pub(crate) fn lock(&self, name: &str) -> Result<File, BuildError> {
        let path = self.root.join("work").join(format!("{name}.lock"));
        create_parent(&path)?;
        let file = File::create(&path).map_err(BuildError::cache(&path))?;
        file.lock().map_err(BuildError::cache(&path))?;
        Ok(file)
    }

    /// The entry kept under a key. Nothing when there is none, or when it is damaged.
    pub(crate) fn get(&self, kind: &str, key: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(kind).join(key)).ok()?;
        let (checksum, body) = text.split_once('\n')?;
        (checksum == digest([body])).then(|| body.to_owned())
    }

    /// Keeps an entry. Readers see the old one or the new one, never a part.
    pub(crate) fn put(&self, kind: &str, key: &str, body: &str) -> Result<(), BuildError> {
        let path = self.root.join(kind).join(key);
        write_atomically(&path, format!("{}\n{body}", digest([body])))
    }
}

/// Writes a file in one step, with its folders.
///
/// # Errors
/// [`BuildError::Cache`] when the folder cannot be made or written.
pub fn write_atomically(path: &Path, content: impl AsRef<[u8]>) -> Result<(), BuildError> {
    let folder = create_parent(path)?;
    let error = |source| BuildError::Cache { path: path.into(), source };
    let mut builder = tempfile::Builder::new();
    // As an ordinary file: what the user's mask allows.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder).map_err(error)?;
    file.write_all(content.as_ref()).map_err(error)?;
    file.persist(path).map_err(|failed| error(failed.error))?;
    Ok(())
}

fn create_parent(path: &Path) -> Result<&Path, BuildError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(BuildError::cache(folder))?;
    Ok(folder)
}

/// A key of some parts: SHA-256 in hexadecimal. Each part's length counts, so that no two lists of parts run together.
pub(crate) fn digest<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let part = part.as_ref();
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary() -> (tempfile::TempDir, Cache) {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("cache"));
        (dir, cache)
    }

    #[test]
    fn the_nearest_variable_wins() {
        let with = |set: &[(&str, &str)]| {
            Cache::from_variables(|name| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
            })
            .map(|cache| cache.root)
        };
        let all = [("LACUNA_CACHE_DIR", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(with(&all), Some("/a".into()));
        assert_eq!(with(&all[1..]), Some("/b/lacuna".into()));
        assert_eq!(with(&all[2..]), Some("/c/.cache/lacuna".into()));
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn what_is_put_is_got() {
        let (_dir, cache) = temporary();
        assert_eq!(cache.get("ptx", "key"), None);
        cache.put("ptx", "key", "one\ntwo\n").unwrap();
        assert_eq!(cache.get("ptx", "key").as_deref(), Some("one\ntwo\n"));
        cache.put("ptx", "key", "three").unwrap();
        assert_eq!(cache.get("ptx", "key").as_deref(), Some("three"));
        assert_eq!(cache.get("reports", "key"), None);
    }

    #[test]
    fn a_damaged_entry_is_no_entry() {
        let (_dir, cache) = temporary();
        cache.put("ptx", "key", "a body that matters").unwrap();
        let path = cache.root().join("ptx/key");
        let whole = fs::read(&path).unwrap();
        for cut in [0, 10, whole.len() - 1] {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(cache.get("ptx", "key"), None, "cut to {cut} bytes");
        }
        fs::write(&path, b"\xff\xfe\n").unwrap();
        assert_eq!(cache.get("ptx", "key"), None);
    }

    #[test]
    fn an_unwritable_cache_says_what_to_set() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "in the way").unwrap();
        let cache = Cache::at(file.join("cache"));
        for error in [cache.put("ptx", "key", "body").unwrap_err(), cache.lock("sm_80").unwrap_err()] {
            assert!(matches!(error, BuildError::Cache { .. }));
            assert!(error.to_string().contains("set LACUNA_CACHE_DIR"), "{error}");
        }
    }

    #[test]
    fn a_lock_keeps_others_out() {
        let (_dir, cache) = temporary();
        let held = cache.lock("sm_80").unwrap();
        let second = File::open(cache.root().join("work/sm_80.lock")).unwrap();
        assert!(matches!(second.try_lock(), Err(fs::TryLockError::WouldBlock)));
        drop(held);
        assert!(second.try_lock().is_ok());
    }

    #[test]
    fn keys_tell_parts_apart() {
        assert_ne!(digest(["ab", "c"]), digest(["a", "bc"]));
        assert_ne!(digest(["ab"]), digest(["ab", ""]));
        assert_eq!(digest(["ab", "c"]), digest(["ab", "c"]));
        assert_eq!(digest::<&str>([]).len(), 64);
    }
}
