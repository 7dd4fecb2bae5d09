//! Any bytes as layers of the challenge in binary: an error, or layers that survive being written and read.
#![no_main]

use lacuna_models::challenge::binary;
use libfuzzer_sys::fuzz_target;

const NEURONS: usize = 1024;

/// Few, so that a short input has several layers.
const EDGES: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    let Ok(layers) = binary::read_layers(bytes, NEURONS, EDGES) else { return };
    let mut written = Vec::new();
    layers.iter().for_each(|layer| binary::write_layer(layer, &mut written).expect("writing to memory"));
    let read = binary::read_layers(&written[..], NEURONS, EDGES).expect("what was written");
    assert_eq!(read.len(), layers.len());
    for (read, layer) in read.iter().zip(&layers) {
        assert_eq!(read.pattern(), layer.pattern());
        assert!(read.values().iter().zip(layer.values()).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
});
