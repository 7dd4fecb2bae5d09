//! Fake vendor libraries, compiled from `fake/*.c` with the machine's C compiler.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;

use lacuna_vendor::{Search, Workspace};
use libloading::Library;
use tempfile::TempDir;

/// The only stream with which the fakes compute.
pub(crate) const STREAM: *mut c_void = std::ptr::without_provenance_mut(0x57);

/// A fake library in a folder of its own; each has its own state.
pub(crate) struct Fake {
    folder: TempDir,
    library: Library,
}

impl Fake {
    /// Compiles `fake/<source>` into a file called `name`.
    pub(crate) fn build(source: &str, name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        Self::compile(source, &file, &[]);
        // SAFETY: the library has no initialisers.
        let library = unsafe { Library::new(&file) }.unwrap();
        Self { folder, library }
    }

    /// Compiles `fake/<source>` into `file`.
    pub(crate) fn compile(source: &str, file: &Path, options: &[&str]) {
        compile(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vendor/fake").join(source), file, options);
    }

    /// Where it lies.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A search that finds this library and no other.
    pub(crate) fn search(&self) -> Search {
        Search::in_folders([self.folder.path()])
    }

    /// The calls since the last time.
    pub(crate) fn journal(&self) -> Vec<String> {
        // SAFETY: the type is that of the function in `journal.h`.
        let journal =
            unsafe { self.library.get::<extern "C" fn() -> *const c_char>("fake_journal") }.unwrap();
        // SAFETY: it returns a string that stays until its next call.
        let text = unsafe { CStr::from_ptr(journal()) };
        text.to_str().unwrap().split_whitespace().map(str::to_owned).collect()
    }

    /// Handles and descriptors that were made and not yet destroyed.
    pub(crate) fn live(&self) -> i32 {
        // SAFETY: the type is that of the function in `journal.h`.
        let live = unsafe { self.library.get::<extern "C" fn() -> c_int>("fake_live") }.unwrap();
        live()
    }

    /// Makes every later call of `function` return `status`.
    pub(crate) fn fail(&self, function: &str, status: i32) {
        // SAFETY: the type is that of the function in `journal.h`.
        let fail = unsafe { self.library.get::<extern "C" fn(*const c_char, c_int)>("fake_fail") }.unwrap();
        let function = CString::new(function).unwrap();
        fail(function.as_ptr(), status);
    }
}

/// Compiles one C file into a shared object. Where Rust links, there is a C compiler.
pub(crate) fn compile(source: &Path, file: &Path, options: &[&str]) {
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([file, source])
        .args(options)
        .output()
        .expect("these tests need a C compiler called cc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// An allocator whose addresses the fakes never read.
pub(crate) fn allocate(bytes: usize) -> Result<Workspace, std::io::Error> {
    let memory = vec![0u8; bytes + 256];
    let address = (memory.as_ptr().addr() as u64).next_multiple_of(256);
    Ok(Workspace::new(address, memory))
}

/// The address of a host array, which the fakes take for a device array.
pub(crate) fn address<T>(array: &[T]) -> u64 {
    array.as_ptr().expose_provenance() as u64
}

/// The address of a host array that the fakes write.
pub(crate) fn address_mut<T>(array: &mut [T]) -> u64 {
    array.as_mut_ptr().expose_provenance() as u64
}
