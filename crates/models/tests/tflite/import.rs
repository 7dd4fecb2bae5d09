//! Networks from files that are made here: what operators become, and what is refused.
use lacuna::Device;
use lacuna::conv::MapLayout;
use lacuna_models::import::tflite::{self, ImportError, Imported, OperatorProblem, Options};
use lacuna_models::model::{self, Model};
use lacuna_models::network::{
    Concat, Conv, DepthToSpace, FlattenNhwc, Network, Operation, Pad, PadChannels, Pool, Resize, Sampling,
    Shape, ValueId,
};
use lacuna_models::oracle;
use proptest::prelude::*;

use crate::build::{self, Table, Value};
use crate::f32s;

fn i32s(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Options of these numbers, the first field's first.
fn options(of: i32, numbers: &[i32]) -> Option<(i32, Table)> {
    Some((of, numbers.iter().map(|&number| Value::Number(number)).enumerate().collect()))
}

/// A few different numbers, exact in `f32`.
fn numbers(count: usize, factor: usize, modulus: usize) -> Vec<f32> {
    (0..count).map(|at| (at * factor % modulus) as f32 / 32.0 - 0.25).collect()
}

/// Each operator that becomes layers, and two outputs. LiteRT reads it too.
fn whole() -> Vec<u8> {
    const PADDED: [i32; 8] = [0, 0, 1, 1, 1, 1, 0, 0];
    build::Network::default()
        .tensor("x", &[1, 4, 4, 2], 0, &[])
        .tensor("w", &[2, 3, 3, 2], 0, &f32s(&numbers(36, 5, 11)))
        .tensor("b", &[2], 0, &f32s(&[0.5, -0.25]))
        .tensor("conv", &[1, 2, 2, 2], 0, &[])
        .tensor("pads", &[4, 2], 2, &i32s(&PADDED))
        .tensor("padded", &[1, 4, 4, 2], 0, &[])
        .tensor("d", &[1, 3, 3, 2], 0, &f32s(&numbers(18, 7, 13)))
        .tensor("dw", &[1, 2, 2, 2], 0, &[])
        .tensor("sum", &[1, 2, 2, 2], 0, &[])
        .tensor("slopes", &[1, 1, 2], 0, &f32s(&[0.25, -0.5]))
        .tensor("prelu", &[1, 2, 2, 2], 0, &[])
        .tensor("size", &[2], 2, &i32s(&[4, 4]))
        .tensor("resized", &[1, 4, 4, 2], 0, &[])
        .tensor("max", &[1, 2, 2, 2], 0, &[])
        .tensor("joined", &[1, 2, 2, 8], 0, &[])
        .tensor("space", &[1, 4, 4, 2], 0, &[])
        .tensor("shape", &[3], 2, &i32s(&[1, -1, 2]))
        .tensor("many", &[1, 16, 2], 0, &[])
        .tensor("few", &[1, 4, 2], 0, &[])
        .tensor("anchors", &[1, 20, 2], 0, &[])
        .tensor("more", &[4, 2], 2, &i32s(&[0, 0, 0, 0, 0, 0, 1, 2]))
        .tensor("wide", &[1, 2, 2, 5], 0, &[])
        .tensor("relu", &[1, 2, 2, 5], 0, &[])
        .operator(3, &[0, 1, 2], &[3], options(1, &[0, 2, 2, 3, 1, 1]))
        .operator(34, &[3, 4], &[5], None)
        .operator(4, &[5, 6, 2], &[7], options(2, &[1, 1, 1, 1, 0, 1, 1]))
        .operator(0, &[3, 7], &[8], options(11, &[2]))
        .operator(54, &[8, 9], &[10], None)
        .operator(23, &[10, 11], &[12], options(15, &[0, 0, 0, 1]))
        .operator(17, &[12], &[13], options(5, &[0, 2, 2, 3, 3, 0]))
        .operator(2, &[13, 10, 8, 13], &[14], options(10, &[-1, 0]))
        .operator(5, &[14], &[15], options(94, &[2]))
        .operator(22, &[15, 16], &[17], None)
        .operator(22, &[13, 16], &[18], None)
        .operator(2, &[17, 18], &[19], options(10, &[1, 0]))
        .operator(34, &[13, 20], &[21], None)
        .operator(19, &[21], &[22], None)
        .outputs(&[19, 22])
        .file()
}

fn import(bytes: &[u8]) -> Result<Imported, ImportError> {
    tflite::from_bytes(bytes, &Options::default())
}

#[test]
fn operators_become_layers() {
    let imported = import(&whole()).unwrap();
    let ones = || Conv::depthwise([1, 1]);
    let clamp = lacuna_models::network::Activation::Clamp { lo: -1.0, hi: 1.0 };
    let least = Pad::zeros([0, 0], [1, 1]).value(f32::MIN);
    // The input is 0, and results follow.
    let layers: [(&str, Operation, &[usize]); 18] = [
        ("conv/pad", Pad::zeros([0, 0], [1, 1]).into(), &[0]),
        ("conv", Conv::new(2, [3, 3]).strides([2, 2]).bias().relu6().into(), &[1]),
        ("dw", Conv::depthwise([3, 3]).padding([1, 1]).bias().residual().activation(clamp).into(), &[2, 2]),
        ("prelu/negative", ones().relu().into(), &[3]),
        ("prelu/positive", ones().relu().into(), &[3]),
        ("prelu", ones().residual().into(), &[4, 5]),
        ("resized", Resize::bilinear([4, 4], Sampling::HalfPixel).into(), &[6]),
        ("max/pad", least.into(), &[7]),
        ("max", Pool::max([3, 3], [2, 2]).into(), &[8]),
        ("joined", Concat.into(), &[9, 6, 3, 9]),
        ("space", DepthToSpace::new(2).into(), &[10]),
        ("many", FlattenNhwc.into(), &[11]),
        ("few", FlattenNhwc.into(), &[9]),
        ("anchors", Concat.into(), &[12, 13]),
        ("wide/channels", PadChannels::zeros(1, 2).into(), &[9]),
        ("relu", ones().relu().into(), &[15]),
        ("relu/rows", FlattenNhwc.into(), &[16]),
        ("outputs", Concat.into(), &[14, 17]),
    ];
    let mut builder = Network::builder(Shape::maps(1, 2, [4, 4]));
    let mut values = vec![ValueId::INPUT];
    for (name, operation, inputs) in layers {
        let inputs: Vec<ValueId> = inputs.iter().map(|&input| values[input]).collect();
        values.push(builder.layer(name, operation, &inputs).unwrap());
    }
    let expected = builder.finish(values[values.len() - 1]).unwrap();
    assert_eq!(imported.network, expected);
    let outputs: Vec<_> = imported
        .outputs
        .iter()
        .map(|output| (output.name.as_str(), &output.shape[..], output.features.clone()))
        .collect();
    assert_eq!(outputs, [("anchors", &[1, 20, 2][..], 0..40), ("relu", &[1, 2, 2, 5], 40..60)]);
    let weights = imported.weights.get("conv.weight", &[2, 2, 3, 3]).unwrap().values();
    let of_file = numbers(36, 5, 11);
    assert_eq!((weights[1], weights[9], weights[35]), (of_file[2], of_file[1], of_file[35]));
    let weights = imported.weights.get("dw.weight", &[2, 1, 3, 3]).unwrap().values();
    assert_eq!((weights[1], weights[9]), (numbers(18, 7, 13)[2], numbers(18, 7, 13)[1]));
}

/// The same image several times, in both layouts.
#[test]
fn results_are_those_of_litert() {
    // Rows × columns × channels, as Python has `((np.arange(32) * 7 % 13).astype(np.float32) - 6) / 4`.
    let image: Vec<f32> = (0..32).map(|at| ((at * 7 % 13) as f32 - 6.0) / 4.0).collect();
    let channels_first: Vec<f32> = (0..32).map(|at| image[at % 16 * 2 + at / 16]).collect();
    // Of LiteRT's reference kernels, to five digits.
    let expected = [
        0.851_87, 0.372_56, 0.407_47, 0.372_56, 1.0, 0.314_33, 1.0, 0.294_92, 0.407_47, 0.372_56, 0.851_87,
        0.372_56, 1.0, 0.294_92, 1.0, 0.314_33, 0.920_65, 0.181_4, 0.920_65, 0.117_68, 0.602_71, 0.175_49,
        0.385_99, 0.133_06, 0.920_65, -0.235_35, 0.920_65, 0.181_4, 0.385_99, -0.266_11, 0.602_71, 0.175_49,
        0.851_87, 0.372_56, 1.0, 0.314_33, 0.920_65, 0.181_4, 0.602_71, 0.175_49, 0.0, 0.851_87, 0.372_56,
        0.0, 0.0, 0.0, 1.0, 0.314_33, 0.0, 0.0, 0.0, 0.920_65, 0.181_4, 0.0, 0.0, 0.0, 0.602_71, 0.175_49,
        0.0, 0.0,
    ];
    for images in [1, 2] {
        let chosen = Options { images: Some(images) };
        let Imported { network, weights, .. } = tflite::from_bytes(&whole(), &chosen).unwrap();
        let options = model::Options::default();
        let exact = oracle::run(&network, &weights, &options, &channels_first.repeat(images)).unwrap();
        for layout in [MapLayout::Nchw, MapLayout::Nhwc] {
            let input = if layout == MapLayout::Nhwc { &image } else { &channels_first };
            let device = Device::simulator();
            let stream = device.stream().unwrap();
            let mut model =
                Model::plan(&stream, &network, &weights, &options.clone().layout(layout)).unwrap();
            let input = device.upload(&input.repeat(images)).unwrap();
            let mut output = device.zeros::<f32>(60 * images).unwrap();
            model.run(&stream, input.as_slice(), output.as_slice_mut()).unwrap();
            let got = output.download(&stream).unwrap();
            exact.check("the result", &got).unwrap();
            for at in 0..60 * images {
                assert!((exact.value[at] - expected[at % 60]).abs() < 1e-5, "{:?}", exact.value);
                assert!((f64::from(got[at]) - expected[at % 60]).abs() < 2e-5, "{got:?}");
            }
        }
    }
}

/// The same operators on several images, which the file has not.
#[test]
fn images_are_chosen() {
    let imported = tflite::from_bytes(&whole(), &Options { images: Some(3) }).unwrap();
    assert_eq!(imported.network.output_shape(), Shape::matrix(3, 60));
    assert_eq!(imported.outputs[0].shape, [3, 20, 2]);
    assert!(matches!(
        tflite::from_bytes(&whole(), &Options { images: Some(0) }),
        Err(ImportError::Input { .. })
    ));
}

/// A network of one operator, from tensor 0 of maps to tensor 1, which is the output.
fn one(code: i32, inputs: &[i32], of: Option<(i32, Table)>) -> build::Network {
    build::Network::default()
        .tensor("x", &[1, 4, 4, 2], 0, &[])
        .tensor("y", &[1, 4, 4, 2], 0, &[])
        .tensor("w", &[2, 1, 1, 2], 0, &f32s(&[1.0; 4]))
        .tensor("n", &[3], 2, &i32s(&[1, -1, 2]))
        .tensor("maps", &[4], 2, &i32s(&[1, 2, 8, 2]))
        .operator(code, inputs, &[1], of)
        .outputs(&[1])
}

#[test]
fn what_is_refused_is_named() {
    let conv = |dilation, activation| options(1, &[0, 1, 1, activation, dilation, 1]);
    let cases = [
        (one(99, &[0], None), "operator 0 (mine): there is no layer for it"),
        (one(3, &[0, 2], conv(2, 0)), "operator 0 (CONV_2D): dilations: expected [1, 1], got [1, 2]"),
        (one(3, &[0, 2], conv(1, 4)), "the activation: expected none, or limits, got Tanh"),
        (
            one(3, &[0, 0], conv(1, 0)),
            "input 1: expected a tensor with values in the file, got one that is computed",
        ),
        (
            one(3, &[0, 3], conv(1, 0)),
            "input 1: expected filters of four dimensions, got values of shape [3]",
        ),
        (one(3, &[0, 2, 3], conv(1, 0)), "input 2: expected one value for each filter"),
        (one(3, &[2, 2], conv(1, 0)), "input 0: expected a tensor that depends on the input, got a constant"),
        (
            one(4, &[0, 2], options(2, &[0, 1, 1, 2, 0, 1, 1])),
            "expected filters of all channels, or one for each",
        ),
        (one(0, &[0, 2], None), "operator 0 (ADD): input 1: expected a tensor that depends on the input"),
        (one(0, &[0], None), "input 1: expected a tensor, got none"),
        (one(2, &[0, 0], options(10, &[1, 0])), "the dimension: expected channels of maps"),
        (one(5, &[0], options(94, &[3])), "the block: expected one whose square divides the channels"),
        (one(22, &[0, 4], None), "input 1: expected features: one or two dimensions of an image"),
        (one(22, &[0, 2], None), "expected values of type i32"),
        (one(23, &[0, 3], options(15, &[0, 0, 0, 1])), "input 1: expected rows and columns, got [1, -1, 2]"),
        (one(23, &[0, 3], options(15, &[0, 0, 1, 1])), "expected one of them at most"),
        (one(34, &[0, 3], None), "input 1: expected two extents of at least 0 for each dimension"),
        (one(54, &[0, 2], None), "input 1: expected a slope for each channel"),
        (one(6, &[0], None), "operator 0 (DEQUANTIZE): input 0: expected a tensor with values in the file"),
        (one(19, &[0], None).outputs(&[]), "expected outputs that operators make of the input, got None"),
        (
            one(19, &[0], None).outputs(&[2]),
            "expected outputs that operators make of the input, got Some(\"w\")",
        ),
        (one(19, &[0], None).operator(19, &[0], &[1], None), "operator 1 (RELU): expected one result"),
    ];
    for (network, expected) in cases {
        let error = import(&network.file()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} instead of {expected}");
    }
    let input = |shape: &[i32], element| {
        let network = build::Network::default().tensor("x", shape, element, &[]).tensor("y", shape, 0, &[]);
        import(&network.operator(19, &[0], &[1], None).file()).unwrap_err()
    };
    assert!(matches!(input(&[1, 4], 2), ImportError::Input { .. }));
    assert!(matches!(input(&[1, 4, 4], 0), ImportError::Input { .. }));
    assert!(matches!(input(&[1, 0, 4, 4], 0), ImportError::Input { .. }));
    // A few bytes that ask for much memory.
    let error = input(&[1, 1, 1, 1 << 30], 0);
    assert!(matches!(error, ImportError::Operator { problem, .. } if *problem == OperatorProblem::TooMuch));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// Whatever the bytes are, there is an error, or a network that is whole.
    #[test]
    fn damaged_files_give_a_result_or_an_error(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)
    ) {
        let mut bytes = whole();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(imported) = import(&bytes) {
            for parameter in imported.network.parameters() {
                let tensor = imported.weights.get(&parameter.name, &parameter.shape);
                prop_assert!(tensor.is_ok(), "{:?}", tensor);
            }
        }
    }
}
