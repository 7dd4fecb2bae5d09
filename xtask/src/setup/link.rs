//! A library to link instead of the CUDA driver, so that programs start on machines that have none.
//!
//! `cust` links `libcuda`, and a program linked with the driver itself does not start without it. Here `libcuda.so`
//! is a linker script that names a static archive instead. For each function of the driver the archive has a
//! trampoline that jumps through a slot; the first call fills the slot from `libcuda.so.1`, or, where there is no
//! driver, with a function that returns `CUDA_ERROR_STUB_LIBRARY`.
mod trampolines;

use std::fs;

use anyhow::Context as _;
use lacuna_ptx::Cache;
use xshell::{Shell, cmd};

use crate::outcome::Missing;

/// The functions that `cust_raw` 0.11.3 declares, a line each.
const FUNCTIONS: &str = include_str!("link/driver_functions.txt");
/// Finds a function of the driver and fills its slot.
const RESOLVER: &str = include_str!("link/resolver.c");

/// Makes the library, unless it is there.
pub(crate) fn install(cache: &Cache) -> anyhow::Result<()> {
    let folder = cache.cuda_library_path().join("lib64");
    let archive = folder.join(format!("liblacuna_cuda-{}.a", env!("CARGO_PKG_VERSION")));
    let script_path = folder.join("libcuda.so");
    // The sources stand in the script as its stamp: other sources or another folder, and it is made anew.
    let functions: Vec<&str> = FUNCTIONS.lines().collect();
    let assembly = trampolines::assembly(&functions)
        .ok_or_else(|| Missing(format!("no CUDA driver exists for {}", std::env::consts::ARCH)))?;
    let table = trampolines::table(&functions);
    let stamp = format!("{:016x}", fingerprint(&[&assembly, &table, RESOLVER]));
    let script =
        format!("/* Lacuna's stand-in for the CUDA driver, {stamp} */\nINPUT(\"{}\")\n", archive.display());
    if archive.is_file() && fs::read_to_string(&script_path).is_ok_and(|found| found == script) {
        return Ok(());
    }

    fs::create_dir_all(&folder)
        .map_err(|source| lacuna_ptx::BuildError::Cache { path: folder.clone(), source })?;
    let scratch = tempfile::tempdir_in(&folder)?;
    let shell = Shell::new()?;
    let _in_scratch = shell.push_dir(scratch.path());
    shell.write_file("trampolines.S", &assembly)?;
    shell.write_file("resolver.c", format!("{table}\n{RESOLVER}"))?;
    cmd!(shell, "cc -c -O2 -fPIC -fvisibility=hidden trampolines.S resolver.c")
        .quiet()
        .run()
        .map_err(|error| Missing(format!("needs a C compiler (`apt-get install gcc`): {error}")))?;
    cmd!(shell, "ar rcs archive.a trampolines.o resolver.o").quiet().run()?;
    fs::rename(scratch.path().join("archive.a"), &archive)
        .with_context(|| format!("cannot write {}", archive.display()))?;
    Ok(lacuna_ptx::cache::write_atomically(&script_path, &script)?)
}

/// FNV-1a: tells one text from the next version of it.
fn fingerprint(texts: &[&str]) -> u64 {
    texts
        .iter()
        .flat_map(|text| text.bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_distinct_names() {
        let functions: Vec<&str> = FUNCTIONS.lines().collect();
        assert!(functions.is_sorted_by(|a, b| a < b));
        assert!(functions.iter().all(|name| name.starts_with("cu") && name.is_ascii()));
        for needed in ["cuInit", "cuModuleLoadDataEx", "cuLaunchKernel", "cuGetErrorString"] {
            assert!(functions.contains(&needed), "{needed}");
        }
    }

    #[test]
    fn installing_twice_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        install(&cache).unwrap();
        let script = cache.cuda_library_path().join("lib64/libcuda.so");
        let made = fs::metadata(&script).unwrap().modified().unwrap();
        install(&cache).unwrap();
        assert_eq!(fs::metadata(&script).unwrap().modified().unwrap(), made);
        fs::write(&script, "something else").unwrap();
        install(&cache).unwrap();
        assert!(fs::read_to_string(&script).unwrap().contains("INPUT("));
    }
}
