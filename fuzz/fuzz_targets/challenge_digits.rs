//! Any bytes as an idx file of digits: an error, or digits whose file is those bytes.
#![no_main]

use lacuna_models::challenge::images::Digits;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(digits) = Digits::read(bytes) else { return };
    let mut written = Vec::new();
    digits.write(&mut written).expect("writing to memory");
    assert_eq!(written, bytes);
});
