//! NVML: the calls, and what is missing.

use std::path::Path;

use lacuna_vendor::nvml::{EnergyCounter, Error};

use crate::fake::Fake;

const PCI: &str = "00000000:3b:00.0";
const NAME: &str = "libnvidia-ml.so.1";

fn fake() -> (Fake, std::path::PathBuf) {
    let fake = Fake::build("nvml.c", NAME);
    let path = fake.folder().join(NAME);
    (fake, path)
}

#[test]
fn a_counter_is_found_by_the_place_of_its_gpu() {
    let (fake, path) = fake();
    let counter = EnergyCounter::open_library(&path, PCI).unwrap();
    let before = counter.millijoules().unwrap();
    assert_eq!(counter.millijoules().unwrap() - before, 250);
    drop(counter);
    let reads = ["nvmlDeviceGetTotalEnergyConsumption"; 3];
    let first = ["nvmlInit_v2", "nvmlDeviceGetHandleByPciBusId_v2(00000000:3b:00.0)"];
    assert_eq!(fake.journal(), [&first[..], &reads, &["nvmlShutdown"]].concat());
    assert_eq!(fake.live(), 0);
}

#[test]
fn what_fails_ends_what_was_begun_and_says_why() {
    for (function, status, words) in [
        ("nvmlInit_v2", 9, "the driver is not running"),
        ("nvmlDeviceGetTotalEnergyConsumption", 3, "does not count energy"),
    ] {
        let (fake, path) = fake();
        fake.fail(function, status);
        let error = EnergyCounter::open_library(&path, PCI).unwrap_err();
        assert_eq!(error, Error::Call { function, code: status });
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(fake.live(), 0);
    }
    let (fake, path) = fake();
    let error = EnergyCounter::open_library(&path, "00000000:01:00.0").unwrap_err();
    assert!(error.to_string().contains("there is no such GPU"), "{error}");
    assert_eq!(fake.live(), 0);
    assert!(matches!(EnergyCounter::open_library(&path, "a\0b"), Err(Error::Place { .. })));
}

#[test]
fn a_file_that_is_not_there_or_another_library_is_missing() {
    let error = EnergyCounter::open_library(Path::new("/no/folder/libnvidia-ml.so.1"), PCI).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }) && error.to_string().contains("/no/folder"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join(NAME);
    Fake::compile("cublas.c", &other, &[]);
    let error = EnergyCounter::open_library(&other, PCI).unwrap_err();
    assert!(error.to_string().contains("it has no nvmlInit_v2"), "{error}");
}
