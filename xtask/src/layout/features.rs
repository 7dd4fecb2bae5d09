//! The library's features: an operation each, with those of the operations whose kernels it runs.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::names;

const MANIFEST: &str = "crates/lacuna/Cargo.toml";
const OPERATIONS: &str = "crates/lacuna/src/ops";

/// Each feature with those that it turns on.
type Features = BTreeMap<String, BTreeSet<String>>;

/// What is wrong with the features: each operation has one of its name, which is on by default and turns on what the operation
/// needs, and there is no other but for `cuda`.
pub(super) fn wrong(
    root: &Path,
    metadata: &Value,
    operations: &BTreeSet<String>,
) -> anyhow::Result<Vec<String>> {
    let features = read(metadata)?;
    let mut wrong = unlike(&features, operations);
    let exports = fs::read_to_string(root.join(OPERATIONS).join("mod.rs"))?;
    for operation in operations {
        let folder = root.join(OPERATIONS).join(operation);
        if !folder.is_dir() {
            continue;
        }
        let text = sources(&folder)?;
        let runs = operations.iter().filter(|other| *other != operation && is_run(other, &exports, &text));
        let is_on = |other: &String| features.get(operation).is_some_and(|on| on.contains(other));
        let off = runs.filter(|other| !is_on(other));
        wrong.extend(off.map(|other| {
            format!("feature `{operation}` of {MANIFEST} does not turn on `{other}`, which it runs")
        }));
    }
    Ok(wrong)
}

fn read(metadata: &Value) -> anyhow::Result<Features> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    let library =
        packages.iter().find(|package| package["name"] == "lacuna").context("there is no crate lacuna")?;
    let features = library["features"].as_object().context("a crate has a table of features")?;
    let on = |names: &Value| {
        names.as_array().into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    Ok(features.iter().map(|(name, names)| (name.clone(), on(names))).collect())
}

/// Where features are not just the operations.
fn unlike(features: &Features, operations: &BTreeSet<String>) -> Vec<String> {
    let own: BTreeSet<_> =
        features.keys().filter(|name| !["default", "cuda"].contains(&name.as_str())).cloned().collect();
    let on = features.get("default").cloned().unwrap_or_default();
    let lacks =
        operations.difference(&own).map(|name| format!("operation `{name}` has no feature in {MANIFEST}"));
    let more =
        own.difference(operations).map(|name| format!("feature `{name}` of {MANIFEST} is no operation"));
    let off = own.difference(&on).map(|name| format!("feature `{name}` of {MANIFEST} is not on by default"));
    lacks.chain(more).chain(off).collect()
}

/// Whether a text asks for an operation's entries, or makes a plan of its: a plan's type is what `exports` names of it.
fn is_run(operation: &str, exports: &str, text: &str) -> bool {
    let beginning = format!("pub use {operation}::");
    let line = exports.lines().find_map(|line| line.strip_prefix(&beginning)).unwrap_or_default();
    let mut plans = line.split(|part: char| !part.is_alphanumeric()).filter(|name| !name.is_empty());
    let makes = |plan: &str| ["", "::<T>"].iter().any(|of| has_word(text, &format!("{plan}{of}::plan")));
    has_word(text, &format!("entries::{operation}()")) || plans.any(makes)
}

/// Whether a text has this, and not only as the end of a longer name.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_'))
}

/// All that is in a folder but for tests and comments.
fn sources(folder: &Path) -> anyhow::Result<String> {
    let mut all = String::new();
    for name in names(folder)? {
        let path = folder.join(&name);
        if path.is_dir() {
            all += &sources(&path)?;
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = fs::read_to_string(&path)?;
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            lines.for_each(|line| all.extend([line, "\n"]));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong_in(root: &Path, features: Value) -> String {
        let metadata = json!({ "packages": [{ "name": "lacuna", "features": features }] });
        let operations = BTreeSet::from(["add".to_owned(), "scale".to_owned()]);
        wrong(root, &metadata, &operations).unwrap().join("; ")
    }

    /// A library with an operation `scale` that has this in a file.
    fn library(scale: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(OPERATIONS);
        fs::create_dir_all(folder.join("scale/deep")).unwrap();
        fs::write(folder.join("mod.rs"), "pub use add::{Add, add};\n").unwrap();
        fs::write(folder.join("scale/deep/plan.rs"), scale).unwrap();
        root
    }

    #[test]
    fn features_are_the_operations() {
        let root = library("");
        let all = json!({ "default": ["add", "scale"], "add": [], "scale": ["add"], "cuda": ["dep:cust"] });
        assert_eq!(wrong_in(root.path(), all), "");
        let other = json!({ "default": ["add"], "add": [], "sub": [], "cuda": [] });
        let expected = format!(
            "operation `scale` has no feature in {MANIFEST}; feature `sub` of {MANIFEST} is no operation; \
             feature `sub` of {MANIFEST} is not on by default"
        );
        assert_eq!(wrong_in(root.path(), other), expected);
    }

    #[test]
    fn a_feature_turns_on_what_its_operation_runs() {
        let without = || json!({ "default": ["add", "scale"], "add": [], "scale": [] });
        for runs in ["let plan = Add::plan_with(a)?;", "Add::<T>::plan(a)", "launch_kernel(entries::add())"] {
            let said = wrong_in(library(runs).path(), without());
            assert_eq!(
                said,
                format!("feature `scale` of {MANIFEST} does not turn on `add`, which it runs"),
                "{runs}"
            );
            let with = json!({ "default": ["add", "scale"], "add": [], "scale": ["add"] });
            assert_eq!(wrong_in(library(runs).path(), with), "");
        }
        for other in
            ["SparseAdd::plan(a)", "/// [`Add::plan`]", "#[cfg(test)]\nAdd::plan(a)", "entries::scale()"]
        {
            assert_eq!(wrong_in(library(other).path(), without()), "", "{other}");
        }
    }
}
