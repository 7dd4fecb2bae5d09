//! What is refused, and that no bytes make a panic.
use lacuna_models::import::onnx::{self, NodeProblem, OnnxError, Options};
use proptest::prelude::*;

use crate::build::{Message, file, integers, node, tensor};
use crate::whole::whole;

fn refused(nodes: &[Message]) -> OnnxError {
    let tensors = [
        tensor("w", &[2, 2, 1, 1], &[1.0; 4]),
        tensor("short", &[2, 2, 1, 1], &[1.0; 3]),
        tensor("b", &[3], &[1.0; 3]),
        integers("shape", &[1, 2, 16]),
    ];
    onnx::from_bytes(&file(&[1, 2, 4, 4], nodes, &tensors, &["y"]), &Options::default()).unwrap_err()
}

#[test]
fn nodes_that_no_layer_does_are_named_with_what_to_do() {
    let conv = || node("Conv", "it", &["x", "w"], "y");
    for (node, part) in [
        (node("LSTM", "it", &["x"], "y"), "no layer for it"),
        (node("Relu", "it", &["x"], "y").bytes(7, "com.example"), "no layer for it"),
        (conv().with_ints("dilations", &[2, 2]), "dilations: expected [1, 1]"),
        (conv().with_int("group", 3), "group: expected 1"),
        (conv().with_ints("pads", &[-1, 0, 0, 0]), "pads: expected four extents"),
        (conv().with_ints("strides", &[0, 1]), "strides: expected at least 1"),
        (conv().with_ints("kernel_shape", &[5, 1]), "kernel_shape"),
        (conv().with_string("auto_pad", "SOME"), "auto_pad"),
        (node("Conv", "it", &["x", "x"], "y"), "values in the file"),
        (node("Conv", "it", &["x", "b"], "y"), "two dimensions"),
        (node("Conv", "it", &["x", "w", "b"], "y"), "one value for each filter"),
        (node("Add", "it", &["x", "b"], "y"), "one value for each channel"),
        (node("Add", "it", &["x", "later"], "y"), "value later: expected one that a node before makes"),
        (node("MatMul", "it", &["x", "w"], "y"), "flatten or pool"),
        (node("Reshape", "it", &["x", "shape"], "y"), "keeps images apart"),
        (node("Transpose", "it", &["x"], "y").with_ints("perm", &[1, 0, 2, 3]), "perm"),
        (node("Concat", "it", &["x", "x"], "y").with_int("axis", 2), "axis: expected that of channels"),
        (node("ReduceMean", "it", &["x"], "y").with_ints("axes", &[1]), "rows and columns of maps"),
        (node("Softmax", "it", &["x"], "y").with_int("axis", 1), "classes of a row"),
        (node("Pad", "it", &["x"], "y").with_string("mode", "reflect"), "mode: expected constant"),
        (node("Clip", "it", &["x"], "y").with_float("min", 1.0).with_float("max", -1.0), "limits in order"),
        (node("MaxPool", "it", &["x"], "y").with_ints("kernel_shape", &[9, 9]), "the window"),
        (node("BatchNormalization", "it", &["x", "b", "b", "b", "b"], "y"), "one value for each channel"),
    ] {
        let error = refused(&[node]);
        let text = error.to_string();
        assert!(matches!(error, OnnxError::Node { .. }), "{text}");
        assert!(text.starts_with("node it of type ") && text.contains(part), "{text}");
    }
    let error = refused(&[node("Conv", "it", &["x", "short"], "y")]).to_string();
    assert!(error.starts_with("tensor short: expected as many values"), "{error}");
    // Softmax in the middle.
    let error = refused(&[
        node("GlobalAveragePool", "a", &["x"], "1"),
        node("Softmax", "it", &["1"], "2").with_int("axis", 1),
        node("Relu", "b", &["2"], "y"),
    ]);
    assert!(
        error.to_string().contains("node it of type Softmax") && error.to_string().contains("host"),
        "{error}"
    );
    // Two nodes that make one value.
    let twice = node("Relu", "b", &["x"], "y");
    assert!(matches!(
        refused(&[twice.clone(), twice]),
        OnnxError::Node { problem, .. } if matches!(*problem, NodeProblem::Results { .. })
    ));
}

#[test]
fn inputs_and_results_that_are_not_clear_are_refused() {
    let relu = [node("Relu", "a", &["x"], "y")];
    let read = |bytes: &[u8]| onnx::from_bytes(bytes, &Options::default());
    assert!(matches!(read(&file(&[1, 2, 4], &relu, &[], &["y"])), Err(OnnxError::Input { .. })));
    let error = read(&file(&[1, 2, -1, 4], &relu, &[], &["y"])).unwrap_err().to_string();
    assert!(error.contains("Options::size"), "{error}");
    assert!(matches!(read(&file(&[1, 2, 4, 4], &relu, &[], &["y", "x"])), Err(OnnxError::Output { .. })));
    assert!(matches!(read(&file(&[1, 2, 4, 4], &relu, &[], &["z"])), Err(OnnxError::Output { .. })));
    assert!(matches!(read(&file(&[1, 2, 4, 4], &[], &[], &["x"])), Err(OnnxError::Network(_))));
    assert!(matches!(read(b""), Err(OnnxError::Damaged { .. })));
    assert!(matches!(read(b"TFL3 is another file"), Err(OnnxError::Damaged { .. })));
    let error = onnx::read("no such file.onnx", &Options::default()).unwrap_err().to_string();
    assert!(error.starts_with("no such file.onnx: "), "{error}");
}

/// A few bytes that ask for much memory get an error.
#[test]
fn small_files_do_not_make_large_weights() {
    let relu = [node("Relu", "a", &["x"], "y")];
    let error =
        onnx::from_bytes(&file(&[1, 1 << 30, 1, 1], &relu, &[], &["y"]), &Options::default()).unwrap_err();
    assert!(matches!(error, OnnxError::Node { problem, .. } if *problem == NodeProblem::TooMuch));
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let whole = whole();
    let imported = onnx::from_bytes(&whole, &Options::default()).unwrap();
    assert_eq!(imported.network.layers().len(), 9);
    // But for the version at the end, which is not read.
    let graph = whole.len() - 6;
    assert!((0..graph).all(|len| onnx::from_bytes(&whole[..len], &Options::default()).is_err()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn damaged_files_give_a_result_or_an_error(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = whole();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(imported) = onnx::from_bytes(&bytes, &Options::default()) {
            // What is imported is whole.
            for parameter in imported.network.parameters() {
                let tensor = imported.weights.get(&parameter.name, &parameter.shape);
                prop_assert!(tensor.is_ok(), "{:?}", tensor);
            }
        }
    }

    #[test]
    fn any_bytes_give_a_result_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = onnx::from_bytes(&bytes, &Options::default());
    }
}
