//! The parts that every operation must have, so that adding one cannot leave any out.
use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::paths;

/// The operations of the list of kernels: a file each.
fn operations(list: &Path) -> std::io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for file in std::fs::read_dir(list)? {
        if let Some(name) = file?.file_name().to_str().and_then(|name| name.strip_suffix(".rs"))
            && name != "mod"
        {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

/// What an operation consists of, from the root: kernels, library, conformance cases, measurements, a page of docs.
fn parts(operation: &str) -> [String; 5] {
    [
        format!("crates/kernels/src/{operation}/mod.rs"),
        format!("crates/lacuna/src/ops/{operation}/mod.rs"),
        format!("tests/src/{operation}/mod.rs"),
        format!("benches/src/{operation}/mod.rs"),
        format!("docs/{operation}.md"),
    ]
}

/// Fails where a part of an operation is missing, naming it.
pub(crate) fn check() -> anyhow::Result<()> {
    let list = paths::root().join("crates/kernels/src/list");
    let operations = operations(&list).with_context(|| format!("cannot read {}", list.display()))?;
    ensure!(!operations.is_empty(), "crates/kernels/src/list: no operation found in the list");
    check_in(paths::root(), &operations)
}

fn check_in(root: &Path, operations: &BTreeSet<String>) -> anyhow::Result<()> {
    for operation in operations {
        for part in parts(operation) {
            ensure!(
                root.join(&part).is_file(),
                "operation `{operation}` has no {part}: CONTRIBUTING.md says what belongs there"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_the_files_of_the_list() {
        let list = tempfile::tempdir().unwrap();
        for file in ["mod.rs", "spmm.rs", "sddmm.rs", "notes.txt"] {
            std::fs::write(list.path().join(file), "").unwrap();
        }
        assert!(operations(list.path()).unwrap().iter().eq(["sddmm", "spmm"]));
    }

    #[test]
    fn a_missing_part_is_named() {
        let root = tempfile::tempdir().unwrap();
        let error = check_in(root.path(), &BTreeSet::from(["spmm".to_owned()])).unwrap_err().to_string();
        assert!(error.contains("spmm") && error.contains("crates/kernels/src/spmm/mod.rs"), "{error}");
    }
}
