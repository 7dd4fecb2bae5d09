//! PTX that another code generator wrote.
use std::fs;
use std::path::Path;

use crate::{BuildError, Module, Target};

/// The module `<folder>/<target>.ptx`.
pub(crate) fn module(folder: &Path, target: Target) -> Result<String, BuildError> {
    let path = folder.join(format!("{target}.ptx"));
    fs::read_to_string(&path).map_err(BuildError::io("read", path))
}

/// Whether the folder has anything for one of the targets.
pub(crate) fn has_any(folder: &Path, targets: &[Target]) -> bool {
    targets.iter().any(|target| folder.join(target.name()).is_dir())
}

/// Replaces each entry for which there is `<folder>/<target>/<entry>.ptx`. That has its launch bounds already. A target
/// without a folder is left as it is.
pub(crate) fn prefer(folder: &Path, module: &mut Module) -> Result<(), BuildError> {
    let target = module.target;
    if !has_any(folder, &[target]) {
        return Ok(());
    }
    let mut found_any = false;
    for entry in &mut module.entries {
        let path = folder.join(target.name()).join(format!("{}.ptx", entry.name));
        if !path.is_file() {
            continue;
        }
        let ptx = fs::read_to_string(&path).map_err(BuildError::io("read", &path))?;
        let given = Module::split(target, &ptx, |_| None)?;
        let names: Vec<_> = given.entries.iter().map(|entry| entry.name.as_str()).collect();
        if names != [entry.name.as_str()] {
            let found = format!("`{}`", names.join("`, `"));
            return Err(BuildError::WrongEntry { path, expected: entry.name.clone(), found });
        }
        entry.ptx = ptx;
        found_any = true;
    }
    if found_any { Ok(()) } else { Err(BuildError::NothingToPrefer { folder: folder.into() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Cache, LaunchBounds};

    const TWO: &str = include_str!("module/fixtures/two_entries.ptx");

    /// A build of the two entries as given modules, copied to `<folder>/out`.
    fn build(folder: &Path) -> Result<crate::Build, BuildError> {
        Builder::new("no crate is looked for")
            .targets(&[Target::Sm80])
            .modules(folder)
            .launch_bounds(|_| Some(LaunchBounds::threads(64)))
            .copy_to(folder.join("out"))
            .resources(false)
            .cache(Cache::at(folder.join("cache")))
            .build()
    }

    #[test]
    fn given_modules_pass_through_the_same_steps() {
        let dir = tempfile::tempdir().unwrap();
        let error = build(dir.path()).unwrap_err();
        assert!(error.to_string().contains("sm_80.ptx"), "{error}");

        fs::write(dir.path().join("sm_80.ptx"), TWO).unwrap();
        let built = build(dir.path()).unwrap();
        assert_eq!((built.compiler, built.compiled.len()), (None, 0));
        let add = fs::read_to_string(dir.path().join("out/sm_80/add.ptx")).unwrap();
        assert_eq!(add, built.modules[0].entry("add").unwrap().ptx);
        assert!(add.contains(".maxntid 64, 1, 1"), "{add}");

        let depot = TWO.replace("ret; // add", ".local .align 8 .b8 __local_depot0[64];\n ret;");
        fs::write(dir.path().join("sm_80.ptx"), depot).unwrap();
        assert!(matches!(build(dir.path()).unwrap_err(), BuildError::LocalMemory { .. }));
    }

    #[test]
    fn preferred_entries_take_the_place_of_those_built() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("sm_80.ptx"), TWO).unwrap();
        build(dir.path()).unwrap();
        let file = dir.path().join("out/sm_80/add.ptx");
        let other = fs::read_to_string(&file).unwrap().replace("ret;", "exit;");
        fs::write(&file, &other).unwrap();
        fs::remove_file(dir.path().join("out/sm_80/scale.ptx")).unwrap();

        let plain = Module::split(Target::Sm80, TWO, |_| None).unwrap();
        let mut module = plain.clone();
        prefer(&dir.path().join("out"), &mut module).unwrap();
        assert_eq!(module.entry("add").unwrap().ptx, other);
        assert_eq!(module.entry("scale"), plain.entry("scale"));
    }

    #[test]
    fn what_is_not_the_entry_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut module = Module::split(Target::Sm80, TWO, |_| None).unwrap();
        fs::create_dir(dir.path().join("sm_70")).unwrap();
        prefer(dir.path(), &mut module).unwrap();
        let builder = Builder::new("no crate is looked for").targets(&[Target::Sm80]).prefer(dir.path());
        assert!(matches!(builder.build().unwrap_err(), BuildError::NothingToPrefer { .. }));

        fs::create_dir(dir.path().join("sm_80")).unwrap();
        assert!(matches!(prefer(dir.path(), &mut module).unwrap_err(), BuildError::NothingToPrefer { .. }));
        fs::write(dir.path().join("sm_80/add.ptx"), TWO).unwrap();
        let error = prefer(dir.path(), &mut module).unwrap_err();
        assert!(error.to_string().contains("holds `add`, `scale`"), "{error}");
    }
}
