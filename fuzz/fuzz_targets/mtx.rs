//! Any bytes as a Matrix Market file: an error, or a matrix that survives being written and read.
#![no_main]

use lacuna_matrix::io::mtx;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(matrix) = mtx::read(bytes) else { return };
    let mut written = Vec::new();
    mtx::write(&matrix, &mut written).expect("writing to memory");
    let read = mtx::read(&written[..]).expect("what was written");
    assert_eq!(read.pattern(), matrix.pattern());
    // By their bits, but for NaN, of which a text keeps neither sign nor payload.
    for (a, b) in read.values().iter().zip(matrix.values()) {
        assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), "{a} {b}");
    }
});
