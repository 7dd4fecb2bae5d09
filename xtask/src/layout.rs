//! The parts that every operation must have, so that adding one cannot leave any out.
use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::paths;

/// The operations in the list of kernels: the `name {` lines inside the macro.
fn operations(list: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for line in list.lines().skip_while(|line| !line.contains("callback)::+! {")).skip(1) {
        let line = line.trim();
        if let Some(name) = line.strip_suffix(" {")
            && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
        {
            names.insert(name);
        }
    }
    names
}

/// What an operation consists of, from the root: kernels, library, conformance cases, measurements, a page of docs.
fn parts(operation: &str) -> [String; 5] {
    [
        format!("crates/kernels/src/{operation}/mod.rs"),
        format!("crates/lacuna/src/{operation}/mod.rs"),
        format!("tests/src/{operation}/mod.rs"),
        format!("benches/src/{operation}/mod.rs"),
        format!("docs/{operation}.md"),
    ]
}

/// Fails where a part of an operation is missing, naming it.
pub(crate) fn check() -> anyhow::Result<()> {
    let list = paths::root().join("crates/kernels/src/list.rs");
    let list = std::fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let operations = operations(&list);
    ensure!(!operations.is_empty(), "crates/kernels/src/list.rs: no operation found in the list");
    check_in(paths::root(), &operations)
}

fn check_in(root: &Path, operations: &BTreeSet<&str>) -> anyhow::Result<()> {
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
    fn operations_are_found_in_the_list() {
        let list = "macro {\n $($callback)::+! {\n  // a comment {\n  spmm {\n   a: B<1, 2>;\n  }\n  sddmm {\n  }\n }}";
        assert_eq!(operations(list), BTreeSet::from(["sddmm", "spmm"]));
    }

    #[test]
    fn a_missing_part_is_named() {
        let root = tempfile::tempdir().unwrap();
        let error = check_in(root.path(), &BTreeSet::from(["spmm"])).unwrap_err().to_string();
        assert!(error.contains("spmm") && error.contains("crates/kernels/src/spmm/mod.rs"), "{error}");
    }
}
