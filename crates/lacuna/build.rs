//! With feature `cuda`, builds the kernels into PTX, and packs it, with a list of the files to include: as text it would be
//! most of a program.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "cuda")]
    if let Err(error) = ptx() {
        println!("cargo::error=lacuna's feature `cuda` needs its kernels as PTX: {error}");
        std::process::exit(1);
    }
}

#[cfg(feature = "cuda")]
fn ptx() -> Result<(), Box<dyn std::error::Error>> {
    use lacuna_ptx::{Builder, LaunchBounds};

    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let mut builder = Builder::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels"))
        .launch_bounds(|name| {
            let entry = lacuna_kernels::entries::all().find(|entry| entry.name == name)?;
            let lacuna_kernels::Bounds { max_threads, min_blocks } = entry.bounds;
            Some(LaunchBounds {
                max_threads,
                min_blocks,
                cluster: entry.cluster,
                threads: entry.threads,
                shared_bytes: entry.shared_bytes,
            })
        })
        // ptxas checks the kernels in `cargo xtask build`; here a user's own must not stop a build.
        .resources(false)
        .cargo_metadata(true);
    println!("cargo::rerun-if-env-changed=LACUNA_PTX_DIR");
    if let Some(folder) = std::env::var_os("LACUNA_PTX_DIR").filter(|folder| !folder.is_empty()) {
        builder = builder.prefer(folder);
    }
    let built = builder.build()?;
    let mut index = String::from("[\n");
    for module in &built.modules {
        for entry in &module.entries {
            let path = out.join(format!("{}-{}.z", entry.name, module.target));
            std::fs::write(&path, miniz_oxide::deflate::compress_to_vec_zlib(entry.ptx.as_bytes(), 6))?;
            let (level, target) = (module.target.level(), module.target.to_string());
            index += &format!("    ({:?}, {level}, {target:?}, include_bytes!({path:?})),\n", entry.name);
        }
    }
    std::fs::write(out.join("packed.rs"), index + "]\n")?;
    Ok(())
}
