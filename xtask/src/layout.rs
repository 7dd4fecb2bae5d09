//! The parts that every operation must have, so that adding one cannot leave any out.
mod features;

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use anyhow::{Context as _, ensure};
use lacuna_kernels::entries;

use crate::{cargo, paths};

/// What an operation consists of, from the root, with `{}` for its name: kernels and their list, library, oracle, conformance
/// cases, measurements, a page of docs, and what its kernels take of a GPU.
const PARTS: [&str; 8] = [
    "crates/kernels/src/{}/mod.rs",
    "crates/kernels/src/{}/list.rs",
    "crates/lacuna/src/ops/{}/mod.rs",
    "crates/reference/src/{}/mod.rs",
    "tests/src/{}/mod.rs",
    "benches/src/{}/mod.rs",
    "docs/{}.md",
    "docs/resources/{}.txt",
];

/// Files that have a module of each operation.
const MODULES: [&str; 5] = [
    "crates/kernels/src/lib.rs",
    "crates/lacuna/src/ops/mod.rs",
    "crates/reference/src/lib.rs",
    "tests/src/lib.rs",
    "benches/src/lib.rs",
];

/// Where suites are.
const SUITES: &str = "benches/suites";

/// What an operation does without: an import copies what cases compare with the host's, once; the transpose is exact, so that cases compare it with the host's; commands of their own measure it,
/// the inference of networks, convolutions and poolings; pointwise convolution runs SpMM's kernels.
const WITHOUT: [(&str, &str); 16] = [
    ("conv", SUITES),
    ("import", "crates/reference/src/{}/mod.rs"),
    ("import", "crates/reference/src/lib.rs"),
    ("import", "benches/src/{}/mod.rs"),
    ("import", "benches/src/lib.rs"),
    ("import", SUITES),
    ("pointwise", "crates/kernels/src/{}/mod.rs"),
    ("pointwise", "crates/kernels/src/{}/list.rs"),
    ("pointwise", "crates/kernels/src/lib.rs"),
    ("pointwise", "docs/resources/{}.txt"),
    ("pointwise", SUITES),
    ("pool", SUITES),
    ("spdnn", SUITES),
    ("transpose", "crates/reference/src/{}/mod.rs"),
    ("transpose", "crates/reference/src/lib.rs"),
    ("transpose", SUITES),
];

/// Fails where a part of an operation is missing, naming all that are.
pub(crate) fn check() -> anyhow::Result<()> {
    let root = paths::root();
    let listed = entries::OPERATIONS.iter().map(|(operation, _)| (*operation).to_owned());
    let operations = listed.chain(begun(root)?).collect();
    let mut missing = missing(root, &operations)?;
    missing.extend(features::wrong(root, &cargo::metadata(&cargo::shell()?)?, &operations)?);
    ensure!(missing.is_empty(), "{}\nCONTRIBUTING.md says what belongs there", missing.join("\n"));
    Ok(())
}

/// The operations of which there is a list of kernels, a part of the library, or a table of resources: one that
/// `for_each_kernel` does not name, too.
fn begun(root: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut operations = BTreeSet::new();
    for (folder, part) in [("crates/kernels/src", "list.rs"), ("crates/lacuna/src/ops", "mod.rs")] {
        for name in names(&root.join(folder))? {
            if root.join(folder).join(&name).join(part).is_file() {
                operations.insert(name);
            }
        }
    }
    let tables = names(&root.join("docs/resources"))?;
    operations.extend(tables.iter().filter_map(|name| name.strip_suffix(".txt")).map(str::to_owned));
    Ok(operations)
}

/// What is in a folder.
fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let read = || -> io::Result<Vec<String>> {
        fs::read_dir(folder)?.map(|file| Ok(file?.file_name().to_string_lossy().into_owned())).collect()
    };
    read().with_context(|| format!("cannot read {}", folder.display()))
}

/// A line for each part that an operation lacks.
fn missing(root: &Path, operations: &BTreeSet<String>) -> anyhow::Result<Vec<String>> {
    let read =
        |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let suites: Result<Vec<String>, _> =
        names(&root.join(SUITES))?.iter().map(|name| read(&root.join(SUITES).join(name))).collect();
    let suites = suites?;
    let mut missing = Vec::new();
    for operation in operations {
        let does_without = |part: &str| WITHOUT.contains(&(operation.as_str(), part));
        for part in PARTS.into_iter().filter(|part| !does_without(part)) {
            let part = part.replace("{}", operation);
            if !root.join(&part).is_file() {
                missing.push(format!("operation `{operation}` has no {part}"));
            }
        }
        let module = format!("mod {operation};");
        for file in MODULES.into_iter().filter(|file| !does_without(file)) {
            let text = read(&root.join(file))?;
            if !text.lines().any(|line| line.trim_start_matches("pub ") == module) {
                missing.push(format!("operation `{operation}` has no `{module}` in {file}"));
            }
        }
        if !does_without(SUITES) && !suites.iter().any(|suite| has_cases(suite, operation)) {
            missing.push(format!("operation `{operation}` has no suite: {SUITES} has no case of it"));
        }
    }
    Ok(missing)
}

/// Whether a suite is of an operation, which goes by the end of its name there: `sparse-softmax` is `softmax`.
fn has_cases(suite: &str, operation: &str) -> bool {
    let ends = ['"', '-'].map(|before| format!("{before}{}\"", operation.replace('_', "-")));
    suite.lines().any(|line| line.starts_with("op = ") && ends.iter().any(|end| line.ends_with(end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with an operation `add` that has all its parts.
    fn whole() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for part in PARTS {
            write(&part.replace("{}", "add"), "");
        }
        for file in MODULES {
            write(file, "//! A crate.\npub mod add;\n");
        }
        write("benches/suites/add.toml", "about = \"sums\"\n\n[[cases]]\nop = \"dense-add\"\n");
        root
    }

    fn missing_of_add(root: &Path) -> Vec<String> {
        missing(root, &BTreeSet::from(["add".to_owned()])).unwrap()
    }

    #[test]
    fn each_part_that_is_missing_is_named() {
        assert_eq!(missing_of_add(whole().path()), Vec::<String>::new());
        for part in PARTS {
            let (root, part) = (whole(), part.replace("{}", "add"));
            fs::remove_file(root.path().join(&part)).unwrap();
            assert_eq!(missing_of_add(root.path()), [format!("operation `add` has no {part}")]);
        }
        for file in MODULES {
            let root = whole();
            fs::write(root.path().join(file), "mod adder;\n").unwrap();
            assert_eq!(missing_of_add(root.path()), [format!("operation `add` has no `mod add;` in {file}")]);
        }
        let root = whole();
        fs::write(root.path().join("benches/suites/add.toml"), "op = \"spmm\"\n").unwrap();
        let missing = missing_of_add(root.path());
        assert!(missing.len() == 1 && missing[0].contains("no suite"), "{missing:?}");
    }

    #[test]
    fn all_that_is_missing_is_named_at_once() {
        let root = whole();
        let operations = BTreeSet::from(["add".to_owned(), "scale".to_owned()]);
        assert_eq!(missing(root.path(), &operations).unwrap().len(), PARTS.len() + MODULES.len() + 1);
    }

    #[test]
    fn operations_that_are_begun_are_found() {
        let root = whole();
        for begun in ["crates/kernels/src/one/list.rs", "crates/lacuna/src/ops/two/mod.rs"] {
            fs::create_dir_all(root.path().join(begun).parent().unwrap()).unwrap();
            fs::write(root.path().join(begun), "").unwrap();
        }
        // What kernels share is no operation.
        fs::create_dir_all(root.path().join("crates/kernels/src/common")).unwrap();
        fs::write(root.path().join("docs/resources/three.txt"), "").unwrap();
        assert!(begun(root.path()).unwrap().iter().eq(["add", "one", "three", "two"]));
    }

    #[test]
    fn the_repository_lacks_nothing() {
        check().unwrap();
    }
}
