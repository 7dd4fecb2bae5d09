//! What the library asks of the driver when plans run and when devices end, with a driver that is a C file (`fake.c`): no GPU is used.
//!
//! The driver is looked for when the first device is made. So each test runs itself once more, as a process that finds the
//! fake first.
mod allocations;
mod cudnn;
mod foreign;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use lacuna::matrix::Csr;
use lacuna::{CsrMatrix, Device, Error, Spmm, Stream};

/// Runs `work` in a process of its own with the fake driver and these variables; what happened to modules, or nothing in
/// that process itself.
fn journal(test: &str, variables: &[&str], work: impl FnOnce()) -> Option<Vec<String>> {
    let variables: Vec<_> = variables.iter().map(|&name| (name, "1")).collect();
    journal_beside(test, &variables, |_| (), work)
}

/// The same with what `prepare` puts into a folder, which `LACUNA_PEERS_PATH` names.
fn journal_beside(
    test: &str,
    variables: &[(&str, &str)],
    prepare: impl FnOnce(&Path),
    work: impl FnOnce(),
) -> Option<Vec<String>> {
    if env::var_os("FAKE_JOURNAL").is_some() {
        work();
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let (driver, journal) = (folder.path().join("libcuda.so.1"), folder.path().join("journal"));
    compile("tests/driver/fake.c", &driver);
    prepare(folder.path());

    let mut child = Command::new(env::current_exe().unwrap());
    let mut folders = OsString::from(folder.path());
    if let Some(others) = env::var_os("LD_LIBRARY_PATH") {
        folders.push(":");
        folders.push(others);
    }
    child.args(["--exact", test]).env("LD_LIBRARY_PATH", folders).env("FAKE_JOURNAL", &journal);
    child.env("LACUNA_PEERS_PATH", folder.path());
    let output = child.envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let journal = fs::read_to_string(&journal).unwrap();
    Some(journal.lines().map(str::to_owned).collect())
}

/// Writes a word of the test's own to the journal.
fn note(word: &str) {
    let journal = env::var_os("FAKE_JOURNAL").expect("the test runs with the fake driver");
    writeln!(fs::OpenOptions::new().append(true).create(true).open(journal).unwrap(), "{word}").unwrap();
}

/// Compiles a C file of the package into a shared object.
fn compile(source: &str, file: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let compiler = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).args([file, &source]).output();
    let compiler = compiler.expect("these tests need a C compiler called cc");
    assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
}

/// A device that has launched a kernel, by one of its streams.
fn used() -> (Device, Stream) {
    let device = Device::cuda(0).unwrap();
    let stream = device.stream().unwrap();
    run(&device, &stream).unwrap();
    (device, stream)
}

fn run(device: &Device, stream: &Stream) -> lacuna::Result<()> {
    let a = Csr::new(1, 2, vec![0, 1], vec![1], vec![3.0_f32]).unwrap();
    let a = CsrMatrix::new(device, &a)?;
    let (b, mut c) = (device.upload(&[1.0; 4])?, device.upload(&[0.0; 2])?);
    Spmm::plan(&a, 2)?.run(stream, &a, b.as_slice(), c.as_slice_mut())
}

#[test]
fn devices_in_a_loop_unload_what_they_loaded() {
    let work = || (0..3).for_each(|_| drop(used()));
    if let Some(journal) = journal("devices_in_a_loop_unload_what_they_loaded", &[], work) {
        assert_eq!(journal, ["load", "launch", "unload", "release"].repeat(3));
    }
}

#[test]
fn kernels_stay_as_long_as_a_stream() {
    let work = || {
        let (device, stream) = used();
        drop(device);
        run(stream.device(), &stream).unwrap();
    };
    if let Some(journal) = journal("kernels_stay_as_long_as_a_stream", &[], work) {
        assert_eq!(journal, ["load", "launch", "launch", "unload", "release"]);
    }
}

#[test]
fn where_the_context_is_gone_nothing_is_unloaded() {
    let work = || drop(used());
    if let Some(journal) = journal("where_the_context_is_gone_nothing_is_unloaded", &["FAKE_GONE"], work) {
        assert_eq!(journal, ["load", "launch", "release"]);
    }
}

#[test]
fn a_module_without_its_entry_is_unloaded() {
    let work = || {
        let device = Device::cuda(0).unwrap();
        let error = run(&device, &device.stream().unwrap()).unwrap_err();
        assert!(matches!(error, Error::Ptx { .. }), "{error}");
    };
    if let Some(journal) = journal("a_module_without_its_entry_is_unloaded", &["FAKE_NO_ENTRY"], work) {
        assert_eq!(journal, ["load", "unload", "release"]);
    }
}
