//! Builds small crates with a real device compiler. On a machine without one these tests say so and pass.
use std::fs;
use std::path::{Path, PathBuf};

use lacuna_ptx::{
    Barriers, BuildError, Builder, Cache, DeviceCompiler, LaunchBounds, Target, count_barriers,
};

/// The user's cache: it may hold `core` built for the target already, which takes most of the time.
fn cache_with_compiler() -> Option<Cache> {
    let cache = Cache::of_user().expect("a cache directory");
    match DeviceCompiler::find(&cache) {
        Ok(_) => Some(cache),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn canary() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/canary")
}

/// A crate of its own with this source.
fn crate_with(source: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("src")).unwrap();
    let manifest = "[package]\nname = \"lacuna-broken\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(dir.path().join("Cargo.toml"), manifest).unwrap();
    let head = "#![no_std]\n#![feature(abi_ptx)]\n\
                #[panic_handler] fn panic(_: &core::panic::PanicInfo<'_>) -> ! { loop {} }\n";
    fs::write(dir.path().join("src/lib.rs"), format!("{head}{source}")).unwrap();
    dir
}

#[test]
fn barriers_between_divergent_branches_stay_single() {
    let Some(cache) = cache_with_compiler() else { return };
    let bounds = LaunchBounds { min_blocks: 2, ..LaunchBounds::threads(64) };
    let build = Builder::new(canary())
        .launch_bounds(move |entry| (entry == "canary").then_some(bounds))
        .expect_barriers(|entry| Some(if entry == "canary" { 2 } else { 0 }))
        .cache(cache)
        .build()
        .unwrap();
    assert_eq!(build.modules.len(), Target::ALL.len());
    for module in &build.modules {
        let entry = module.entry("canary").unwrap();
        assert_eq!(count_barriers(&entry.ptx), Barriers { block: 1, warp: 1 }, "{}", entry.ptx);
        assert!(entry.ptx.contains(".maxntid 64, 1, 1\n.minnctapersm 2\n{"), "{}", entry.ptx);
        if let Some(row) = build.resources.as_ref().and_then(|table| table.row("canary", module.target)) {
            assert!((1..=32).contains(&row.registers), "{row:?}");
            assert_eq!(row.barriers, 2);
        }
    }
    assert!(build.sources.iter().any(|file| file.ends_with("gpu/src/device.rs")), "{:?}", build.sources);
}

#[test]
fn the_second_build_comes_from_the_cache_and_writes_the_same_files() {
    let Some(cache) = cache_with_compiler() else { return };
    let build = |folder: &Path| {
        let cache = cache.clone();
        Builder::new(canary())
            .targets(&[Target::Sm80])
            .copy_to(folder)
            .resources(false)
            .cache(cache)
            .build()
            .unwrap()
    };
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    build(first.path());
    assert_eq!(build(second.path()).compiled, []);
    let read = |folder: &Path| fs::read_to_string(folder.join("sm_80/canary.ptx")).unwrap();
    assert_eq!(read(first.path()), read(second.path()));
    let index = fs::read_to_string(first.path().join("index.rs")).unwrap();
    assert!(index.contains("(\"only_new\", 80, include_str!("), "{index}");
}

#[test]
fn a_wrong_number_of_barriers_is_refused() {
    let Some(cache) = cache_with_compiler() else { return };
    let error = Builder::new(canary())
        .targets(&[Target::Sm80])
        .expect_barriers(|entry| (entry == "canary").then_some(3))
        .cache(cache)
        .build()
        .unwrap_err();
    assert!(matches!(error, BuildError::Barriers { expected: 3, found: 2, .. }), "{error}");
}

#[test]
fn a_crate_that_does_not_compile_shows_the_compilers_words() {
    let Some(cache) = cache_with_compiler() else { return };
    let dir = crate_with("compile_error!(\"by design\");");
    let error = Builder::new(dir.path()).targets(&[Target::Sm80]).cache(cache).build().unwrap_err();
    assert!(matches!(&error, BuildError::Compile { output, .. } if output.contains("by design")), "{error}");
}

#[test]
fn a_missing_function_is_refused() {
    let Some(cache) = cache_with_compiler() else { return };
    let dir = crate_with(
        "unsafe extern \"C\" { fn nowhere(x: u32) -> u32; }\n\
         #[unsafe(no_mangle)] pub unsafe extern \"ptx-kernel\" fn k(out: *mut u32) {\n\
             unsafe { *out = nowhere(1) }\n\
         }",
    );
    let error = Builder::new(dir.path()).targets(&[Target::Sm80]).cache(cache).build().unwrap_err();
    assert!(
        matches!(&error, BuildError::ExternFunction { function, .. } if function == "nowhere"),
        "{error}"
    );
}

#[test]
fn an_array_indexed_at_run_time_is_refused() {
    let Some(cache) = cache_with_compiler() else { return };
    let dir = crate_with(
        "#[unsafe(no_mangle)] pub unsafe extern \"ptx-kernel\" fn k(out: *mut u32, at: usize) {\n\
             let mut a = [0_u32; 64];\n\
             for i in 0..64 { a[(i * at) % 64] = i as u32; }\n\
             unsafe { *out = a[at % 64] }\n\
         }",
    );
    let error = Builder::new(dir.path()).targets(&[Target::Sm80]).cache(cache).build().unwrap_err();
    assert!(matches!(&error, BuildError::LocalMemory { entry, .. } if entry == "k"), "{error}");
}

#[test]
fn no_target_and_no_crate_are_errors() {
    let error = Builder::new(canary()).targets(&[]).build().unwrap_err();
    assert!(matches!(error, BuildError::NoTarget));
    let Some(cache) = cache_with_compiler() else { return };
    let empty = tempfile::tempdir().unwrap();
    for folder in [empty.path().to_owned(), empty.path().join("nowhere")] {
        let error = Builder::new(folder).cache(cache.clone()).build().unwrap_err();
        assert!(matches!(error, BuildError::NotACrate { .. }), "{error}");
    }
}
