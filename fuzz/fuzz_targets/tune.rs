//! Any bytes as an autotuner's file: an autotuner, with a warning where the bytes are not choices.
#![no_main]

use std::fs;

use lacuna::Autotuner;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("lacuna-fuzz-tune-{}.json", std::process::id()));
    fs::write(&path, bytes).expect("the temporary folder can be written");
    let tuner = Autotuner::open(&path);
    assert!(tuner.warnings().len() <= 1);
    assert!(tuner.problems() == 0 || tuner.warnings().is_empty());
    assert_eq!(fs::read(&path).expect("the file"), bytes, "opening changes nothing");
});
