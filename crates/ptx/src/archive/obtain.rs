//! Where a library's build script gets its PTX: by compiling, or from an archive where there is no device compiler.
use std::env;
use std::path::{Path, PathBuf};

use super::{Archive, Identity};
use crate::{BuildError, Builder};

/// Names the archive to take.
const VARIABLE: &str = "LACUNA_PTX";

impl Builder {
    /// The PTX of the entries that are wanted: from the archive that `LACUNA_PTX` names, whatever else is there; else
    /// [built](Builder::build); else, where there is no device compiler, from the first of `places` at which there is one of these kernels.
    /// An archive may hold more than is wanted.
    ///
    /// # Errors
    /// [`BuildError::NoPtx`] where there is neither compiler nor archive; an archive that is damaged, or made of something
    /// else than `identity` says; `LACUNA_PTX` beside [`prefer`](Builder::prefer); and those of [`build`](Builder::build).
    pub fn archive(
        self,
        identity: Identity,
        places: &[PathBuf],
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Archive, BuildError> {
        if self.cargo_metadata {
            println!("cargo:rerun-if-env-changed={VARIABLE}");
        }
        let named = env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        self.obtain(named.as_deref(), identity, places, wanted)
    }

    fn obtain(
        self,
        named: Option<&Path>,
        identity: Identity,
        places: &[PathBuf],
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Archive, BuildError> {
        let (metadata, preferred) = (self.cargo_metadata, self.preferred.clone());
        let take = |path: &Path| {
            if let Some(folder) = &preferred {
                let folder = folder.clone();
                return Err(BuildError::ArchiveAndFolder { archive: path.into(), folder });
            }
            if metadata {
                println!("cargo:rerun-if-changed={}", path.display());
            }
            let archive = Archive::read(path)?;
            archive.check(path, &identity)?;
            Ok(archive)
        };
        match named {
            Some(path) if path.is_file() => return take(path),
            Some(path) => return Err(BuildError::NoArchive { path: path.into() }),
            None => {}
        }
        match self.build() {
            Ok(build) => Ok(Archive::of_build(&build, identity, wanted)),
            Err(compiler @ BuildError::NoCompiler { .. }) => in_place_of(compiler, places, take),
            Err(error) => Err(error),
        }
    }
}

/// What is taken where there is no compiler: the first archive in its place that is of these kernels. An older one may lie before it.
fn in_place_of<A>(
    compiler: BuildError,
    places: &[PathBuf],
    take: impl Fn(&Path) -> Result<A, BuildError>,
) -> Result<A, BuildError> {
    let mut other = None;
    for path in places.iter().filter(|path| path.is_file()) {
        match take(path) {
            Err(error @ BuildError::OtherArchive { .. }) => other = other.or(Some(error)),
            taken => return taken,
        }
    }
    Err(other.unwrap_or_else(|| {
        let places: Vec<_> = places.iter().map(|place| format!("  {}", place.display())).collect();
        BuildError::NoPtx { compiler: Box::new(compiler), places: places.join("\n") }
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::archive::tests::{example, identity};
    use crate::{Cache, Target};

    const TWO: &str = include_str!("../module/fixtures/two_entries.ptx");

    /// A build of two entries, by modules that are given.
    fn builder(folder: &Path) -> Builder {
        fs::write(folder.join("sm_80.ptx"), TWO).unwrap();
        let builder = Builder::new("no crate is looked for").targets(&[Target::Sm80]).modules(folder);
        builder.resources(false).cache(Cache::at(folder.join("cache")))
    }

    #[test]
    fn an_archive_that_is_named_goes_before_a_build() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive");
        example().write(&path).unwrap();
        let obtain =
            |named, identity| builder(folder.path()).obtain(named, identity, &[], |name| name == "add");
        assert_eq!(obtain(Some(&path), identity()).unwrap(), example());

        let none = folder.path().join("none");
        let error = obtain(Some(&none), identity()).unwrap_err();
        assert!(matches!(&error, BuildError::NoArchive { path } if *path == none), "{error}");

        let built = obtain(None, identity()).unwrap();
        assert_eq!((built.len(), built.identity), (1, identity()));
        assert!(built.places.contains_key(&("add".into(), Target::Sm80)));
    }

    #[test]
    fn an_archive_of_other_kernels_is_refused_with_both_digests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive");
        example().write(&path).unwrap();
        let other = Identity { sources: "7".repeat(64), ..identity() };
        let error = builder(folder.path()).obtain(Some(&path), other, &[], |_| true).unwrap_err();
        assert!(matches!(error, BuildError::OtherArchive { .. }), "{error}");
        let text = error.to_string();
        for part in ["the kernels' sources", &"5".repeat(64), &"7".repeat(64), "cargo xtask dist --ptx"] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    }

    #[test]
    fn without_a_compiler_the_first_archive_in_its_place_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let places = ["one", "two", "three"].map(|name| folder.path().join(name));
        let none = || BuildError::NoCompiler { minimum: "1.96", searched: "nowhere".into() };
        let read = |path: &Path| {
            let archive = Archive::read(path)?;
            archive.check(path, &identity()).map(|()| path.to_owned())
        };
        let text = in_place_of(none(), &places, read).unwrap_err().to_string();
        for part in
            ["no device compiler", "cargo xtask dist --ptx", "LACUNA_PTX", &places[2].to_string_lossy()]
        {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        // One of other kernels is passed over, and told of where there is no better one.
        let mut older = example();
        older.identity.sources = "7".repeat(64);
        older.write(&places[0]).unwrap();
        let error = in_place_of(none(), &places, read).unwrap_err();
        assert!(matches!(error, BuildError::OtherArchive { .. }), "{error}");
        for place in &places[1..] {
            example().write(place).unwrap();
        }
        assert_eq!(in_place_of(none(), &places, read).unwrap(), places[1]);
        fs::write(&places[1], "damaged").unwrap();
        assert!(in_place_of(none(), &places, read).is_err());
    }

    #[test]
    fn a_folder_of_entries_does_not_go_into_an_archive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive");
        example().write(&path).unwrap();
        let builder = builder(folder.path()).prefer(folder.path());
        let error = builder.obtain(Some(&path), identity(), &[], |_| true).unwrap_err();
        assert!(matches!(error, BuildError::ArchiveAndFolder { .. }), "{error}");
    }
}
