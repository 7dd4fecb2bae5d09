//! Any bytes as an ONNX file: an error, or a network whose weights are all there.
#![no_main]

use lacuna_models::import::onnx::{Options, from_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(imported) = from_bytes(bytes, &Options::default()) else { return };
    for parameter in imported.network.parameters() {
        imported.weights.get(&parameter.name, &parameter.shape).expect("the importer makes all weights");
    }
});
