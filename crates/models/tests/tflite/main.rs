//! TFLite files: good ones made here, damaged ones, and real ones where they are.
mod build;
mod detectors;
mod import;
mod real;

use half::f16;
use lacuna_models::files::FileError;
use lacuna_models::files::tflite::{
    Activation, Element, Model, OperatorKind, Padding, TensorProblem, TfliteError, Window,
};
use proptest::prelude::*;

use build::{Network, Value, compressed, dense, file};

pub(crate) fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn f16s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect()
}

/// An input; sparse filters of 3 × 1 × 1 × 4 in `f16`; what is made of them; a bias, and the output.
fn network() -> Network {
    let conv =
        vec![(0, Value::Number(1)), (1, Value::Number(2)), (2, Value::Number(3)), (3, Value::Number(3))];
    let levels = vec![dense(3), compressed(8, &[0, 1, 1, 3], &[2, 0, 3]), dense(1), dense(1)];
    Network::default()
        .tensor("input", &[1, 8, 8, 4], 0, &[])
        .tensor("filters", &[3, 1, 1, 4], 1, &f16s(&[1.5, -2.0, 0.25]))
        .sparse(&[0, 3, 1, 2], &[], levels)
        .tensor("densified", &[3, 1, 1, 4], 1, &[])
        .tensor("dequantized", &[3, 1, 1, 4], 0, &[])
        .tensor("bias", &[3], 0, &f32s(&[1.0, 2.0, 3.0]))
        .tensor("output", &[1, 4, 4, 3], 0, &[])
        .operator(124, &[1], &[2], None)
        .operator(6, &[2], &[3], None)
        .operator(3, &[0, 3, 4], &[5], Some((1, conv)))
}

/// The values of a sparse tensor of `f32`.
fn sparse(
    shape: &[i32],
    values: &[f32],
    order: &[i32],
    blocks: &[i32],
    levels: Vec<build::Table>,
) -> Result<Vec<f32>, TensorProblem> {
    let network = Network::default().tensor("t", shape, 0, &f32s(values)).sparse(order, blocks, levels);
    match Model::new(network.file()).unwrap().numbers(0) {
        Ok(tensor) => Ok(tensor.values().to_vec()),
        Err(FileError::Tflite(TfliteError::Tensor { index: 0, name, problem })) if name == "t" => {
            Err(problem)
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_network_is_read() {
    let model = Model::new(network().file()).unwrap();
    assert_eq!((model.inputs(), model.outputs()), (&[0][..], &[5][..]));
    let names: Vec<&str> = model.tensors().iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names, ["input", "filters", "densified", "dequantized", "bias", "output"]);
    let filters = &model.tensors()[1];
    assert!(filters.is_sparse() && filters.is_constant() && filters.element == Element::F16);
    let [densify, dequantize, conv] = model.operators() else { panic!("three operators") };
    assert_eq!((&densify.kind, &dequantize.kind), (&OperatorKind::Densify, &OperatorKind::Dequantize));
    let window = Window { strides: [3, 2], padding: Padding::Valid, activation: Activation::Relu6 };
    assert_eq!(conv.kind, OperatorKind::Conv2d { window, dilations: [1, 1] });
    assert_eq!((&conv.inputs[..], &conv.outputs[..]), (&[Some(0), Some(3), Some(4)][..], &[5][..]));

    assert_eq!(
        (model.source(3), model.source(4), model.source(0), model.source(5)),
        (Some(1), Some(4), None, None)
    );
    let filters = model.numbers(1).unwrap();
    assert_eq!(filters.shape(), [3, 1, 1, 4]);
    assert_eq!(filters.values(), [0.0, 0.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0, -2.0, 0.0, 0.0, 0.25]);
    assert_eq!(model.numbers(4).unwrap().values(), [1.0, 2.0, 3.0]);
    let error = model.numbers(0).unwrap_err().to_string();
    assert!(error.contains("tensor 0 (input): it has no values in the file"), "{error}");
}

#[test]
fn patterns_of_all_kinds_become_dense() {
    for bits in [8, 16, 32] {
        let levels = vec![dense(2), compressed(bits, &[0, 2, 3], &[0, 2, 1])];
        assert_eq!(
            sparse(&[2, 3], &[1.0, 2.0, 3.0], &[0, 1], &[], levels).unwrap(),
            [1.0, 0.0, 2.0, 0.0, 3.0, 0.0]
        );
    }
    // By columns.
    let levels = vec![dense(3), compressed(8, &[0, 1, 1, 3], &[1, 0, 1])];
    assert_eq!(
        sparse(&[2, 3], &[1.0, 2.0, 3.0], &[1, 0], &[], levels).unwrap(),
        [0.0, 0.0, 2.0, 1.0, 0.0, 3.0]
    );
    // Blocks of 2 × 2: the upper right and the lower left one.
    let levels = vec![dense(2), compressed(16, &[0, 1, 2], &[1, 0]), dense(2), dense(2)];
    let values: Vec<f32> = (1..=8).map(|x| x as f32).collect();
    let blocks = sparse(&[4, 4], &values, &[0, 1, 2, 3], &[0, 1], levels).unwrap();
    assert_eq!(blocks[..8], [0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0]);
    assert_eq!(blocks[8..], [5.0, 6.0, 0.0, 0.0, 7.0, 8.0, 0.0, 0.0]);
    // Two compressed levels, nothing at all, and no elements.
    let levels = vec![compressed(32, &[0, 1], &[1]), compressed(32, &[0, 1], &[2])];
    assert_eq!(sparse(&[2, 3], &[7.0], &[0, 1], &[], levels).unwrap(), [0.0, 0.0, 0.0, 0.0, 0.0, 7.0]);
}

#[test]
fn patterns_that_are_none_are_refused() {
    let good = || vec![dense(2), compressed(8, &[0, 2, 3], &[0, 2, 1])];
    let refused = |shape: &[i32], order: &[i32], blocks: &[i32], levels: Vec<build::Table>, says: &str| {
        let error = sparse(shape, &[1.0, 2.0, 3.0], order, blocks, levels).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    };
    let with = |level| vec![dense(2), level];
    refused(&[2, 3], &[0, 0], &[], good(), "2 dimensions and 0 blocks, each once");
    refused(&[2, 3], &[0, 1, 2], &[], good(), "2 levels of [0, 1, 2]");
    refused(&[2, 3, 1], &[0, 1], &[], good(), "3 dimensions");
    refused(&[4, 3], &[0, 1], &[], good(), "expected 4, got 2");
    refused(&[2, 2], &[0, 1], &[], good(), "ascending indices below 2, got [0, 2]");
    refused(&[2, 3], &[0, 1], &[], with(compressed(8, &[0, 2, 3], &[2, 0, 1])), "ascending indices below 3");
    refused(&[2, 3], &[0, 1], &[], with(compressed(8, &[0, 2, 3], &[1, 1, 1])), "ascending indices below 3");
    refused(
        &[2, 3],
        &[0, 1],
        &[],
        with(compressed(32, &[0, 2, 3], &[-1, 1, 1])),
        "ascending indices below 3",
    );
    refused(&[2, 3], &[0, 1], &[], with(compressed(32, &[0, 4, 3], &[0, 2, 1])), "segments from 0 up to 3");
    refused(&[2, 3], &[0, 1], &[], with(compressed(32, &[1, 2, 3], &[0, 2, 1])), "segments from 0 up to 3");
    refused(&[2, 3], &[0, 1], &[], with(compressed(8, &[0, 3], &[0, 2, 1])), "ends of 2 segments, got 2");
    refused(&[2, 3], &[0, 1], &[], with(compressed(8, &[0, 1, 2], &[0, 1])), "places of 3 values, got 2");
    refused(&[2, 3], &[0, 1], &[], with(vec![(0, Value::Number(7))]), "format 0 (dense) or 1 (CSR), got 7");
    let blocks = |block| vec![dense(2), dense(1), block];
    refused(&[2, 3], &[0, 1, 2], &[1], blocks(dense(2)), "blocks that divide 3, got 2");
    refused(&[2, 3], &[0, 1, 2], &[5], blocks(dense(3)), "dense blocks");
    refused(&[2, 3], &[0, 1, 2], &[1], blocks(dense(0)), "dense blocks");
    refused(&[1 << 15, 1 << 15], &[0, 1], &[], good(), "3 values in 1073741824 elements: too few");
    // Levels of any size above one without indices.
    let empty = vec![dense(1 << 30), dense(1 << 30), dense(0)];
    refused(&[1 << 30, 1 << 30, 0], &[0, 1, 2], &[], empty, "places of 3 values, got 0");
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let network = Network::default()
        .tensor("short", &[2, 2], 0, &f32s(&[1.0, 2.0, 3.0]))
        .tensor("bytes", &[4], 9, &[1, 2, 3, 4])
        .tensor("ints", &[2], 2, &[1, 0, 0, 0, 255, 255, 255, 255]);
    let model = Model::new(network.file()).unwrap();
    let says = |error: FileError, says: &str| assert!(error.to_string().contains(says), "{error}");
    says(model.numbers(0).unwrap_err(), "tensor 0 (short): expected 4 values, got 12 bytes of 4 each");
    says(model.numbers(1).unwrap_err(), "tensor 1 (bytes): expected values of type f32 or f16, got Other(9)");
    says(model.numbers(2).unwrap_err(), "got I32");
    says(model.integers(0).unwrap_err(), "expected values of type i32, got F32");
    assert_eq!(model.integers(2).unwrap(), [1, -1]);
}

#[test]
fn operators_have_their_options() {
    let numbers = |numbers: &[i32]| numbers.iter().map(|&x| Value::Number(x)).enumerate().collect::<Vec<_>>();
    let kind = |code, options: Option<(i32, build::Table)>| {
        let network = Network::default().tensor("t", &[1], 0, &[]).operator(code, &[0, -1], &[0], options);
        Model::new(network.file()).map(|model| model.operators()[0].kind.clone())
    };
    let window = Window { strides: [2, 1], padding: Padding::Same, activation: Activation::Relu };
    for (code, options, expected) in [
        (0, Some((11, numbers(&[1]))), OperatorKind::Add { activation: Activation::Relu }),
        (0, None, OperatorKind::Add { activation: Activation::None }),
        (
            2,
            Some((10, numbers(&[-1, 4]))),
            OperatorKind::Concatenation { axis: -1, activation: Activation::Tanh },
        ),
        (
            4,
            Some((2, numbers(&[0, 1, 2, 3, 1, 4, 5]))),
            OperatorKind::DepthwiseConv2d { window, dilations: [5, 4], multiplier: 3 },
        ),
        (5, Some((94, numbers(&[2]))), OperatorKind::DepthToSpace { block: 2 }),
        (17, Some((5, numbers(&[0, 1, 2, 3, 4, 1]))), OperatorKind::MaxPool2d { window, size: [4, 3] }),
        (19, None, OperatorKind::Relu),
        (
            22,
            Some((17, vec![(0, Value::I32s(vec![1, -1]))])),
            OperatorKind::Reshape { shape: Some(vec![1, -1]) },
        ),
        (22, None, OperatorKind::Reshape { shape: None }),
        (
            23,
            Some((15, numbers(&[9, 9, 0, 1]))),
            OperatorKind::ResizeBilinear { align_corners: false, half_pixel_centers: true },
        ),
        (34, Some((22, vec![])), OperatorKind::Pad),
        (54, None, OperatorKind::Prelu),
        (150, None, OperatorKind::Other { code: 150, name: "mine".into() }),
    ] {
        assert_eq!(kind(code, options).unwrap(), expected);
    }
    for (code, options, says) in [
        (3, None, "operator 0 (code 3): expected options, got none"),
        (3, Some((2, numbers(&[0, 1, 1, 0]))), "expected its own options, got those of type 2"),
        (3, Some((1, numbers(&[0, 1, 0, 0]))), "expected a number above 0, got 0"),
        (3, Some((1, numbers(&[7, 1, 1, 0]))), "padding 0 (same) or 1 (valid), got 7"),
        (3, Some((1, numbers(&[0, 1, 1, 9]))), "an activation from 0 to 4, got 9"),
        (5, None, "operator 0 (code 5): expected options, got none"),
        (4, Some((2, numbers(&[0, 1, 1, -1, 0]))), "expected a number above 0, got -1"),
    ] {
        let error = kind(code, options).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn other_files_and_numbers_are_refused() {
    let refused = |bytes: Vec<u8>, says: &str| {
        let error = Model::new(bytes).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    refused(b"short".to_vec(), "expected a TFLite file");
    refused(file(&vec![]), "one subgraph, got 0");
    let graph = || vec![(0, Value::Tables(vec![]))];
    refused(file(&vec![(2, Value::Tables(vec![graph(), graph()]))]), "one subgraph, got 2");
    refused(network().operator(19, &[6], &[5], None).file(), "operator 3 names tensor 6; there are 6");
    refused(network().operator(19, &[-2], &[5], None).file(), "operator 3 names tensor -2");
    refused(network().tensor("x", &[1, -1], 0, &[]).file(), "tensor 6 (x): expected extents of at least 0");
    refused(network().tensor("x", &[i32::MAX; 3], 0, &[]).file(), "whose product can be counted");
    let mut cut = network().file();
    cut.truncate(cut.len() - 1);
    refused(cut, "the file is damaged or cut short");
    // A circle of operators that make tensors dense.
    let circle = Network::default().tensor("t", &[1], 0, &[]).operator(124, &[0], &[0], None);
    assert_eq!(Model::new(circle.file()).unwrap().source(0), None);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.tflite");
    std::fs::write(&path, network().file()).unwrap();
    let error = Model::open(&path).unwrap().numbers(0).unwrap_err().to_string();
    assert!(error.contains("net.tflite") && error.contains("(input)"), "{error}");
    std::fs::write(&path, b"nothing").unwrap();
    for path in [path, folder.path().join("none.tflite")] {
        let error = Model::open(&path).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }
}

#[test]
fn parts_that_are_named_again_and_again_are_refused() {
    // Each of many operators is the same table, with many inputs.
    let many = 10_000;
    let mut file =
        Network::default().tensor("t", &[1], 0, &[]).operator(19, &vec![0; many], &[0], None).file();
    let operators = Model::new(file.clone()).unwrap();
    assert_eq!(operators.operators()[0].inputs.len(), many);
    // The root's subgraphs, their operators: a vector with one offset, which becomes a vector at the end with many.
    let at = |file: &[u8], at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let field = |file: &[u8], table: usize, field: usize| {
        let vtable = table - at(file, table);
        table + usize::from(u16::from_le_bytes(file[vtable + 4 + 2 * field..][..2].try_into().unwrap()))
    };
    let root = at(&file, 0);
    let graphs = field(&file, root, 2);
    let graphs = graphs + at(&file, graphs);
    let graph = graphs + 4 + at(&file, graphs + 4);
    let place = field(&file, graph, 3);
    let vector = place + at(&file, place);
    let operator = vector + 4 + at(&file, vector + 4);
    // Offsets go ahead only, so a copy of the file's tables comes after the vector.
    let end = file.len();
    file[place..place + 4].copy_from_slice(&((end - place) as u32).to_le_bytes());
    let copy = end + 4 + 4 * many;
    file.extend((many as u32).to_le_bytes());
    for index in 0..many {
        let from = end + 4 + 4 * index;
        file.extend(((copy + operator - from) as u32).to_le_bytes());
    }
    let whole = file[..end].to_vec();
    file.extend(whole);
    let error = Model::new(file).unwrap_err();
    assert!(matches!(error, FileError::Tflite(TfliteError::TooMuch { .. })), "{error}");
}

/// Reads all that there is; what comes of it does not matter.
fn read_all(bytes: Vec<u8>) {
    let Ok(model) = Model::new(bytes) else { return };
    for tensor in 0..model.tensors().len() {
        let _ = (model.source(tensor), model.numbers(tensor), model.integers(tensor));
    }
}

proptest! {
    /// Whatever the bytes are, there is a network or an error.
    #[test]
    fn damaged_and_cut_files_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        end in any::<prop::sample::Index>(), cut: bool,
    ) {
        let mut bytes = network().file();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(end.index(bytes.len()));
        }
        read_all(bytes);
    }

    #[test]
    fn any_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 8..200)) {
        bytes[4..8].copy_from_slice(b"TFL3");
        read_all(bytes);
    }
}
