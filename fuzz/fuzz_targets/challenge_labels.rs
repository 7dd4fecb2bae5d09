//! Any bytes as an idx file of labels: an error, or labels whose file is those bytes.
#![no_main]

use lacuna_models::challenge::images::Labels;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(labels) = Labels::read(bytes) else { return };
    assert!(labels.as_slice().iter().all(|&label| label < 10));
    let mut written = Vec::new();
    labels.write(&mut written).expect("writing to memory");
    assert_eq!(written, bytes);
});
