//! Runs the device compiler: one crate, one target, one PTX module.
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::sources::Sources;
use crate::{BuildError, Cache, DeviceCompiler, Target, cache};

/// Part of every key: raise it when the same inputs come to give other PTX.
const FORMAT: &str = "2";

/// The crate's PTX for a target, from the cache or the compiler; and whether it was compiled now.
pub(crate) fn module(
    cache: &Cache,
    compiler: &DeviceCompiler,
    folder: &Path,
    sources: &Sources,
    target: Target,
) -> Result<(String, bool), BuildError> {
    let key = key(&compiler.version, sources, target);
    if let Some(ptx) = cache.get("ptx", &key) {
        return Ok((ptx, false));
    }
    let _building = cache.lock(&place(folder, target))?;
    // Another process may have built it while this one waited.
    if let Some(ptx) = cache.get("ptx", &key) {
        return Ok((ptx, false));
    }
    let ptx = compile(cache, compiler, folder, sources, target)?;
    cache.put("ptx", &key, &ptx)?;
    Ok((ptx, true))
}

/// Where a folder's crates are compiled. Two checkouts have crates of the same names, which cargo tells apart by the times of
/// their sources alone: in one place, one would be taken for the other.
fn place(folder: &Path, target: Target) -> String {
    let folder = cache::digest([&*folder.to_string_lossy()]);
    format!("{}-{}", target.name(), &folder[..16])
}

fn key(compiler_version: &str, sources: &Sources, target: Target) -> String {
    let flags = flags(target).join("\n");
    cache::digest([FORMAT, compiler_version, target.name(), &flags, &sources.package, &sources.digest])
}

/// What of a module is decided here, beside its sources and the compiler.
pub(crate) fn settings(target: Target) -> String {
    format!("{FORMAT} {target}\n{}", flags(target).join("\n"))
}

/// rustc's flags for every crate of the build, `core` included.
fn flags(target: Target) -> Vec<String> {
    let mut flags = vec![
        format!("-Ctarget-cpu={target}"),
        format!("-Ctarget-feature={}", target.ptx_feature()),
        "-Zunstable-options".into(),
        // A failed check traps: formatting its message would need functions that are not there.
        "-Cpanic=immediate-abort".into(),
        // This pass copies a barrier into both arms of a divergent branch (before rustc 1.97).
        "-Zmir-enable-passes=-JumpThreading".into(),
        // Kernels keep arrays in registers; a loop over one that is not unrolled puts it into memory.
        "-Cllvm-args=-unroll-threshold=20000".into(),
        // Only our checks are wanted; the host build shows the lints.
        "--cap-lints=warn".into(),
    ];
    // Kernels leave entries out of old targets with `#[cfg(lacuna_sm = "80")]`: one value for each level reached.
    let reached = Target::ALL.into_iter().filter(|level| *level <= target);
    flags.extend(reached.map(|level| format!("--cfg=lacuna_sm=\"{}\"", level.level())));
    flags
}

fn compile(
    cache: &Cache,
    compiler: &DeviceCompiler,
    folder: &Path,
    sources: &Sources,
    target: Target,
) -> Result<String, BuildError> {
    let work = cache.work_dir(&place(folder, target));
    fs::create_dir_all(&work).map_err(BuildError::cache(&work))?;
    // A new path each time: cargo then runs rustc even when it has built this crate before.
    let scratch = tempfile::tempdir_in(&work).map_err(BuildError::cache(&work))?;
    let ptx_path = scratch.path().join("module.ptx");

    let mut command = compiler.command(&compiler.cargo);
    forget_outer_build(&mut command);
    command
        .current_dir(folder)
        .env("RUSTC", &compiler.rustc)
        .env("RUSTDOC", compiler.rustc.with_file_name("rustdoc"))
        .env("RUSTC_BOOTSTRAP", "1")
        // Empty: no wrapper, whatever the user's configuration says.
        .env("RUSTC_WRAPPER", "")
        .env("RUSTC_WORKSPACE_WRAPPER", "")
        .env("CARGO_TARGET_DIR", &work)
        .env("CARGO_ENCODED_RUSTFLAGS", flags(target).join("\x1f"))
        // All of the profile: the workspace's own must not change device code.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3")
        .env("CARGO_PROFILE_RELEASE_LTO", "fat")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "false")
        .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "false")
        .env("CARGO_PROFILE_RELEASE_INCREMENTAL", "false")
        .args([
            "rustc",
            "--release",
            "--quiet",
            "--lib",
            "--crate-type=cdylib",
            "--package",
            &sources.package,
        ])
        .args(["-Zbuild-std=core", "--target=nvptx64-nvidia-cuda", "--", "-Zno-link"])
        .arg(format!("--emit=asm={}", ptx_path.display()));
    let output = command.output().map_err(BuildError::io("run", &compiler.cargo))?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(BuildError::Compile { target, compiler: compiler.version.clone(), output });
    }
    fs::read_to_string(&ptx_path).map_err(BuildError::io("read", ptx_path))
}

/// Takes away what cargo and rustup put into the environment of a build script or of `cargo run`: it speaks of the
/// host's build, and this is another. Settings of registries and the network stay.
pub(crate) fn forget_outer_build(command: &mut Command) {
    const KEPT: [&str; 4] = ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTR"];
    const CARGOS: [&str; 12] = [
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "RUSTUP_TOOLCHAIN",
        "MAKEFLAGS",
        "MFLAGS",
        "TARGET",
        "HOST",
        "OUT_DIR",
        "NUM_JOBS",
        "OPT_LEVEL",
        "PROFILE",
        "DEBUG",
    ];
    for (name, _) in env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        let of_cargo = name.starts_with("CARGO") && !KEPT.iter().any(|kept| name.starts_with(kept));
        if of_cargo || name.starts_with("RUSTC") || name.starts_with("RUSTDOC") || CARGOS.contains(&name) {
            command.env_remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(digest: &str) -> Sources {
        Sources { package: "kernels".into(), files: Vec::new(), digest: digest.into() }
    }

    #[test]
    fn keys_follow_what_changes_the_ptx() {
        let base = key("rustc 1.96.0", &sources("a"), Target::Sm80);
        assert_eq!(base, key("rustc 1.96.0", &sources("a"), Target::Sm80));
        assert_ne!(base, key("rustc 1.97.0", &sources("a"), Target::Sm80));
        assert_ne!(base, key("rustc 1.96.0", &sources("b"), Target::Sm80));
        assert_ne!(base, key("rustc 1.96.0", &sources("a"), Target::Sm90a));
    }

    #[test]
    fn flags_reach_up_to_the_target() {
        let levels =
            |target| flags(target).into_iter().filter(|flag| flag.starts_with("--cfg")).collect::<Vec<_>>();
        assert_eq!(levels(Target::Sm70), ["--cfg=lacuna_sm=\"70\""]);
        assert_eq!(levels(Target::Sm80), ["--cfg=lacuna_sm=\"70\"", "--cfg=lacuna_sm=\"80\""]);
        assert_eq!(levels(Target::Sm90a).len(), 3);
    }
}
