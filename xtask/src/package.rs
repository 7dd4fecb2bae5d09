//! `cargo xtask package`: the crates as a registry would get them. It publishes nothing.
use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use xshell::Shell;

use crate::cargo;

/// What a registry takes of a crate at most: crates.io's limit.
const LARGEST: u64 = 10 * 1024 * 1024;

/// What `package` is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Also compile each crate from its package, with what it needs from theirs, without feature `cuda`
    #[arg(long)]
    verify: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let shell = cargo::shell()?;
    for (name, bytes) in packed(&shell, arguments.verify)? {
        println!("{name:17} {:>8.1} KB", bytes as f64 / 1e3);
    }
    Ok(())
}

/// Packs all that are published without compiling them: a dry run for `verify`.
pub(crate) fn check(shell: &Shell) -> anyhow::Result<()> {
    packed(shell, false).map(drop)
}

/// Packs the crates that are published, and tells the bytes of each, in an order in which they can be published.
pub(crate) fn packed(shell: &Shell, verify: bool) -> anyhow::Result<Vec<(String, u64)>> {
    let metadata = cargo::metadata(shell)?;
    let order = order(&metadata)?;
    let mut arguments = vec!["package", "--locked", "--allow-dirty", "--quiet"];
    if !verify {
        arguments.push("--no-verify");
    }
    order.iter().for_each(|name| arguments.extend(["--package", name]));
    cargo::run(shell, &arguments)?;
    let folder = cargo::target_folder(shell)?.join("package");
    let size = |name: String| {
        let path = folder.join(format!("{name}-{}.crate", env!("CARGO_PKG_VERSION")));
        let bytes = fs::metadata(&path).with_context(|| format!("cargo packed no {}", path.display()))?.len();
        ensure!(bytes <= LARGEST, "the package of {name} has {bytes} bytes; registries take {LARGEST}");
        Ok((name, bytes))
    };
    order.into_iter().map(size).collect()
}

/// The crates that are published, each after those of ours that it needs.
fn order(metadata: &Value) -> anyhow::Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    let mut left = Vec::new();
    for package in packages.iter().filter(|package| package["publish"].is_null()) {
        let name = package["name"].as_str().context("a package has a name")?;
        for needed in ["description", "license"] {
            ensure!(package[needed].is_string(), "{name} has no {needed}, and registries want one");
        }
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let ours = dependencies.filter(|needed| needed["path"].is_string() && needed["kind"] != "dev");
        let ours: BTreeSet<_> = ours.filter_map(|needed| needed["name"].as_str()).collect();
        left.push((name, ours));
    }
    let mut order: Vec<String> = Vec::new();
    while !left.is_empty() {
        let is_ready =
            |needed: &BTreeSet<&str>| needed.iter().all(|name| order.iter().any(|done| done == name));
        let Some(next) = left.iter().position(|(_, needed)| is_ready(needed)) else {
            let stuck: Vec<_> = left.iter().map(|(name, _)| *name).collect();
            anyhow::bail!("{} cannot be published: they need crates of ours that are not", stuck.join(", "));
        };
        order.push(left.remove(next).0.into());
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, needs: &[(&str, Option<&str>)]) -> Value {
        let needs: Vec<_> =
            needs.iter().map(|(name, kind)| json!({ "name": name, "kind": kind, "path": "p" })).collect();
        json!({ "name": name, "description": "d", "license": "l", "publish": null, "dependencies": needs })
    }

    #[test]
    fn each_stands_after_what_it_needs() {
        let mut own = package("own", &[]);
        own["publish"] = json!([]);
        let top = package("top", &[("middle", None), ("own", Some("dev"))]);
        let packages = json!({ "packages": [top, package("middle", &[("base", Some("build"))]), package("base", &[]), own] });
        assert_eq!(order(&packages).unwrap(), ["base", "middle", "top"]);
    }

    #[test]
    fn what_stands_against_it_is_named() {
        let packages =
            json!({ "packages": [package("base", &[]), package("top", &[("base", None), ("own", None)])] });
        assert!(order(&packages).unwrap_err().to_string().contains("top cannot be published"));
        let mut base = package("base", &[]);
        base["license"] = Value::Null;
        assert!(
            order(&json!({ "packages": [base] })).unwrap_err().to_string().contains("base has no license")
        );
    }

    #[test]
    fn no_tool_is_published() {
        let order = order(&cargo::metadata(&cargo::shell().unwrap()).unwrap()).unwrap();
        assert_eq!(order.last().map(String::as_str), Some("lacuna-models"));
        for tool in ["xtask", "lacuna-bench", "lacuna-verify", "lacuna-cases", "lacuna-pages", "lacuna-peers"]
        {
            assert!(!order.iter().any(|name| name == tool), "{tool}");
        }
    }
}
