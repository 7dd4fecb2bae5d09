//! PTX in one file: what a build on one machine gives to builds on others, which have no device compiler.
//!
//! ```text
//!   lacuna-ptx 1 <SHA-256 of all that follows>\n
//!   {"compiler": …, "sources": …, "list": …, "entries": [[entry, target, bytes], …]}\n
//!   the entries' PTX, each packed with zlib, one after the other
//! ```
mod identity;
mod obtain;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use serde_json::{Value, json};

pub use self::identity::Identity;
use crate::{Build, BuildError, Target, cache};

/// How the first line begins, but for the number of the format.
const MAGIC: &str = "lacuna-ptx ";
/// Raise it when the form of the file changes.
const FORMAT: &str = "1";
/// Level of zlib: more makes it hardly smaller.
const LEVEL: u8 = 6;

/// The PTX of entries for targets, packed, and what it was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// What `rustc --version` of the device compiler printed.
    pub compiler: String,
    /// What it was made of.
    pub identity: Identity,
    packed: Vec<u8>,
    places: BTreeMap<(String, Target), Range<usize>>,
}

impl Archive {
    /// Packs those entries of a build that are wanted.
    pub fn of_build(build: &Build, identity: Identity, wanted: impl Fn(&str) -> bool) -> Self {
        let compiler = build.compiler.as_ref().map_or("given modules", |compiler| &compiler.version);
        let mut archive =
            Self { compiler: compiler.into(), identity, packed: Vec::new(), places: BTreeMap::new() };
        for module in &build.modules {
            for entry in module.entries.iter().filter(|entry| wanted(&entry.name)) {
                archive.push(&entry.name, module.target, &entry.ptx);
            }
        }
        archive
    }

    fn push(&mut self, entry: &str, target: Target, ptx: &str) {
        let start = self.packed.len();
        self.packed.extend(miniz_oxide::deflate::compress_to_vec_zlib(ptx.as_bytes(), LEVEL));
        self.places.insert((entry.into(), target), start..self.packed.len());
    }

    /// An entry's PTX, as zlib packs it.
    pub fn packed(&self, entry: &str, target: Target) -> Option<&[u8]> {
        self.places.get(&(entry.into(), target)).map(|place| &self.packed[place.clone()])
    }

    /// The same; an error where it holds none.
    ///
    /// # Errors
    /// [`BuildError::NotInArchive`].
    pub fn expect(&self, entry: &str, target: Target) -> Result<&[u8], BuildError> {
        self.packed(entry, target).ok_or_else(|| BuildError::NotInArchive { entry: entry.into(), target })
    }

    /// How many pieces of PTX it holds: an entry for a target each.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Writes it in one step, with its folders; and how many bytes it has.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<usize, BuildError> {
        let bytes = self.to_bytes();
        cache::write_atomically(path, &bytes)?;
        Ok(bytes.len())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut places: Vec<_> = self.places.iter().collect();
        places.sort_by_key(|(_, place)| place.start);
        let entries: Vec<_> = places
            .iter()
            .map(|((entry, target), place)| json!([entry, target.name(), place.len()]))
            .collect();
        let manifest = json!({
            "compiler": self.compiler,
            "sources": self.identity.sources,
            "list": self.identity.list,
            "entries": entries,
        });
        let rest = [manifest.to_string().as_bytes(), b"\n", &self.packed].concat();
        let head = format!("{MAGIC}{FORMAT} {}\n", cache::digest([&rest]));
        [head.as_bytes(), &rest].concat()
    }

    /// Reads an archive, whatever the file holds.
    ///
    /// # Errors
    /// [`BuildError::NotAnArchive`] for another kind of file, or another format; [`BuildError::DamagedArchive`] where its
    /// bytes are not those that were written; a file that cannot be read.
    pub fn read(path: &Path) -> Result<Self, BuildError> {
        let bytes = fs::read(path).map_err(BuildError::io("read", path))?;
        Self::from_bytes(&bytes).map_err(|fault| match fault {
            Fault::Other(found) => {
                BuildError::NotAnArchive { path: path.into(), expected: format!("{MAGIC}{FORMAT}"), found }
            }
            Fault::Damaged(reason) => BuildError::DamagedArchive { path: path.into(), reason },
        })
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, Fault> {
        let (head, rest) = line(bytes).unwrap_or((bytes, &[]));
        let beginning = || String::from_utf8_lossy(&head[..head.len().min(24)]).into_owned();
        let text = str::from_utf8(head).map_err(|_| Fault::Other(beginning()))?;
        let words = text.strip_prefix(MAGIC).and_then(|words| words.split_once(' '));
        let (_, expected) =
            words.filter(|(format, _)| *format == FORMAT).ok_or_else(|| Fault::Other(beginning()))?;
        let found = cache::digest([rest]);
        if found != expected {
            let bytes = bytes.len();
            let reason = format!("its checksum should be {expected} and is {found}, of {bytes} bytes in all");
            return Err(Fault::Damaged(reason));
        }
        Self::from_rest(rest)
    }

    /// For fuzzing: whether this can follow an archive's checksum, which random bytes do not get past.
    #[doc(hidden)]
    pub fn may_follow_checksum(rest: &[u8]) -> bool {
        Self::from_rest(rest).is_ok()
    }

    fn from_rest(rest: &[u8]) -> Result<Self, Fault> {
        let (manifest, packed) = line(rest).ok_or_else(|| Fault::Damaged("it has no manifest".into()))?;
        let manifest = serde_json::from_slice(manifest)
            .map_err(|error| Fault::Damaged(format!("its manifest does not parse: {error}")))?;
        Self::from_manifest(&manifest, packed)
            .ok_or_else(|| Fault::Damaged("its manifest does not describe what it holds".into()))
    }

    fn from_manifest(manifest: &Value, packed: &[u8]) -> Option<Self> {
        let text = |name: &str| manifest[name].as_str().map(str::to_owned);
        let (mut places, mut end) = (BTreeMap::new(), 0_usize);
        for entry in manifest["entries"].as_array()? {
            let [name, target, bytes] = entry.as_array()?.as_slice() else { return None };
            let start = end;
            end = start.checked_add(usize::try_from(bytes.as_u64()?).ok()?)?;
            let key = (name.as_str()?.to_owned(), target.as_str()?.parse().ok()?);
            if end > packed.len() || places.insert(key, start..end).is_some() {
                return None;
            }
        }
        let identity = Identity { sources: text("sources")?, list: text("list")? };
        let is_whole = end == packed.len();
        is_whole.then_some(Self { compiler: text("compiler")?, identity, packed: packed.to_vec(), places })
    }

    /// An error unless it was made of just this.
    fn check(&self, path: &Path, expected: &Identity) -> Result<(), BuildError> {
        let Some((what, expected, found)) = expected.difference(&self.identity) else { return Ok(()) };
        Err(BuildError::OtherArchive {
            path: path.into(),
            what,
            expected: expected.into(),
            found: found.into(),
        })
    }
}

/// Why bytes are no archive.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// They begin otherwise.
    Other(String),
    Damaged(String),
}

/// The first line, without its end, and what follows.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn identity() -> Identity {
        Identity { sources: "5".repeat(64), list: "6".repeat(64) }
    }

    pub(crate) fn example() -> Archive {
        let mut archive = Archive {
            compiler: "rustc 1.96.0".into(),
            identity: identity(),
            packed: Vec::new(),
            places: BTreeMap::new(),
        };
        archive.push("scale", Target::Sm80, "// scale");
        archive.push("add", Target::Sm70, "// add for 70");
        archive.push("add", Target::Sm80, "// add for 80");
        archive
    }

    fn with_manifest(manifest: &str, packed: &[u8]) -> Vec<u8> {
        let rest = [manifest.as_bytes(), b"\n", packed].concat();
        [format!("lacuna-ptx 1 {}\n", cache::digest([&rest])).as_bytes(), &rest].concat()
    }

    #[test]
    fn what_is_written_is_read() {
        let (folder, archive) = (tempfile::tempdir().unwrap(), example());
        let path = folder.path().join("below/archive");
        let bytes = archive.write(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), bytes as u64);
        let read = Archive::read(&path).unwrap();
        assert_eq!((&read, read.len(), read.is_empty()), (&archive, 3, false));
        let ptx = |entry, target| {
            let packed = read.packed(entry, target)?;
            Some(miniz_oxide::inflate::decompress_to_vec_zlib(packed).unwrap())
        };
        assert_eq!(ptx("add", Target::Sm80).unwrap(), b"// add for 80");
        assert_eq!(ptx("add", Target::Sm70).unwrap(), b"// add for 70");
        assert_eq!(ptx("scale", Target::Sm80).unwrap(), b"// scale");
        assert_eq!(ptx("scale", Target::Sm90a), None);
        let error = read.expect("scale", Target::Sm90a).unwrap_err();
        assert!(matches!(error, BuildError::NotInArchive { .. }), "{error}");
    }

    #[test]
    fn every_damage_is_found() {
        let whole = example().to_bytes();
        assert!(Archive::from_bytes(&whole).is_ok());
        for cut in 0..whole.len() {
            assert!(Archive::from_bytes(&whole[..cut]).is_err(), "cut to {cut} bytes");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x11;
            assert!(Archive::from_bytes(&changed).is_err(), "byte {at} changed");
        }
        assert!(Archive::from_bytes(&[&whole[..], b"more"].concat()).is_err());
    }

    #[test]
    fn a_manifest_that_lies_is_refused_though_its_checksum_is_right() {
        let head = r#""compiler":"c","sources":"s","list":"l""#;
        let entries = |entries: &str| format!("{{{head},\"entries\":[{entries}]}}");
        let packed = b"0123456789";
        let good = with_manifest(&entries(r#"["a","sm_70",4],["a","sm_80",6]"#), packed);
        assert_eq!(Archive::from_bytes(&good).unwrap().packed("a", Target::Sm80), Some(&packed[4..]));
        for bad in [
            r#"["a","sm_70",11]"#,
            r#"["a","sm_70",9]"#,
            r#"["a","sm_70",-1],["b","sm_70",11]"#,
            r#"["a","sm_70",4],["b","sm_70",18446744073709551615]"#,
            r#"["a","sm_70",4],["a","sm_70",6]"#,
            r#"["a","sm_71",10]"#,
            r#"["a","sm_70"]"#,
            r#"[7,"sm_70",10]"#,
            "7",
        ] {
            let fault = Archive::from_bytes(&with_manifest(&entries(bad), packed)).unwrap_err();
            assert!(matches!(&fault, Fault::Damaged(why) if why.contains("manifest")), "{bad}: {fault:?}");
        }
        for bad in ["", "{}", "7", "[", "{\"entries\":[]}"] {
            assert!(matches!(Archive::from_bytes(&with_manifest(bad, b"")), Err(Fault::Damaged(_))), "{bad}");
        }
    }

    #[test]
    fn other_files_and_formats_are_told_from_damaged_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for bytes in [&b""[..], b"\x7fELF\xff\x00", b"lacuna-ptx 2 abc\nrest", b"lacuna-ptx", b"\n\n\n"] {
            fs::write(&path, bytes).unwrap();
            let error = Archive::read(&path).unwrap_err();
            assert!(matches!(error, BuildError::NotAnArchive { .. }), "{error}");
            assert!(error.to_string().contains("`lacuna-ptx 1`"), "{error}");
        }
        let error = Archive::read(&folder.path().join("none")).unwrap_err();
        assert!(matches!(error, BuildError::Io { .. }), "{error}");
    }
}
