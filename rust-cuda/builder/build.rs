//! Compiles the kernels with rust-cuda's code generator, once a target.
use std::error::Error;
use std::path::PathBuf;

use cuda_builder::{CudaBuilder, NvvmArch};

/// Name, what libNVVM builds for, and the levels of the list that are reached. Products of warpgroups are lacking, so that
/// the last has the entries of sm_80: what needs level 90 is left out.
const TARGETS: [(&str, NvvmArch, &[u32]); 3] = [
    ("sm_70", NvvmArch::Compute70, &[70]),
    ("sm_80", NvvmArch::Compute80, &[70, 80]),
    ("sm_90a", NvvmArch::Compute90, &[70, 80]),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    for folder in ["../kernels", "../../crates/gpu", "../../crates/kernels"] {
        println!("cargo::rerun-if-changed={folder}");
    }
    let manifest =
        PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo sets CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    for (name, arch, levels) in TARGETS {
        CudaBuilder::new(manifest.join("../kernels"))
            .arch(arch)
            // Sums are the same on both routes: what is to be rounded once says so.
            .fma_contraction(false)
            .build_args(&["-Zprofile-rustflags", "--config", &rustflags(levels)])
            .copy_to(out.join(format!("{name}.ptx")))
            .build()
            .map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

/// Flags beside those of `CudaBuilder`, which has no way to add any: the levels, and no jump threading, which may copy a
/// barrier into both arms of a branch.
fn rustflags(levels: &[u32]) -> String {
    let levels = levels.iter().map(|level| format!(", '--cfg=lacuna_sm=\"{level}\"'"));
    format!("profile.release.rustflags=['-Zmir-enable-passes=-JumpThreading'{}]", levels.collect::<String>())
}
