//! Real networks, which anyone can get: the files of the Python wheel `mediapipe` 0.10.14.
use std::path::PathBuf;

use lacuna_models::files::tflite::{Model, OperatorKind};

/// Pointwise convolutions whose filters are sparse in the file, their weights, and how many of these are zero.
fn pointwise(model: &Model) -> (usize, usize, usize) {
    let (mut layers, mut weights, mut zeros) = (0, 0, 0);
    for operator in model.operators() {
        if !matches!(operator.kind, OperatorKind::Conv2d { .. }) {
            continue;
        }
        let filters =
            operator.inputs[1].and_then(|input| model.source(input)).expect("filters are in the file");
        let values = model.numbers(filters).unwrap();
        if model.tensors()[filters].is_sparse() {
            assert_eq!(values.shape()[1..3], [1, 1]);
            layers += 1;
            weights += values.values().len();
            zeros += values.values().iter().filter(|&&value| value == 0.0).count();
        }
    }
    (layers, weights, zeros)
}

#[test]
fn real_networks_are_read() {
    let Some(folder) = std::env::var_os("LACUNA_TFLITE").map(PathBuf::from) else {
        eprintln!("LACUNA_TFLITE is not set: real networks are not read");
        return;
    };
    // Sums of weights and zeros, as TensorFlow Lite's own schema in Python reads them.
    for (file, operators, expected) in [
        ("pose_detection.tflite", 291, (38, 2_723_584, 2_042_689)),
        ("face_detection_full_range_sparse.tflite", 388, (46, 462_592, 323_816)),
    ] {
        let model = Model::open(folder.join(file)).unwrap();
        assert_eq!((model.operators().len(), pointwise(&model)), (operators, expected), "{file}");
        let whole = |kind: &OperatorKind| !matches!(kind, OperatorKind::Other { .. });
        assert!(model.operators().iter().all(|operator| whole(&operator.kind)), "{file}");
        for tensor in (0..model.tensors().len()).filter(|&tensor| model.tensors()[tensor].is_constant()) {
            assert!(model.numbers(tensor).is_ok() || model.integers(tensor).is_ok(), "{file}: {tensor}");
        }
    }
}
