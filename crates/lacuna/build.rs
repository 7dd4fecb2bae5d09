//! With feature `cuda`, builds the kernels into PTX and lists the files for `include_str!`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "cuda")]
    embed::ptx();
}

#[cfg(feature = "cuda")]
mod embed {
    use std::fmt::Write;
    use std::path::PathBuf;
    use std::{env, fs};

    use lacuna_ptx::{Builder, LaunchBounds, Target};

    pub(super) fn ptx() {
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        let kernels = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels");
        for sources in [kernels, concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu")] {
            println!("cargo::rerun-if-changed={sources}");
        }
        let built = Builder::new(kernels)
            .targets(&Target::ALL)
            .launch_bounds(|name| {
                let entry = lacuna_kernels::entries::all().find(|entry| entry.name == name)?;
                Some(LaunchBounds { max_threads: entry.threads, min_blocks: entry.min_blocks })
            })
            .copy_to(out.join("ptx"))
            .build();
        let built = match built {
            Ok(built) => built,
            Err(error) => {
                println!("cargo::error=lacuna's feature `cuda` needs its kernels as PTX: {error}");
                std::process::exit(1);
            }
        };
        let mut table = String::from("&[\n");
        for module in &built.modules {
            for entry in &module.entries {
                let path =
                    out.join("ptx").join(module.target.to_string()).join(format!("{}.ptx", entry.name));
                let sm = module.target.number();
                writeln!(table, "    ({:?}, {sm}, include_str!({path:?})),", entry.name)
                    .expect("a string grows");
            }
        }
        table.push(']');
        fs::write(out.join("embedded.rs"), table).expect("cargo's OUT_DIR can be written");
    }
}
