//! Any bytes as a safetensors container: an error, or a matrix that survives being written and read.
#![no_main]

use lacuna_matrix::io::safetensors::{Container, Tensors};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(container) = Container::new(bytes) else { return };
    let names = container.names();
    for name in &names {
        let _ = container.vector(name);
    }
    for name in names.iter().filter_map(|name| name.strip_suffix(".crow_indices")) {
        let Ok(matrix) = container.csr(name, Some(9)).or_else(|_| container.csr(name, None)) else {
            continue;
        };
        assert_eq!(container.csr_rows(name).expect("a matrix has rows"), matrix.rows());
        let mut written = Vec::new();
        Tensors::default().csr("w", &matrix).write(&mut written).expect("writing to memory");
        let read = Container::new(&written).expect("what was written");
        let read = read.csr("w", Some(matrix.cols())).expect("what was written");
        assert_eq!(read.pattern(), matrix.pattern());
        assert!(read.values().iter().zip(matrix.values()).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
});
