//! Archives of PTX: what follows the checksum.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = lacuna_ptx::Archive::may_follow_checksum(bytes);
});
