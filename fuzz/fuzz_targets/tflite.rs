//! Any bytes as a TFLite file: an error, or a network whose values are read or refused, and whose layers have all their weights.
#![no_main]

use lacuna_models::files::tflite::Model;
use lacuna_models::import::tflite::{Options, from_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(model) = Model::new(bytes.to_vec()) else { return };
    for (index, info) in model.tensors().iter().enumerate() {
        if let Ok(tensor) = model.numbers(index) {
            assert_eq!(tensor.shape(), info.shape);
            assert_eq!(tensor.values().len(), info.shape.iter().product::<usize>());
        }
        let _ = (model.source(index), model.integers(index));
    }
    let Ok(imported) = from_bytes(bytes, &Options::default()) else { return };
    for parameter in imported.network.parameters() {
        imported.weights.get(&parameter.name, &parameter.shape).expect("the importer makes all weights");
    }
    let features = imported.outputs.last().map_or(0, |output| output.features.end);
    assert_eq!(imported.network.output_shape().channels, features);
});
