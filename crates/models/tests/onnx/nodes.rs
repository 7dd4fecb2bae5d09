//! What each type of node becomes.
use lacuna::conv::MapLayout;
use lacuna_models::import::onnx::{self, Imported, Options};
use lacuna_models::network::{
    Activation, Add, Concat, Conv, Flatten, Linear, Network, Norm, Operation, Pad, Pool, Scale, Shape,
    ValueId,
};

use crate::build::{Message, file, integers, node, tensor};

const MAPS: &[i64] = &[1, 2, 4, 4];

fn import(bytes: &[u8]) -> Imported {
    onnx::from_bytes(bytes, &Options::default()).unwrap()
}

/// What nodes make of maps of two channels, 4×4; the last one's result is `y`.
fn maps(nodes: &[Message], tensors: &[Message]) -> Imported {
    import(&file(MAPS, nodes, tensors, &["y"]))
}

/// A network of these layers, each of the values of these numbers.
fn network(input: Shape, layers: &[(&str, Operation, &[usize])]) -> Network {
    let mut builder = Network::builder(input);
    let mut values = vec![builder.input()];
    for (name, operation, inputs) in layers {
        let inputs: Vec<ValueId> = inputs.iter().map(|&input| values[input]).collect();
        values.push(builder.layer(*name, operation.clone(), &inputs).unwrap());
    }
    builder.finish(*values.last().unwrap()).unwrap()
}

fn two_by_two() -> Shape {
    Shape::maps(1, 2, [4, 4])
}

/// Weights of a convolution from two channels to two, so many rows and columns.
fn filters(name: &str, taps: i64) -> Message {
    let values: Vec<f32> = (0..4 * taps * taps).map(|at| at as f32 * 0.25 - 1.0).collect();
    tensor(name, &[2, 2, taps, taps], &values)
}

fn conv(name: &str, input: &str, output: &str) -> Message {
    node("Conv", name, &[input, "w"], output)
}

#[test]
fn what_follows_a_convolution_becomes_part_of_it() {
    let ones = |name: &str, value: f32| tensor(name, &[2], &[value, 1.0]);
    let nodes = [
        conv("a", "x", "1").with_ints("pads", &[1, 1, 1, 1]).with_ints("kernel_shape", &[3, 3]),
        node("BatchNormalization", "n", &["1", "g", "b", "m", "v"], "2").with_float("epsilon", 1e-3),
        node("Relu", "r", &["2"], "3"),
        node("Conv", "c", &["3", "k", "b"], "4"),
        node("Add", "s", &["3", "4"], "5"),
        node("Clip", "six", &["5", "lo", "hi"], "y"),
    ];
    let limits = [tensor("lo", &[], &[0.0]), tensor("hi", &[], &[6.0])];
    let mut tensors = vec![
        filters("w", 3),
        filters("k", 1),
        ones("g", 2.0),
        ones("b", 3.0),
        ones("m", 4.0),
        ones("v", 5.0),
    ];
    tensors.extend(limits);
    let imported = maps(&nodes, &tensors);
    let norm = Norm { prefix: "n".into(), epsilon: 1e-3 };
    let a = Conv { norm: Some(norm), ..Conv::new(2, [3, 3]).padding([1, 1]).relu() };
    let c = Conv::new(2, [1, 1]).bias().residual().relu6();
    assert_eq!(imported.network, network(two_by_two(), &[("a", a.into(), &[0]), ("c", c.into(), &[1, 1])]));
    let names: Vec<&str> = imported.weights.iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        ["a.weight", "c.bias", "c.weight", "n.bias", "n.running_mean", "n.running_var", "n.weight"]
    );
    for parameter in imported.network.parameters() {
        assert!(imported.weights.get(&parameter.name, &parameter.shape).is_ok(), "{}", parameter.name);
    }
    assert_eq!(imported.weights.get("n.running_var", &[2]).unwrap().values(), [5.0, 1.0]);
    assert_eq!((imported.layout, imported.softmax), (MapLayout::Nchw, None));
}

/// A value that others read too is needed as it is.
#[test]
fn what_others_read_stays() {
    let nodes = [
        conv("a", "x", "1"),
        node("Relu", "r", &["1"], "2"),
        node("Add", "s", &["1", "2"], "3"),
        node("Relu", "t", &["3"], "y"),
    ];
    let imported = maps(&nodes, &[filters("w", 1)]);
    // The ReLU is a convolution by 1, and the sum has what was before it and what comes after it.
    let layers = [
        ("a", Conv::new(2, [1, 1]).into(), &[0][..]),
        ("r", Conv::depthwise([1, 1]).relu().into(), &[1]),
        ("s", Add::new().relu().into(), &[1, 2]),
    ];
    assert_eq!(imported.network, network(two_by_two(), &layers));
    assert_eq!(imported.weights.get("r.weight", &[2, 1, 1, 1]).unwrap().values(), [1.0, 1.0]);
}

/// The last of several readers does not change what others have read.
#[test]
fn what_a_layer_has_read_does_not_change() {
    let nodes = [
        conv("a", "x", "1"),
        node("MaxPool", "p", &["1"], "2").with_ints("kernel_shape", &[1, 1]),
        node("Relu", "r", &["1"], "3"),
        node("Concat", "c", &["2", "3"], "y").with_int("axis", 1),
    ];
    let layers = [
        ("a", Conv::new(2, [1, 1]).into(), &[0][..]),
        ("p", Pool::max([1, 1], [1, 1]).into(), &[1]),
        ("r", Conv::depthwise([1, 1]).relu().into(), &[1]),
        ("c", Concat.into(), &[2, 3]),
    ];
    assert_eq!(maps(&nodes, &[filters("w", 1)]).network, network(two_by_two(), &layers));
}

#[test]
fn margins_that_differ_are_layers_and_others_are_not() {
    let padded = |pads: &[i64]| {
        let pad = node("Pad", "p", &["x", "pads"], "1");
        let conv = conv("a", "1", "y").with_ints("strides", &[2, 2]).with_ints("pads", &[0, 1, 0, 1]);
        maps(&[pad, conv], &[integers("pads", pads), filters("w", 3)]).network
    };
    let conv_of = |padding| Operation::from(Conv::new(2, [3, 3]).strides([2, 2]).padding(padding));
    let expected = network(two_by_two(), &[("a", conv_of([1, 3]), &[0])]);
    assert_eq!(padded(&[0, 0, 1, 2, 0, 0, 1, 2]), expected);
    let rest = Pad::zeros([0, 0], [1, 1]);
    let expected = network(two_by_two(), &[("a/pad", rest.into(), &[0]), ("a", conv_of([0, 1]), &[1])]);
    assert_eq!(padded(&[0, 0, 0, 0, 0, 0, 1, 1]), expected);
    // TensorFlow's, by name.
    let same = conv("a", "x", "y").with_ints("strides", &[2, 2]).with_string("auto_pad", "SAME_UPPER");
    let expected = network(two_by_two(), &[("a/pad", rest.into(), &[0]), ("a", conv_of([0, 0]), &[1])]);
    assert_eq!(maps(&[same], &[filters("w", 3)]).network, expected);
    // One of another value than zero, as an attribute of older files.
    let pad =
        node("Pad", "p", &["x"], "1").with_ints("pads", &[0, 0, 1, 0, 0, 0, 0, 0]).with_float("value", 2.5);
    let expected = [
        ("a/pad", Pad::zeros([1, 0], [0, 0]).value(2.5).into(), &[0][..]),
        ("a", Conv::new(2, [1, 1]).into(), &[1]),
    ];
    assert_eq!(
        maps(&[pad, conv("a", "1", "y")], &[filters("w", 1)]).network,
        network(two_by_two(), &expected)
    );
}

#[test]
fn poolings_of_all_kinds() {
    let pool = |op: &str, input: &str| node(op, "p", &[input], "y").with_ints("kernel_shape", &[3, 3]);
    let of = |pool: Message| maps(&[pool.with_ints("strides", &[2, 2])], &[]).network;
    let expected = |layers: &[(&str, Operation, &[usize])]| network(two_by_two(), layers);
    let max = Pool::max([3, 3], [2, 2]);
    assert_eq!(
        of(pool("MaxPool", "x").with_ints("pads", &[1, 1, 1, 1])),
        expected(&[("p", max.padding([1, 1]).into(), &[0])])
    );
    // Below all numbers, as the input may be negative.
    let low = Pad::zeros([0, 0], [1, 1]).value(f32::MIN);
    let padded = expected(&[("p/pad", low.into(), &[0]), ("p", max.into(), &[1])]);
    assert_eq!(of(pool("MaxPool", "x").with_ints("pads", &[0, 0, 1, 1])), padded);
    assert_eq!(of(pool("MaxPool", "x").with_int("ceil_mode", 1)), padded);
    // Behind a ReLU zeros do.
    let nodes = [node("Relu", "r", &["x"], "1"), pool("MaxPool", "1").with_ints("pads", &[0, 0, 1, 0])];
    assert_eq!(maps(&nodes, &[]).network.layers()[1].operation, Pad::zeros([0, 0], [1, 0]).into());
    let mean = pool("AveragePool", "x").with_ints("pads", &[1, 1, 1, 1]);
    let Operation::Pool(excluding) = of(mean.clone()).layers()[0].operation else { panic!("no pooling") };
    assert_eq!(excluding.mode, lacuna::pool::Mode::AverageExcludePadding);
    let average = Pool::average([3, 3], [2, 2]);
    let including = of(mean.with_int("count_include_pad", 1));
    assert_eq!(including, expected(&[("p", average.padding([1, 1]).into(), &[0])]));
    let global = expected(&[("p", Pool::global_average().into(), &[0])]);
    assert_eq!(maps(&[node("GlobalAveragePool", "p", &["x"], "y")], &[]).network, global);
    let mean = node("ReduceMean", "p", &["x"], "y").with_ints("axes", &[-1, -2]).with_int("keepdims", 0);
    assert_eq!(maps(&[mean], &[]).network, global);
}

#[test]
fn matrices_are_linear_layers_in_their_order() {
    let w = tensor("w", &[32, 2], &(0..64).map(|at| at as f32).collect::<Vec<f32>>());
    let bias = tensor("b", &[1, 2], &[0.5, -0.5]);
    let flatten = node("Flatten", "f", &["x"], "1");
    let layers = [("f", Flatten.into(), &[0][..]), ("fc", Linear::new(2).relu().into(), &[1])];
    let expected = network(two_by_two(), &layers);
    let nodes = [
        flatten.clone(),
        node("MatMul", "fc", &["1", "w"], "2"),
        node("Add", "s", &["2", "b"], "3"),
        node("Relu", "r", &["3"], "4"),
        node("Softmax", "soft", &["4"], "y").with_int("axis", 1),
    ];
    let imported = maps(&nodes, &[w.clone(), bias.clone()]);
    assert_eq!((imported.network, imported.softmax.as_deref()), (expected.clone(), Some("y")));
    let weights = imported.weights.get("fc.weight", &[2, 32]).unwrap().values();
    assert_eq!((weights[0], weights[1], weights[32]), (0.0, 2.0, 1.0));
    assert_eq!(imported.weights.get("fc.bias", &[2]).unwrap().values(), [0.5, -0.5]);

    let transposed = tensor("t", &[2, 32], weights);
    let gemm = node("Gemm", "fc", &["1", "t", "b"], "2")
        .with_int("transB", 1)
        .with_float("alpha", 0.5)
        .with_float("beta", 2.0);
    let imported = maps(&[flatten, gemm, node("Relu", "r", &["2"], "y")], &[transposed, bias]);
    assert_eq!(imported.network, expected);
    assert_eq!(imported.weights.get("fc.weight", &[2, 32]).unwrap().values()[1], 1.0);
    assert_eq!(imported.weights.get("fc.bias", &[2]).unwrap().values(), [1.0, -1.0]);
}

/// As TensorFlow exports: channels last outside, and reshapes of one pixel between.
#[test]
fn orders_of_dimensions_cost_nothing() {
    let perm = |name: &str, from: &str, perm: &[i64], to: &str| {
        node("Transpose", name, &[from], to).with_ints("perm", perm)
    };
    let nodes = [
        perm("t", "x", &[0, 3, 1, 2], "1"),
        node("Conv", "dw", &["1", "d"], "2").with_int("group", 2),
        perm("u", "2", &[0, 2, 3, 1], "3"),
        node("Add", "s", &["3", "b"], "4"),
        node("Concat", "c", &["4", "3"], "5").with_int("axis", -1),
        node("ReduceMean", "m", &["5"], "6").with_ints("axes", &[1, 2]),
        node("Constant", "shape", &[], "7").with_tensor("value", &integers("", &[-1, 4])),
        node("Identity", "i", &["7"], "8"),
        node("Reshape", "r", &["6", "8"], "9"),
        node("Dropout", "o", &["9"], "y"),
    ];
    let tensors = [tensor("d", &[2, 1, 1, 1], &[1.0, 2.0]), tensor("b", &[2], &[3.0, 4.0])];
    let bytes = file(&[-1, 4, 4, 2], &nodes, &tensors, &["y"]);
    let options = Options { images: Some(3), ..Options::default() };
    let imported = onnx::from_bytes(&bytes, &options).unwrap();
    let dw = Conv::depthwise([1, 1]);
    let expected = network(
        Shape::maps(3, 2, [4, 4]),
        &[
            ("dw", dw.clone().into(), &[0]),
            // Both are read, and so the sum is by itself.
            ("s", dw.bias().into(), &[1]),
            ("c", Concat.into(), &[2, 1]),
            ("m", Pool::global_average().into(), &[3]),
        ],
    );
    assert_eq!((imported.network, imported.layout), (expected, MapLayout::Nhwc));
}

#[test]
fn norms_and_limits_without_a_layer_before_them() {
    let of_two = |name: &str| tensor(name, &[2], &[1.0, 2.0]);
    let nodes = [
        node("BatchNormalization", "n", &["x", "g", "g", "g", "g"], "1"),
        node("Clip", "c", &["1"], "2").with_float("min", -1.0).with_float("max", 1.0),
        node("Relu", "r", &["2"], "3"),
        node("Squeeze", "never", &["3"], "4"),
        node("MaxPool", "p", &["3"], "y").with_ints("kernel_shape", &[2, 2]),
    ];
    let scale = Scale::norm().activation(Activation::Clamp { lo: 0.0, hi: 1.0 });
    let expected =
        network(two_by_two(), &[("n", scale.into(), &[0]), ("p", Pool::max([2, 2], [1, 1]).into(), &[1])]);
    assert_eq!(maps(&nodes, &[of_two("g")]).network, expected);
    // Any value can be the result.
    let options = Options { output: Some("1".into()), ..Options::default() };
    let bytes = file(MAPS, &nodes, &[of_two("g")], &["y"]);
    let cut = onnx::from_bytes(&bytes, &options).unwrap().network;
    assert_eq!(cut, network(two_by_two(), &[("n", Scale::norm().into(), &[0])]));
}
