//! Any bytes as a `.smtx` file: an error, or a pattern that survives being written and read.
#![no_main]

use lacuna_matrix::io::smtx;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(pattern) = smtx::read(bytes) else { return };
    // A file of a few bytes may have millions of empty rows; writing them all out would only cost time.
    if pattern.rows() > 1 << 16 {
        return;
    }
    let mut written = Vec::new();
    smtx::write(&pattern, &mut written).expect("writing to memory");
    assert_eq!(smtx::read(&written[..]).expect("what was written"), pattern);
});
