//! A network's results are those that onnxruntime has.
use lacuna::Device;
use lacuna_models::import::onnx::{self, Options};
use lacuna_models::model::{self, Model};
use lacuna_models::oracle;

use crate::build::{file, integers, node, tensor};

/// A few different numbers, exact in `f32`.
fn numbers(count: usize, factor: usize, modulus: usize) -> Vec<f32> {
    (0..count).map(|at| (at * factor % modulus) as f32 / 4.0 - 1.0).collect()
}

/// A small network with most types of nodes, valid in version 17 of ONNX.
pub(crate) fn whole() -> Vec<u8> {
    let of_two = |name: &str| tensor(name, &[2], &[1.0, 2.0]);
    let nodes = [
        node("Transpose", "t", &["x"], "0").with_ints("perm", &[0, 3, 1, 2]),
        node("Pad", "p", &["0", "pads"], "1"),
        node("Conv", "a", &["1", "w", "g"], "2")
            .with_ints("strides", &[2, 2])
            .with_ints("pads", &[0, 0, 1, 1]),
        node("BatchNormalization", "n", &["2", "g", "g", "g", "g"], "3"),
        node("Relu", "r", &["3"], "4"),
        node("MaxPool", "m", &["4"], "5").with_ints("kernel_shape", &[2, 2]).with_ints("pads", &[0, 0, 1, 1]),
        node("Add", "s", &["4", "5"], "6"),
        node("Concat", "c", &["6", "4"], "7").with_int("axis", 1),
        node("Clip", "l", &["7", "", "most"], "8"),
        node("Reshape", "f", &["8", "shape"], "9"),
        node("Gemm", "fc", &["9", "k"], "10"),
        node("Softmax", "o", &["10"], "y"),
    ];
    let tensors = [
        integers("pads", &[0, 0, 1, 1, 0, 0, 1, 1]),
        integers("shape", &[0, -1]),
        tensor("w", &[2, 2, 3, 3], &numbers(36, 5, 11)),
        of_two("g"),
        tensor("most", &[], &[3.0]),
        tensor("k", &[36, 2], &numbers(72, 3, 7)),
    ];
    file(&[1, 4, 4, 2], &nodes, &tensors, &["y"])
}

/// A margin that differs on two sides, before a convolution and before a maximum; a norm after a bias; a sum, a concatenation, and a clip of it.
#[test]
fn results_are_those_of_onnxruntime() {
    let imported = onnx::from_bytes(&whole(), &Options::default()).unwrap();
    let (network, weights) = (&imported.network, &imported.weights);
    // Rows × columns × channels in the file, as Python has `((np.arange(32) * 7 % 13).astype(np.float32) - 6) / 4`.
    let pixel = |at: usize| ((at * 7 % 13) as f32 - 6.0) / 4.0;
    let input: Vec<f32> = (0..32).map(|at| pixel(at % 16 * 2 + at / 16)).collect();
    // Before softmax, from onnxruntime 1.32 on a CPU.
    let expected = [-15.185_579_f32, -15.777_731];
    let options = model::Options::default();
    let exact = oracle::run(network, weights, &options, &input).unwrap();
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let mut model = Model::plan(&stream, network, weights, &options).unwrap();
    let on_device = device.upload(&input).unwrap();
    let mut output = device.zeros::<f32>(2).unwrap();
    model.run(&stream, on_device.as_slice(), output.as_slice_mut()).unwrap();
    let got = output.download(&stream).unwrap();
    for at in 0..2 {
        assert!((exact.value[at] as f32 - expected[at]).abs() < 1e-4, "{:?}", exact.value);
        assert!((got[at] - expected[at]).abs() < 1e-4, "{got:?}");
    }
    exact.check("the result", &got).unwrap();
}
