//! Any bytes as an `.npy` file: an error, or a matrix that survives being written and read.
#![no_main]

use lacuna_matrix::io::npy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let array = npy::read_array(bytes);
    let Ok(matrix) = npy::read(bytes) else { return };
    if let Ok(array) = array {
        assert_eq!((array.shape, array.values.len()), (vec![matrix.rows(), matrix.cols()], matrix.values().len()));
    }
    let mut written = Vec::new();
    npy::write(&matrix, &mut written).expect("writing to memory");
    let read = npy::read(&written[..]).expect("what was written");
    assert_eq!((read.rows(), read.cols()), (matrix.rows(), matrix.cols()));
    assert!(read.values().iter().zip(matrix.values()).all(|(a, b)| a.to_bits() == b.to_bits()));
});
