//! The kernels' PTX, and what the driver made of it: an entry is loaded when it is first launched, and unloaded with its
//! device.
use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr;
use std::sync::{PoisonError, RwLock};

use cust::sys::{CUfunction, CUjit_option, CUmodule};
use lacuna_kernels::{Entry, entries, runs_on};

use super::driver::{check, explain};
use super::ffi;
use crate::{DeviceInfo, Error, Result};

/// What the build script gives.
struct Embedded {
    /// Every target and its name.
    targets: &'static [(u32, &'static str)],
    /// Entry point, target, and PTX, packed, of the operations whose features are on.
    entries: &'static [(&'static str, u32, &'static [u8])],
}

static EMBEDDED: Embedded = include!(concat!(env!("OUT_DIR"), "/packed.rs"));

/// Shared memory that a block may have without asking for it.
const SHARED_BYTES_FOR_ALL: u32 = 48 * 1024;

/// Bytes for what the driver's compiler has to say.
const LOG_BYTES: usize = 4096;

/// The entries of one target.
#[derive(Debug)]
pub(super) struct Modules {
    target: u32,
    /// As its PTX has it.
    name: &'static str,
    /// By the address and length of the entry's name, which stands once in the tables of kernels. Each launch looks here, and reads no name.
    loaded: RwLock<HashMap<(usize, usize), Loaded, BuildHasherDefault<AddressHasher>>>,
}

/// Hashes an address, of which the lowest bits are alike, by a multiplication.
#[derive(Clone, Copy, Debug, Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(byte.into());
        }
    }
    fn write_usize(&mut self, address: usize) {
        // The table's places come from the lowest and from the highest bits.
        let product = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

/// A module with its one entry. The context is the process's one for this GPU, so that it may outlive the device, and the
/// driver frees no module before it.
#[derive(Debug)]
struct Loaded {
    module: CUmodule,
    function: Function,
}

/// An entry as the driver has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function {
    pub(super) handle: CUfunction,
    /// Whether it begins by waiting for the launch before it (`lacuna_gpu::Gpu::grid_dependency_wait`): then it may be launched
    /// early. PTX of another compiler, which a build can be given, need not.
    pub(super) waits: bool,
}

/// The instruction by which a kernel waits.
const WAIT: &str = "griddepcontrol.wait";

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above; nothing changes one that was loaded.
unsafe impl Sync for Loaded {}

impl Modules {
    /// The newest target that a GPU of compute capability `sm` runs.
    pub(super) fn for_gpu(sm: u32) -> Option<Self> {
        let fitting = EMBEDDED.targets.iter().filter(|&&(target, _)| runs_on(target, sm));
        let &(target, name) = fitting.max_by_key(|&&(target, _)| target)?;
        Some(Self { target, name, loaded: RwLock::default() })
    }

    /// The oldest target, as a compute capability.
    pub(super) fn oldest_target() -> String {
        let oldest = EMBEDDED.targets.iter().map(|&(target, _)| target).min().unwrap_or_default();
        format!("{}.{}", oldest / 10, oldest % 10)
    }

    /// The function of an entry. The context is current.
    pub(super) fn function(&self, entry: &Entry<()>, info: &DeviceInfo) -> Result<Function> {
        let key = (entry.name.as_ptr().addr(), entry.name.len());
        if let Some(known) = self.loaded.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(known.function);
        }
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have loaded it meanwhile.
        if let Some(known) = loaded.get(&key) {
            return Ok(known.function);
        }
        let packed = packed(entry.name, self.target);
        let refused = |ptx: &str, why| self.refused(entry.name, ptx, info, why);
        if let (None, true) = (packed, entry.runs_on(self.target)) {
            return Err(Error::LeftOut { entry: entry.name.into(), feature: operation(entry.name) });
        }
        let packed = packed.ok_or_else(|| refused("", "it is not built for this target".into()))?;
        let ptx = unpack(packed).map_err(|why| refused("", why))?;
        let module = load(&ptx).map_err(|why| refused(&ptx, why))?;
        let handle = find(module, entry).map_err(|error| {
            unload(module);
            refused(&ptx, error.to_string())
        })?;
        let function = Function { handle, waits: ptx.contains(WAIT) };
        loaded.insert(key, Loaded { module, function });
        Ok(function)
    }

    /// Whether no entry was launched.
    pub(super) fn is_empty(&mut self) -> bool {
        self.loaded.get_mut().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Unloads all entries. The context is current, and no kernel of it is running or yet to run.
    pub(super) fn unload(&mut self) {
        let loaded = self.loaded.get_mut().unwrap_or_else(PoisonError::into_inner);
        loaded.drain().for_each(|(_, Loaded { module, .. })| unload(module));
    }

    fn refused(&self, entry: &str, ptx: &str, info: &DeviceInfo, why: String) -> Error {
        Error::Ptx {
            entry: entry.into(),
            target: self.name,
            ptx: directive(ptx, ".version ").into(),
            driver: info.driver.clone(),
            why,
        }
    }
}

/// An entry's PTX for a target, packed.
fn packed(entry: &str, target: u32) -> Option<&'static [u8]> {
    let mut entries = EMBEDDED.entries.iter();
    entries.find(|&&(name, its, _)| name == entry && its == target).map(|&(.., packed)| packed)
}

/// The operation of an entry, after which its feature is named.
fn operation(entry: &str) -> &'static str {
    let has = |entries: &[Entry<()>]| entries.iter().any(|listed| listed.name == entry);
    entries::OPERATIONS.iter().find(|(_, entries)| has(entries)).map_or("cuda", |(operation, _)| operation)
}

/// What a line of PTX that starts with `name` says.
fn directive<'a>(ptx: &'a str, name: &str) -> &'a str {
    ptx.lines().find_map(|line| line.strip_prefix(name)).map_or("unknown", str::trim)
}

/// PTX as the driver takes it.
fn unpack(packed: &[u8]) -> std::result::Result<String, String> {
    let ptx = miniz_oxide::inflate::decompress_to_vec_zlib(packed).map_err(|error| error.to_string())?;
    String::from_utf8(ptx).map_err(|error| error.to_string())
}

/// Compiles PTX with the driver. An error is what the driver said.
fn load(ptx: &str) -> std::result::Result<CUmodule, String> {
    let image = CString::new(ptx).map_err(|_| String::from("the PTX holds a zero byte"))?;
    let mut log = vec![0_u8; LOG_BYTES];
    let mut options =
        [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(LOG_BYTES)];
    let mut module: CUmodule = ptr::null_mut();
    // SAFETY: the image ends with a zero; options and values are as many as said, and live.
    let status = unsafe {
        ffi::cuModuleLoadDataEx(
            &mut module,
            image.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    if status == ffi::SUCCESS {
        return Ok(module);
    }
    let log = String::from_utf8_lossy(&log);
    let log = log.trim_matches(['\0', '\n', ' ']);
    Err([explain(status), log.to_string()].join(" ").trim().to_string())
}

/// Finds a module's entry, and lets it have the shared memory that it asks for.
fn find(module: CUmodule, entry: &Entry<()>) -> Result<CUfunction> {
    // Names of entries are identifiers: there is no zero byte in them.
    let name = CString::new(entry.name).unwrap_or_default();
    let mut function: CUfunction = ptr::null_mut();
    // SAFETY: the module is loaded; the name ends with a zero.
    check("cuModuleGetFunction", unsafe { ffi::cuModuleGetFunction(&mut function, module, name.as_ptr()) })?;
    if entry.shared_bytes > SHARED_BYTES_FOR_ALL {
        let (attribute, bytes) = (ffi::MAX_DYNAMIC_SHARED_BYTES, entry.shared_bytes as c_int);
        // SAFETY: the function was just found.
        check("cuFuncSetAttribute", unsafe { ffi::cuFuncSetAttribute(function, attribute, bytes) })?;
    }
    Ok(function)
}

fn unload(module: CUmodule) {
    // SAFETY: the module was loaded in the context that is current, and its handle is dropped here. A failure is one of
    // earlier work, which its stream reports.
    let _ = unsafe { ffi::cuModuleUnload(module) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_of_the_operation_that_lists_it() {
        for (name, entries) in entries::OPERATIONS {
            assert!(entries.iter().all(|entry| operation(entry.name) == *name), "{name}");
        }
    }

    /// No target has PTX that its GPUs do not run; what tests are built with has all the rest.
    #[test]
    fn what_is_embedded_is_what_gpus_run() {
        for entry in entries::all() {
            for &(target, name) in EMBEDDED.targets {
                assert_eq!(
                    packed(entry.name, target).is_some(),
                    entry.runs_on(target),
                    "{}, {name}",
                    entry.name
                );
            }
        }
    }

    /// Launched early, a kernel that did anything before it waits would meet the one before still at work. Those that look
    /// ahead may read the pattern: three numbers for where a tile's values are, and of a packed matrix, which nothing changes,
    /// the first packs. This goes by the order of the text; the simulator finds what threads do too early.
    #[test]
    fn kernels_that_wait_touch_no_memory_before() {
        let mut waiting = [0, 0];
        for &(name, target, packed) in EMBEDDED.entries {
            let ptx = unpack(packed).unwrap();
            let Some(wait) = ptx.find(WAIT) else { continue };
            let before = &ptx[..wait];
            let is_one_of = |kinds: &[&str]| kinds.iter().any(|kind| name.contains(kind));
            let reads_packs = is_one_of(&["_prepacked_"]);
            let is_tile = is_one_of(&["_mma_", "_wgmma_"]) || reads_packs;
            let looks_ahead = name.starts_with("spmm_") && is_tile;
            for access in ["ld.global", "st.global", "ld.shared", "st.shared", "atom.", "\tred.", "cp.async"]
            {
                let found = before.matches(access).count();
                let is_allowed = match access {
                    "ld.global" => {
                        found == before.matches("ld.global.nc.").count() && (found <= 3 || reads_packs)
                    }
                    _ => access == "st.shared",
                };
                assert!(
                    found == 0 || looks_ahead && is_allowed,
                    "{name}, {target}: `{access}` {found} times before it waits"
                );
            }
            waiting[usize::from(looks_ahead)] += 1;
        }
        assert!(!waiting.contains(&0), "{waiting:?}: kernels that only wait, and those that look ahead");
    }
}
