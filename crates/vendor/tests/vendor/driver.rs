//! The driver: launches that are recorded, and done again bare.

use std::path::{Path, PathBuf};

use lacuna_vendor::driver::{Driver, Error};

use crate::fake::{Fake, STREAM};

const NAME: &str = "libcuda.so.1";

fn fake() -> (Fake, PathBuf) {
    let fake = Fake::build("driver.c", NAME);
    let path = fake.folder().join(NAME);
    (fake, path)
}

fn well() -> Result<(), String> {
    Ok(())
}

#[test]
fn what_was_recorded_is_launched_with_its_grid_and_arguments() {
    let (fake, path) = fake();
    let driver = Driver::open_library(&path).unwrap();
    // SAFETY: the fake takes any stream.
    let launches = unsafe { driver.record(STREAM, well) }.unwrap();
    assert_eq!(launches.count(), 2);
    fake.journal();
    launches.launch().unwrap();
    launches.launch().unwrap();
    // Function, grid, block, shared memory, and the argument.
    let once = ["cuLaunchKernel(1,2,3,4,5,6,7,8,90)", "cuLaunchKernel(2,2,3,4,5,6,7,8,91)"];
    assert_eq!(fake.journal(), once.repeat(2));
    drop(launches);
    assert_eq!((fake.journal(), fake.live()), (vec!["cuGraphDestroy".into()], 0));
}

#[test]
fn what_fails_leaves_no_graph() {
    for function in ["cuStreamBeginCapture_v2", "cuGraphGetNodes", "cuGraphKernelNodeGetParams"] {
        let (fake, path) = fake();
        fake.fail(function, 719);
        // SAFETY: the fake takes any stream.
        let error = unsafe { Driver::open_library(&path).unwrap().record(STREAM, well) }.unwrap_err();
        assert!(error.to_string().contains("719"), "{error}");
        assert_eq!(fake.live(), 0, "{function}");
    }
    let (fake, path) = fake();
    let driver = Driver::open_library(&path).unwrap();
    // SAFETY: the fake takes any stream.
    let error = unsafe { driver.record(STREAM, || Err("no room")) }.unwrap_err();
    assert_eq!((error, fake.live()), (Error::Work { why: "no room".into() }, 0));
    // SAFETY: as above.
    let launches = unsafe { driver.record(STREAM, well) }.unwrap();
    fake.fail("cuLaunchKernel", 1);
    assert_eq!(launches.launch(), Err(Error::Call { function: "cuLaunchKernel", code: 1 }));
}

#[test]
fn a_file_that_is_not_there_or_another_library_is_missing() {
    let error = Driver::open_library(Path::new("/no/folder/libcuda.so.1")).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }) && error.to_string().contains("/no/folder"), "{error}");
    let other = Fake::build("nvml.c", NAME);
    let error = Driver::open_library(&other.folder().join(NAME)).unwrap_err();
    assert!(error.to_string().contains("it has no cuStreamBeginCapture_v2"), "{error}");
}
