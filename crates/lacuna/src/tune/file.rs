//! The file of choices on disk: read as a whole, and replaced as a whole.
//!
//! A new file is written beside the old one and then takes its name, so a reader finds one or the other, never a part.
//! Those who write take turns by a lock on a file beside it, and each keeps what the others wrote. The system frees the
//! lock of a process that ends; where a file system has no locks, two who write at once may lose a choice, which is then
//! measured again.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::TuneWarning;
use super::format::{self, FORMAT, MOST_BYTES, Rankings, Unusable};

/// Problems in the largest file that is written. When there are more, only those that this autotuner measured stay.
const MOST_PROBLEMS: usize = 16_384;

/// The choices in a file; none where there is no file.
pub(super) fn load(path: &Path) -> Result<Rankings, TuneWarning> {
    let unreadable = |why: String| TuneWarning::Unreadable { path: path.into(), why };
    let bytes = match read_regular(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Rankings::new()),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    if bytes.len() as u64 > MOST_BYTES {
        return Err(unreadable(format!("it has more than {MOST_BYTES} bytes")));
    }
    format::read(&bytes).map_err(|unusable| match unusable {
        Unusable::OtherFormat(got) => TuneWarning::OtherFormat { path: path.into(), expected: FORMAT, got },
        Unusable::Corrupt(why) => TuneWarning::Corrupt { path: path.into(), why },
        Unusable::OtherFile => TuneWarning::OtherFile { path: path.into() },
    })
}

/// The bytes of a regular file, one more than the most at most. Others, such as pipes, might never end.
fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Adds `own` to the file, over what it has for the same problems, and gives all that is in it now.
pub(super) fn store(path: &Path, own: &Rankings) -> Result<Rankings, TuneWarning> {
    let not_stored = |why: String| TuneWarning::NotStored { path: path.into(), why };
    let failed = |error: io::Error| not_stored(error.to_string());
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder).map_err(failed)?;
    let turn = OpenOptions::new().create(true).append(true).open(lock_path(path)).map_err(failed)?;
    match turn.lock() {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(error) => return Err(failed(error)),
    }
    let mut merged = match load(path) {
        Ok(rankings) => rankings,
        Err(TuneWarning::Corrupt { .. }) => Rankings::new(),
        Err(warning) => return Err(warning),
    };
    merged.extend(own.clone());
    if merged.len() > MOST_PROBLEMS {
        merged.clone_from(own);
    }
    let bytes = format::write(&merged).map_err(|error| not_stored(error.to_string()))?;
    replace(path, folder, &bytes).map_err(failed)?;
    Ok(merged)
}

/// Gives `path` these contents, all of them or none.
fn replace(path: &Path, folder: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// The file beside `path` by whose lock those who write it take turns.
fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::super::format::Measured;
    use super::*;

    fn one(key: &str, entry: &str) -> Rankings {
        Rankings::from([(key.into(), vec![Measured::new(entry, 1.5)])])
    }

    #[test]
    fn what_others_wrote_meanwhile_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/folder/tune.json");
        assert_eq!(load(&path), Ok(Rankings::new()));
        assert_eq!(store(&path, &one("a", "x")), Ok(one("a", "x")));
        let both: Rankings = [one("a", "x"), one("b", "y")].into_iter().flatten().collect();
        assert_eq!(store(&path, &one("b", "y")), Ok(both.clone()));
        assert_eq!(load(&path), Ok(both));
        let newer = store(&path, &one("a", "z")).unwrap();
        assert_eq!((newer["a"][0].entry.as_str(), newer["b"][0].entry.as_str()), ("z", "y"));
    }

    #[test]
    fn damage_is_told_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tune.json");
        fs::write(&path, "{\"format\": 2, \"rank").unwrap();
        assert!(matches!(load(&path), Err(TuneWarning::Corrupt { .. })));
        assert_eq!(store(&path, &one("a", "x")), Ok(one("a", "x")));
        assert_eq!(load(&path), Ok(one("a", "x")));
    }

    #[test]
    fn another_format_and_other_files_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tune.json");
        fs::write(&path, "%%MatrixMarket").unwrap();
        let other_file = TuneWarning::OtherFile { path: path.clone() };
        assert_eq!((load(&path), store(&path, &one("a", "x"))), (Err(other_file.clone()), Err(other_file)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "%%MatrixMarket");
        let text = r#"{"format": 7, "plans": 3}"#;
        fs::write(&path, text).unwrap();
        let other_format = TuneWarning::OtherFormat { path: path.clone(), expected: FORMAT, got: 7 };
        assert_eq!(load(&path), Err(other_format.clone()));
        assert_eq!(store(&path, &one("a", "x")), Err(other_format));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn a_folder_in_the_files_place_is_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tune.json");
        fs::create_dir(&path).unwrap();
        assert!(matches!(load(&path), Err(TuneWarning::Unreadable { .. })));
        assert!(store(&path, &one("a", "x")).is_err());
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let below = store(&file.join("tune.json"), &one("a", "x"));
        assert!(matches!(below, Err(TuneWarning::NotStored { .. })), "{below:?}");
    }

    #[test]
    fn threads_that_write_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tune.json");
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for index in 0..5 {
                        store(path, &one(&format!("{thread} {index}"), "x")).unwrap();
                    }
                });
            }
        });
        assert_eq!(load(&path).unwrap().len(), 40);
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 2, "the file and its lock, and nothing temporary");
    }

    #[test]
    fn a_full_file_starts_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tune.json");
        let many: Rankings = (0..MOST_PROBLEMS).flat_map(|index| one(&index.to_string(), "x")).collect();
        assert_eq!(store(&path, &many).unwrap().len(), MOST_PROBLEMS);
        assert_eq!(store(&path, &one("new", "y")), Ok(one("new", "y")));
    }
}
