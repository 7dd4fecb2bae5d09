//! With feature `cuda`, gets the PTX of the operations whose features are on, packed, with a list of the files to include: as
//! text it would be most of a program.

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
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use lacuna_kernels::{Bounds, FOLDERS, entries};
    use lacuna_ptx::{Builder, Cache, Identity, LaunchBounds, Target};

    let bounds = |entry: lacuna_kernels::Entry<()>| {
        let Bounds { max_threads, min_blocks } = entry.bounds;
        let lacuna_kernels::Entry { cluster, has_map, threads, shared_bytes, .. } = entry;
        LaunchBounds { max_threads, min_blocks, cluster, has_map, threads, shared_bytes }
    };
    let is_on =
        |operation: &str| std::env::var_os(format!("CARGO_FEATURE_{}", operation.to_uppercase())).is_some();
    let of_operations = entries::OPERATIONS.iter().filter(|(name, _)| is_on(name)).flat_map(|(_, of)| *of);
    let wanted: BTreeSet<&str> = of_operations.map(|entry| entry.name).collect();

    let (identity, sources) =
        Identity::of(&FOLDERS, entries::all().map(|entry| (entry.name, bounds(entry))))?;
    for file in sources {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    // Where archives are looked for: where `cargo xtask dist --ptx` writes one in a checkout, and the user's cache.
    let file = concat!("lacuna-", env!("CARGO_PKG_VERSION"), ".ptx");
    let mut places = vec![Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist")).join(file)];
    places.extend(Cache::of_user().ok().map(|cache| cache.root().join(file)));
    let mut builder = Builder::new(FOLDERS[0])
        .launch_bounds(move |name| entries::all().find(|entry| entry.name == name).map(bounds))
        // ptxas checks the kernels in `cargo xtask build`; here a user's own must not stop a build.
        .resources(false)
        .cargo_metadata(true);
    println!("cargo::rerun-if-env-changed=LACUNA_PTX_DIR");
    if let Some(folder) = std::env::var_os("LACUNA_PTX_DIR").filter(|folder| !folder.is_empty()) {
        builder = builder.prefer(folder);
    }
    let archive = builder.archive(identity, &places, |name| wanted.contains(name))?;

    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let mut index = String::from("Embedded { targets: &[");
    for target in Target::ALL {
        index += &format!("({}, {:?}), ", target.level(), target.name());
    }
    index += "], entries: &[\n";
    for target in Target::ALL {
        let runs =
            |entry: &lacuna_kernels::Entry<()>| entry.runs_on(target.level()) && wanted.contains(entry.name);
        for entry in entries::all().filter(runs) {
            let path = out.join(format!("{}-{target}.z", entry.name));
            std::fs::write(&path, archive.expect(entry.name, target)?)?;
            index += &format!("    ({:?}, {}, include_bytes!({path:?})),\n", entry.name, target.level());
        }
    }
    std::fs::write(out.join("packed.rs"), index + "] }\n")?;
    Ok(())
}
