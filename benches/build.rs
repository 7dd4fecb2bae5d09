//! Remembers the git revision, for the records.
use std::process::Command;

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok().map(|text| text.trim().to_string())
    };
    let mut revision = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    if git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty()) {
        revision.push_str("-dirty");
    }
    println!("cargo::rustc-env=LACUNA_REVISION={revision}");
    for path in ["../.git/HEAD", "../.git/index", "../crates", "../Cargo.lock", "src", "suites"] {
        println!("cargo::rerun-if-changed={path}");
    }
}
