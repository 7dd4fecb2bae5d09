//! Any bytes as a layer of the challenge in text: an error, or a layer that survives being written and read.
#![no_main]

use lacuna_models::challenge::tsv;
use libfuzzer_sys::fuzz_target;

const NEURONS: usize = 1024;

fuzz_target!(|bytes: &[u8]| {
    let Ok(layer) = tsv::read_layer(bytes, NEURONS) else { return };
    let mut written = Vec::new();
    tsv::write_layer(&layer, &mut written).expect("writing to memory");
    let read = tsv::read_layer(&written[..], NEURONS).expect("what was written");
    assert_eq!(read.pattern(), layer.pattern());
    assert!(read.values().iter().zip(layer.values()).all(|(a, b)| a.to_bits() == b.to_bits()));
});
