//! Any bytes as a TFLite file: an error, or a network whose values are read or refused.
#![no_main]

use lacuna_models::files::tflite::Model;
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
});
