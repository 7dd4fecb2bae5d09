//! With feature `cuda`, builds the kernels into PTX, with a list of the files to include.

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

    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    Builder::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels"))
        .launch_bounds(|name| {
            let entry = lacuna_kernels::entries::all().find(|entry| entry.name == name)?;
            let lacuna_kernels::Bounds { max_threads, min_blocks } = entry.bounds;
            Some(LaunchBounds {
                max_threads,
                min_blocks,
                threads: entry.threads,
                shared_bytes: entry.shared_bytes,
            })
        })
        // ptxas checks the kernels in `cargo xtask build`; here a user's own must not stop a build.
        .resources(false)
        .cargo_metadata(true)
        .copy_to(out)
        .build()?;
    Ok(())
}
