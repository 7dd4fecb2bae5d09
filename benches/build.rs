//! Remembers the git revision, for the records; and lists the suites and the resource tables, so that a new one is a file
//! and nothing else.
use std::path::Path;
use std::process::Command;
use std::{env, error, fs};

/// Writes `<list>.rs`, an expression: for each file of a folder with this ending its name without it, and its text.
fn list(folder: &str, ending: &str, list: &str) -> Result<(), Box<dyn error::Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join(folder);
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for file in fs::read_dir(&folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == ending) {
            files.push(path);
        }
    }
    files.sort();
    let mut list_of_files = String::from("&[\n");
    for path in files {
        let name = path.file_stem().ok_or("a file has no name")?;
        list_of_files.push_str(&format!("    ({name:?}, include_str!({path:?})),\n"));
    }
    list_of_files.push_str("]\n");
    Ok(fs::write(Path::new(&env::var("OUT_DIR")?).join(format!("{list}.rs")), list_of_files)?)
}

fn main() -> Result<(), Box<dyn error::Error>> {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok().map(|text| text.trim().to_string())
    };
    let mut revision = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    if git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty()) {
        revision.push_str("-dirty");
    }
    println!("cargo::rustc-env=LACUNA_REVISION={revision}");
    for path in ["../.git/HEAD", "../.git/index", "../crates", "../Cargo.lock", "src"] {
        println!("cargo::rerun-if-changed={path}");
    }
    list("suites", "toml", "suites")?;
    list("../docs/resources", "txt", "resources")
}
