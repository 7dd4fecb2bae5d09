//! Finding the libraries, and saying well that they are not there.

use std::fs;

use lacuna_vendor::cublas::CuBlas;
use lacuna_vendor::cudnn::CuDnn;
use lacuna_vendor::cusparse::CuSparse;
use lacuna_vendor::{Search, Vendor};

use crate::fake::{Fake, compile};

#[test]
fn an_empty_folder_holds_no_library_and_the_error_says_what_was_tried() {
    let folder = tempfile::tempdir().unwrap();
    let missing = CuSparse::load(&Search::in_folders([folder.path()])).unwrap_err();
    assert_eq!(missing.vendor(), Vendor::CuSparse);
    assert_eq!(
        missing.names(),
        ["libcusparse.so.13", "libcusparse.so.12", "libcusparse.so.11", "libcusparse.so"]
    );
    assert!(missing.failures().is_empty());
    let message = missing.to_string();
    assert!(message.starts_with("cuSPARSE was not loaded: looked for libcusparse.so.13, "), "{message}");
    assert!(message.contains(&folder.path().display().to_string()), "{message}");
    assert!(message.contains("LACUNA_PEERS_PATH"), "{message}");
}

#[test]
fn each_library_has_its_own_packages() {
    let nowhere = Search::in_folders([""; 0]);
    let messages = [
        CuSparse::load(&nowhere).unwrap_err().to_string(),
        CuBlas::load(&nowhere).unwrap_err().to_string(),
        CuDnn::load(&nowhere).unwrap_err().to_string(),
    ];
    let expected = [
        "install CUDA 11.4 or newer, or Python's wheel nvidia-cusparse (nvidia-cusparse-cu12 for a driver of CUDA \
         12), and name the folder that holds the library, and those of libnvJitLink, in LACUNA_PEERS_PATH",
        "install CUDA 11.4 or newer, or Python's wheel nvidia-cublas (nvidia-cublas-cu12 for a driver of CUDA 12), \
         and name the folder that holds the library, and those of libcublasLt, in LACUNA_PEERS_PATH",
        "install cuDNN 8 or newer, or Python's wheel nvidia-cudnn-cu13 (nvidia-cudnn-cu12 for a driver of CUDA 12), \
         and name the folder that holds the library, and those of libcublasLt, libcublas, libnvrtc, in \
         LACUNA_PEERS_PATH",
    ];
    for (message, expected) in messages.iter().zip(expected) {
        assert!(message.ends_with(expected), "{message}");
    }
}

#[test]
fn no_folder_at_all_is_said_too() {
    let missing = CuBlas::load(&Search::in_folders([""; 0])).unwrap_err();
    assert!(missing.to_string().contains("in no folder at all"), "{missing}");
}

#[test]
fn one_library_may_be_there_without_the_other() {
    let fake = Fake::build("cublas.c", "libcublas.so");
    assert!(CuBlas::load(&fake.search()).unwrap().path().ends_with("libcublas.so"));
    assert!(CuSparse::load(&fake.search()).is_err());
}

#[test]
fn a_file_that_is_no_library_is_named_with_the_loaders_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("libcublas.so.12");
    fs::write(&file, "not a library").unwrap();
    let missing = CuBlas::load(&Search::in_folders([folder.path()])).unwrap_err();
    assert_eq!(missing.failures().len(), 1);
    assert_eq!(missing.failures()[0].path, file);
    assert!(missing.failures()[0].reason.contains("libcublas.so.12"), "{missing}");
}

#[test]
fn a_library_without_a_function_is_too_old_and_the_next_folder_serves() {
    let old = tempfile::tempdir().unwrap();
    let source = old.path().join("old.c");
    fs::write(&source, "int cusparseGetProperty(void) { return 0; }").unwrap();
    let file = old.path().join("libcusparse.so.11");
    compile(&source, &file, &[]);

    let missing = CuSparse::load(&Search::in_folders([old.path()])).unwrap_err();
    assert_eq!(missing.failures()[0].reason, "it is too old, for it has no cusparseCreate");

    let fake = Fake::build("cusparse.c", "libcusparse.so.12");
    let both = Search::in_folders([old.path(), fake.folder()]);
    assert_eq!(CuSparse::load(&both).unwrap().path(), fake.folder().join("libcusparse.so.12"));
}

/// As in a toolkit off the loader's path: cuBLAS needs cuBLASLt, which lies beside it or in another folder.
#[test]
fn what_a_library_needs_is_found_in_the_folders() {
    let (vendor, lt) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = lt.path().join("lt.c");
    fs::write(&source, "int lt(void) { return 0; }").unwrap();
    let companion = lt.path().join("libcublasLt.so.12");
    compile(&source, &companion, &["-Wl,-soname,libcublasLt.so.12"]);
    let needs = ["-Wl,--no-as-needed", companion.to_str().unwrap()];
    Fake::compile("cublas.c", &vendor.path().join("libcublas.so.12"), &needs);

    // Alone first: once the companion is loaded, it stays so for this process.
    let alone = CuBlas::load(&Search::in_folders([vendor.path()])).unwrap_err();
    assert!(alone.failures()[0].reason.contains("libcublasLt.so.12"), "{alone}");
    assert!(CuBlas::load(&Search::in_folders([vendor.path(), lt.path()])).is_ok());
}

/// As with Python's wheels: cuDNN needs libraries of CUDA, which lie in folders of their own and count other versions.
#[test]
fn all_that_cudnn_needs_is_found_in_the_folders() {
    let (vendor, cuda) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut needs = vec!["-Wl,--no-as-needed".to_owned()];
    let mut before: Vec<String> = Vec::new();
    // cuBLAS needs cuBLASLt, so that must be loaded first.
    for name in ["libcublasLt.so.13", "libcublas.so.13", "libnvrtc.so.13"] {
        let source = cuda.path().join("companion.c");
        fs::write(&source, "int companion(void) { return 0; }").unwrap();
        let file = cuda.path().join(name);
        let soname = format!("-Wl,-soname,{name}");
        let options: Vec<&str> =
            std::iter::once(soname.as_str()).chain(before.iter().map(String::as_str)).collect();
        compile(&source, &file, &options);
        before = vec!["-Wl,--no-as-needed".to_owned(), file.to_str().unwrap().to_owned()];
        needs.push(before[1].clone());
    }
    let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
    Fake::compile("cudnn.c", &vendor.path().join("libcudnn.so.9"), &needs);

    let alone = CuDnn::load(&Search::in_folders([vendor.path()])).unwrap_err();
    assert!(alone.failures()[0].reason.contains("libcublasLt.so.13"), "{alone}");
    assert!(CuDnn::load(&Search::in_folders([vendor.path(), cuda.path()])).is_ok());
}
