//! Any bytes as categories of the challenge: an error, or categories that survive being written and read.
#![no_main]

use lacuna_models::challenge::{IMAGES, categories};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(read) = categories::read(bytes, IMAGES) else { return };
    let mut written = Vec::new();
    categories::write(&read, &mut written).expect("writing to memory");
    assert_eq!(categories::read(&written[..], IMAGES).expect("what was written"), read);
});
