//! A manifest for the kernels' crate of rust-cuda's route in which `cuda_std` is a folder: then cargo asks no repository.
//! (A `[patch]` would not do: cargo looks at the repository that it replaces.)
use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::read;

/// Writes a workspace with that one crate, whose sources stay where they are, and the lock file, which pins versions.
pub(super) fn write(into: &Path, route: &Path, cuda_std: &Path) -> anyhow::Result<()> {
    let workspace = read(&route.join("Cargo.toml"))?;
    let crate_manifest = read(&route.join("kernels/Cargo.toml"))?;
    let files = [
        ("Cargo.toml", workspace_with(&workspace, cuda_std)?),
        ("kernels/Cargo.toml", crate_at(&crate_manifest, route)?),
        ("Cargo.lock", read(&route.join("Cargo.lock"))?),
    ];
    for (name, text) in files {
        let path = into.join(name);
        fs::create_dir_all(path.parent().expect("below a folder"))
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The workspace's manifest without the builder, and with `cuda_std` from a folder.
fn workspace_with(manifest: &str, cuda_std: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut found = false;
    for line in manifest.lines() {
        if line.starts_with("cuda_std = {") {
            text += &format!("cuda_std = {{ path = {cuda_std:?} }}\n");
            found = true;
        } else if line.starts_with("members = ") {
            text += "members = [\"kernels\"]\n";
        } else if !line.starts_with("cuda_builder = ") {
            text += line;
            text.push('\n');
        }
    }
    ensure!(found, "rust-cuda/Cargo.toml has no line that starts with `cuda_std = {{`");
    Ok(text)
}

/// The crate's manifest with absolute paths.
fn crate_at(manifest: &str, route: &Path) -> anyhow::Result<String> {
    let root = route.parent().context("rust-cuda lies in the root")?;
    let library = format!("[lib]\npath = {:?}\n", route.join("kernels/src/lib.rs"));
    let crates = format!("path = \"{}/crates/", root.display());
    let text = manifest.replace("[lib]\n", &library).replace("path = \"../../crates/", &crates);
    ensure!(
        text.contains(&library) && text.contains(&crates),
        "rust-cuda/kernels/Cargo.toml has changed its form"
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn the_manifests_of_the_route_can_be_rewritten() {
        let dir = tempfile::tempdir().unwrap();
        let route = paths::root().join(super::super::FOLDER);
        write(dir.path(), &route, Path::new("/some where/cuda_std")).unwrap();
        let workspace = fs::read_to_string(dir.path().join("Cargo.toml")).unwrap();
        assert!(workspace.contains("cuda_std = { path = \"/some where/cuda_std\" }"), "{workspace}");
        assert!(!workspace.contains("git = ") && !workspace.contains("builder"), "{workspace}");
        let kernels = fs::read_to_string(dir.path().join("kernels/Cargo.toml")).unwrap();
        let at_root = |path: &str| format!("path = {:?}", paths::root().join(path));
        for path in ["rust-cuda/kernels/src/lib.rs", "crates/gpu", "crates/kernels"] {
            assert!(kernels.contains(&at_root(path)), "{kernels}");
        }
    }

    /// The lock file is what keeps `glam` at a version that `cuda_std` compiles with.
    #[test]
    fn the_lock_file_pins_glam() {
        let lock = read(&paths::root().join("rust-cuda/Cargo.lock")).unwrap();
        assert!(lock.contains("name = \"glam\"\nversion = \"0.30."), "{lock}");
        assert_eq!(lock.matches("name = \"glam\"").count(), 1);
    }
}
